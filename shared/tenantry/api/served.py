"""All resources that an API server serves, as its discovery tells them: with plural, singular, short name and kind."""

from __future__ import annotations

from dataclasses import dataclass

from tenantry.api.client import Api
from tenantry.model.kinds import Kind, Object


@dataclass(frozen=True, slots=True)
class ServedResource:
    """One resource as it is served, in the version that its group prefers; ``names`` are what people call it, in lower case."""

    kind: Kind
    names: frozenset[str]
    subresources: frozenset[str]
    verbs: frozenset[str]


async def served_resources(api: Api) -> list[ServedResource]:
    """All resources in the versions that the API server prefers, in its order: that of the core group first."""
    found: dict[tuple[str, str], ServedResource] = {}
    for group in [*(await api.core())["items"], *(await api.groups())["items"]]:
        name = (group.get("metadata") or {}).get("name") or ""
        for version in group.get("versions") or ():
            for each in version.get("resources") or ():
                if each.get("responseKind"):
                    found.setdefault((name, each["resource"]), _served(name, version["version"], each))
    return list(found.values())


def _served(group: str, version: str, found: Object) -> ServedResource:
    kind = found["responseKind"]["kind"]
    api_version = f"{group}/{version}" if group else version
    names = {found["resource"], found.get("singularResource") or "", kind.lower(), *(found.get("shortNames") or ())} - {""}
    below = frozenset(each["subresource"] for each in found.get("subresources") or ())
    verbs = frozenset(found.get("verbs") or ())
    return ServedResource(
        Kind(api_version, kind, found["resource"], found.get("scope") == "Namespaced"), frozenset(names), below, verbs
    )
