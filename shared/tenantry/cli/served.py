"""Which kinds a cluster serves, from one answer of discovery, which everybody may ask for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tenantry.api import Api
from tenantry.api.discovery import OURS
from tenantry.api.errors import NotFound
from tenantry.model.kinds import Kind, Object

ServedKinds = Mapping[tuple[str, str], Kind]
"""By group and plural, each in the version that the API server prefers."""
NOT_HERE = (
    "this cluster has no Tenantry: it serves none of its kinds. Install it with `kubectl apply --server-side -k knative/`, "
    "or try it with `tenantry up --kubeconfig FILE`"
)


def served_kinds(discovery: Object) -> ServedKinds:
    """All kinds but those of the core group; ``discovery`` is the answer of `tenantry.api.Api.groups`."""
    found: dict[tuple[str, str], Kind] = {}
    for group, version, each in _resources(discovery):
        if (answered := each.get("responseKind")) is not None:
            scoped = each.get("scope") == "Namespaced"
            found.setdefault((group, each["resource"]), Kind(f"{group}/{version}", answered["kind"], each["resource"], scoped))
    return found


def has_ours(discovery: Object) -> bool:
    """Whether any kind is served by a CRD of Tenantry."""
    return any(OURS in (each.get("categories") or ()) for _, _, each in _resources(discovery))


async def discovered(api: Api) -> Object:
    """The answer of discovery of a cluster that has Tenantry.

    Raises:
        NotFound: there is none; the message has the way out.
    """
    discovery = await api.groups()
    if not has_ours(discovery):
        raise NotFound(NOT_HERE)
    return discovery


def _resources(discovery: Object) -> Iterator[tuple[str, str, Object]]:
    for group in discovery.get("items") or ():
        for version in group.get("versions") or ():
            for each in version.get("resources") or ():
                yield group["metadata"]["name"], version["version"], each
