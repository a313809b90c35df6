"""The image of a function: what it is made of is there, and what the manifests expect of it is in it."""

from __future__ import annotations

import re

import manifests
from manifests import Document, pod_templates

from tenantry.serving.server import FUNCTIONS

TEXT = (manifests.ROOT / "knative" / "Containerfile").read_text(encoding="utf-8")


def test_what_is_copied_is_there() -> None:
    """Every source of a COPY from the project exists, and the packages of the wheel are among them."""
    sources = [name for line in re.findall(r"^COPY (?!--from)(.+) \S+$", TEXT, re.MULTILINE) for name in line.split()]

    assert {"shared/", "functions/", "knative/", "triggers/", "requirements.lock", "pyproject.toml"} <= set(sources)
    assert all((manifests.ROOT / name).exists() for name in sources)


def test_manifests_name_images_of_functions(documents: list[Document]) -> None:
    """Each image is that of a function or of Helm's Jobs, and runs as a user whose number the image names."""
    images = {
        each["image"] for _, pod in pod_templates(documents) for each in pod["spec"]["containers"] if "tenantry" in each["image"]
    }

    assert {image.rpartition("/")[2].partition(":")[0] for image in images} == set(FUNCTIONS)
    assert re.search(r"^USER [1-9]\d+$", TEXT, re.MULTILINE)
    assert 'exec tenantry serve \\"$FUNCTION\\" --host 0.0.0.0' in TEXT


def test_locked_versions_become_constraints() -> None:
    """What the build makes of the lock is one pinned version a line, which is all that pip takes of constraints."""
    assert "sed '/--hash/d; s/ *\\\\$//' requirements.lock" in TEXT
    lines = (manifests.ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    kept = [re.sub(r" *\\$", "", line) for line in lines if "--hash" not in line]
    pinned = [line for line in kept if line.strip() and not line.lstrip().startswith("#")]

    assert pinned
    assert all(re.fullmatch(r"[\w.\[\]-]+==\S+( ;.*)?", line) for line in pinned), pinned
