"""Fixtures of the deployment tests: the documents, one test per document, and what kustomize makes of each
folder."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import manifests
import pytest
import pytest_asyncio

import locked
from tenantry.model.kinds import NAMESPACE
from tenantry.testing.unprotected import protection, take_away_among

if TYPE_CHECKING:
    from tenantry.api.client import Api

FILES: dict[str, Callable[[], None]] = {}
"""By name, what takes a protection out of the files, as the tests read them."""


@protection("network-policies", FILES)
def _every_way_open() -> None:
    """No NetworkPolicy is installed."""
    load = manifests.load
    manifests.load = lambda path: [each for each in load(path) if each.kind != "NetworkPolicy"]


@protection("images-by-digest", FILES)
def _images_of_anybody() -> None:
    """Containers name images by a tag that somebody else could publish."""
    read = manifests.pod_templates
    container = {"image": "docker.io/tenantry/function:latest"}
    manifests.pod_templates = lambda found: [(name, {"spec": {"containers": [container]}}) for name, _ in read(found)]


@protection("hashes-of-packages", FILES)
def _packages_by_version() -> None:
    """Packages are locked without their hashes."""
    read = locked.packages
    locked.packages = lambda lock=locked.LOCK: [replace(each, hashes=()) for each in read(lock)]


take_away_among(FILES)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that asks for ``document``, ``knative_object`` or ``kustomization`` once for each."""
    if "document" in metafunc.fixturenames:
        metafunc.parametrize("document", manifests.documents(), ids=str)
    if "knative_object" in metafunc.fixturenames:
        found = [d for d in manifests.documents() if d.group.endswith(".knative.dev")]
        metafunc.parametrize("knative_object", found, ids=str)
    if "kustomization" in metafunc.fixturenames:
        listed = manifests.kustomizations()
        ids = [str(k.path.parent.relative_to(manifests.ROOT)) for k in listed]
        metafunc.parametrize("kustomization", listed, ids=ids)


@pytest.fixture(scope="session")
def documents() -> list[manifests.Document]:
    """Every object in knative/ and triggers/, the overlays' own included."""
    return manifests.documents()


@pytest.fixture(scope="session")
def installed() -> list[manifests.Document]:
    """The objects of the default installation."""
    return manifests.resolve(manifests.ROOT / "knative")


@pytest.fixture(scope="session")
def kustomize() -> list[str]:
    """The kustomize command, or a skip that says how to get it."""
    command = manifests.kustomize()
    if command is None:
        pytest.skip("no kustomize on this machine: install kustomize or kubectl to test the overlays")
    return command


@pytest.fixture(params=["default", *manifests.OVERLAYS])
def installation(request: pytest.FixtureRequest) -> Iterator[list[manifests.Document]]:
    """The objects of each way to install: the default one, and each overlay as kustomize renders it."""
    if request.param == "default":
        yield request.getfixturevalue("installed")
    else:
        command = request.getfixturevalue("kustomize")
        yield manifests.render(manifests.ROOT / "knative" / "overlays" / request.param, command)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(admin: Api) -> AsyncIterator[str]:
    """A namespace with the labels of ours, so that admission treats it alike; the class that our pods name is there."""
    (important,) = [d.body for d in manifests.documents() if d.kind == "PriorityClass"]
    await admin.apply(manifests.kind_of(important), important)
    (ours,) = [d.body for d in manifests.documents() if d.kind == "Namespace" and d.name == "tenantry-system"]
    name = f"deploy-{secrets.token_hex(4)}"
    await admin.create(NAMESPACE, {**ours, "metadata": {**ours["metadata"], "name": name}})
    yield name
    await admin.delete(NAMESPACE, name)
    await admin.delete(manifests.kind_of(important), important["metadata"]["name"])
