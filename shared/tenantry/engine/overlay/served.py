"""All that an API server serves, as its discovery tells it: by kind, plural, singular and short name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tenantry.api import Api
from tenantry.model.kinds import Kind, Object


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind as it is served, in the version that its group prefers, with what people call it."""

    kind: Kind
    names: frozenset[str]
    """Kind, plural, singular and short names, in lower case."""
    verbs: frozenset[str]


async def served_resources(api: Api) -> list[Resource]:
    """Every kind, once; those of the core group first."""
    core = await api.request("GET", "/api/v1")
    found = [
        _resource("v1", each["kind"], each["name"], bool(each["namespaced"]), each, each.get("singularName", ""))
        for each in core.get("resources") or ()
        if "/" not in each["name"]
    ]
    known = {(each.kind.group, each.kind.kind) for each in found}
    for group in (await api.groups()).get("items") or ():
        name = group["metadata"]["name"]
        for version in group.get("versions") or ():
            for each in version.get("resources") or ():
                answered = (each.get("responseKind") or {}).get("kind", "")
                if not answered or (name, answered) in known:
                    continue
                known.add((name, answered))
                namespaced = each.get("scope") == "Namespaced"
                singular = each.get("singularResource", "")
                found.append(_resource(f"{name}/{version['version']}", answered, each["resource"], namespaced, each, singular))
    return found


def _resource(api_version: str, kind: str, plural: str, namespaced: bool, told: Object, singular: str) -> Resource:
    names = {kind.lower(), plural, singular, *(told.get("shortNames") or ())}
    return Resource(Kind(api_version, kind, plural, namespaced), frozenset(names - {""}), frozenset(told.get("verbs") or ()))


def named(text: str, resources: Sequence[Resource]) -> list[Resource]:
    """What somebody means by a kind, a plural, a short name, or one of them with its group (``helmcharts.helm.cattle.io``)."""
    name, _, group = text.lower().partition(".")
    found = [each for each in resources if name in each.names and (not group or each.kind.group == group)]
    core = [each for each in found if each.kind.group == ""]
    return core or found
