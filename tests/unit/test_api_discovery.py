"""Which version of a kind is read: the first that serves it, in the order that the server prefers."""

from __future__ import annotations

from typing import Any

from tenantry.api.discovery import Discovery
from tenantry.api.errors import NotFound
from tenantry.model.kinds import Kind, Object

GROUP = "source.toolkit.fluxcd.io"


def answers(preferred: str, **kinds: list[str]) -> dict[str, Object]:
    """What a server says of a group whose versions have these kinds."""
    versions = [{"groupVersion": f"{GROUP}/{version}", "version": version} for version in kinds]
    found: dict[str, Any] = {
        f"/apis/{GROUP}": {"versions": versions, "preferredVersion": {"groupVersion": f"{GROUP}/{preferred}"}}
    }
    for version, names in kinds.items():
        resources = [{"name": f"{name.lower()}s", "kind": name, "namespaced": True} for name in names]
        found[f"/apis/{GROUP}/{version}"] = {"resources": resources}
    return found


class Asked:
    """A discovery over answers that may change, and what it asked for."""

    def __init__(self, **said: Object) -> None:
        self.said: dict[str, Object] = said
        self.paths: list[str] = []
        self.discovery = Discovery(self._request)

    async def _request(self, _: str, path: str) -> Object:
        self.paths.append(path)
        if path not in self.said:
            raise NotFound(path)
        return self.said[path]


def kind(version: str, name: str) -> Kind:
    return Kind(f"{GROUP}/{version}", name, f"{name.lower()}s")


async def test_the_preferred_version_comes_first() -> None:
    """And another one where that lacks the kind; asked once for a while."""
    asked = Asked(**answers("v1", v1beta2=["Bucket", "Old"], v1=["Bucket"]))
    for _ in range(2):
        assert await asked.discovery.preferred(GROUP, "Bucket") == kind("v1", "Bucket")
        assert await asked.discovery.preferred(GROUP, "Old") == kind("v1beta2", "Old")
    assert asked.paths == [f"/apis/{GROUP}", f"/apis/{GROUP}/v1", f"/apis/{GROUP}/v1beta2"]


async def test_what_is_not_served_may_come() -> None:
    """That a group or a kind is missing is known for a moment; asked again it is found."""
    asked = Asked()
    assert await asked.discovery.preferred(GROUP, "Bucket") is None
    asked.said = answers("v1", v1=[])
    assert await asked.discovery.preferred(GROUP, "Bucket") is None
    assert asked.paths == [f"/apis/{GROUP}"]
    assert await asked.discovery.preferred(GROUP, "Bucket", again=True) is None
    asked.said = answers("v1", v1=["Bucket"])
    assert await asked.discovery.preferred(GROUP, "Bucket", again=True) == kind("v1", "Bucket")
    asked.said = answers("v1beta1", v1beta1=["Bucket"])
    assert await asked.discovery.preferred(GROUP, "Bucket") == kind("v1", "Bucket")
    assert await asked.discovery.preferred(GROUP, "Bucket", again=True) == kind("v1beta1", "Bucket")


async def test_what_is_missing_is_doubted_by_a_sweep() -> None:
    """It is asked for again, what is served is not: an answer of a server that has just started must not hide objects."""
    asked = Asked()
    assert await asked.discovery.preferred(GROUP, "Bucket") is None
    asked.said = answers("v1", v1=["Bucket"])
    assert await asked.discovery.preferred(GROUP, "Bucket") is None
    asked.discovery.doubt()
    assert await asked.discovery.preferred(GROUP, "Bucket") == kind("v1", "Bucket")
    assert await asked.discovery.preferred(GROUP, "Old") is None
    asked.paths.clear()
    asked.discovery.doubt()
    assert await asked.discovery.preferred(GROUP, "Bucket") == kind("v1", "Bucket")
    assert asked.paths == []
    assert await asked.discovery.preferred(GROUP, "Old") is None
    assert asked.paths == [f"/apis/{GROUP}/v1"]


async def test_a_kind_is_found_by_its_plural() -> None:
    """In the preferred version, too; one whose status is written by itself is told from one without."""
    said = answers("v1", v1=["Bucket", "Alert"])
    said[f"/apis/{GROUP}/v1"]["resources"].append({"name": "buckets/status", "kind": "Bucket", "namespaced": True})
    asked = Asked(**said)
    assert await asked.discovery.preferred(GROUP, "buckets") == kind("v1", "Bucket")
    assert await asked.discovery.preferred(GROUP, "bucket") is None
    assert await asked.discovery.has_status(kind("v1", "Bucket"))
    assert not await asked.discovery.has_status(kind("v1", "Alert"))
    assert not await asked.discovery.has_status(kind("v1", "Old"))


async def test_the_core_group_has_one_version() -> None:
    """It is asked for without a request for its versions."""
    asked = Asked(**{"/api/v1": {"resources": [{"name": "namespaces", "kind": "Namespace", "namespaced": False}]}})
    found = await asked.discovery.preferred("", "namespaces")
    assert found == Kind("v1", "Namespace", "namespaces", namespaced=False)
    assert asked.paths == ["/api/v1"]
