"""The images: what they are made of is there and pinned, and what the manifests expect of them is in them."""

from __future__ import annotations

import re
from importlib import metadata

import manifests
import pytest
from manifests import Document, pod_templates
from packaging.markers import Marker
from packaging.requirements import Requirement

from locked import BUILD_LOCK, IMAGE_LOCK, LOCK, packages
from tenantry.serving.installed import descriptors

TEXT = (manifests.ROOT / "knative" / "Containerfile").read_text(encoding="utf-8")
HELM_TEXT = (manifests.ROOT / "knative" / "helm-job" / "Containerfile").read_text(encoding="utf-8")
MAKEFILE = (manifests.ROOT / "Makefile").read_text(encoding="utf-8")


def test_what_is_copied_is_there() -> None:
    """Every source of a COPY from the project exists, and the packages of the wheel are among them."""
    sources = [name for line in re.findall(r"^COPY (?!--from)(.+) \S+$", TEXT, re.MULTILINE) for name in line.split()]

    wanted = {"shared/", "functions/", IMAGE_LOCK.name, BUILD_LOCK.name, "pyproject.toml"}
    assert wanted <= set(sources)
    assert all((manifests.ROOT / name).exists() for name in sources)


def test_manifests_name_images_of_functions(documents: list[Document]) -> None:
    """Each image is that of a function or of Helm's Jobs, and runs as a user whose number the image names."""
    images = {
        each["image"] for _, pod in pod_templates(documents) for each in pod["spec"]["containers"] if "tenantry" in each["image"]
    }

    assert {image.rpartition("/")[2].partition(":")[0] for image in images} == set(descriptors())
    assert re.search(r"^USER [1-9]\d+$", TEXT, re.MULTILINE)
    assert 'exec tenantry serve \\"$FUNCTION\\" --host 0.0.0.0' in TEXT


@pytest.mark.check("a-60")
@pytest.mark.parametrize("text", [TEXT, HELM_TEXT], ids=["function", "helm-job"])
def test_bases_have_to_be_given(text: str) -> None:
    """Every stage begins with an image that the build names, and none has a default that its registry could change."""
    bases = re.findall(r"^FROM (\S+)", text, re.MULTILINE)
    arguments = re.findall(r"^ARG (\w+)(=\S*)?$", text, re.MULTILINE)

    assert bases
    for base in bases:
        named = re.fullmatch(r"\$\{(\w+_IMAGE)\}", base)
        assert named, base
        assert (named[1], "") in arguments


@pytest.mark.check("a-60")
def test_packages_come_as_wheels_by_hash() -> None:
    """What is installed, here or in an image, comes from a lock by hash, as a wheel; ours is built by the locked hatchling."""
    lines = [line.strip() for text in (TEXT, MAKEFILE) for line in text.splitlines() if "pip install" in line]

    assert len(lines) >= 6
    for line in lines:
        ours = "--no-deps" in line and ("--no-build-isolation" in line or "--no-index" in line)
        assert ours or "--require-hashes --only-binary :all: -r requirements" in line, line
    assert "pip wheel" not in TEXT
    assert "/build/bin/python -m hatchling build -t wheel" in TEXT


@pytest.mark.check("a-60")
def test_locks_of_the_image_are_parts_of_the_lock() -> None:
    """What an image gets is what is tested here: the same versions with the same hashes."""
    everything = set(packages(LOCK))

    assert {each.name for each in packages(BUILD_LOCK)} >= {"hatchling", "editables"}
    for lock in (IMAGE_LOCK, BUILD_LOCK):
        assert set(packages(lock)) <= everything, lock.name


@pytest.mark.check("a-60")
def test_the_lock_of_the_image_is_what_the_wheel_requires() -> None:
    """Each package that the wheel comes to without extras is in the image's lock; nothing of an extra or of development is."""
    told = metadata.requires("tenantry") or []
    found: set[str] = set()

    def follow(requirements: list[str], extras: frozenset[str]) -> None:
        for requirement in map(Requirement, requirements):
            if requirement.marker and not any(requirement.marker.evaluate({"extra": extra}) for extra in extras | {""}):
                continue
            name = requirement.name.lower().replace("_", "-")
            if name not in found or requirement.extras:
                found.add(name)
                follow(metadata.requires(name) or [], frozenset(requirement.extras))

    follow(told, frozenset())
    here = {each.name.lower() for each in packages(IMAGE_LOCK) if not each.marker or Marker(each.marker).evaluate()}
    assert found == here
    assert not here & {"pytest", "croniter", "hatchling", "pip-audit"}
