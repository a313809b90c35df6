"""What an API server serves, as far as policies depend on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tenantry.model.flux.consumers import CONSUMERS, EXTENSIONS_GROUP, HELM_GROUP, NOTIFICATION_GROUP, Consumer
from tenantry.model.flux.names import IMAGE_GROUP, SOURCE_GROUP, SOURCES
from tenantry.model.kinds import ADMISSION_MUTATION, Object


@dataclass(frozen=True, slots=True)
class Served:
    """The versions of each resource, by group and plural; whether there are mutations (MutatingAdmissionPolicy v1)."""

    resources: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    mutates: bool = False

    def versions(self, group: str, resource: str) -> tuple[str, ...]:
        """The versions of a resource, the preferred one first; none where it is not served."""
        return self.resources.get((group, resource), ())

    @classmethod
    def of(cls, discovery: Object) -> Served:
        """From the answer of ``/apis`` as ``APIGroupDiscoveryList``."""
        found: dict[tuple[str, str], list[str]] = {}
        for group in discovery.get("items") or ():
            for version in group.get("versions") or ():
                for each in version.get("resources") or ():
                    found.setdefault((group["metadata"]["name"], each["resource"]), []).append(version["version"])
        resources = {key: tuple(versions) for key, versions in found.items()}
        mutations = resources.get((ADMISSION_MUTATION.group, ADMISSION_MUTATION.plural), ())
        return cls(resources, "v1" in mutations)


def plural_of(source: str) -> str:
    """The resource of a kind of source."""
    return f"{source.lower()}s".replace("ys", "ies")


_NEWEST = {HELM_GROUP: "v2", NOTIFICATION_GROUP: "v1", EXTENSIONS_GROUP: "v1beta1"}


def newest(consumers: tuple[Consumer, ...] = CONSUMERS) -> Served:
    """What a cluster with Flux 2.9 and its operator serves, and Kubernetes 1.36: for manifests that are made without one."""
    resources = {(each.group, each.resource): (_NEWEST.get(each.group, "v1"),) for each in consumers}
    resources |= {(SOURCE_GROUP, plural_of(each)): ("v1",) for each in SOURCES}
    resources |= {(IMAGE_GROUP, "imagerepositories"): ("v1",), (NOTIFICATION_GROUP, "alerts"): ("v1beta3",)}
    return Served(resources, mutates=True)
