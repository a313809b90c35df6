"""Thieves: whoever has the token of one of our ServiceAccounts, and the requests that he tries.

All are dry runs: authorization, defaulting, admission and validation decide, and nothing is stored.  So one scene does for every
request, and a fence that lets one through has done no harm.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tenantry.api import Api
from tenantry.model.kinds import Kind, Object
from tenantry.testing.objects import obj

SYSTEM_NAMESPACES = ("kube-system", "tenantry-system", "cattle-helm-system")
_BEFORE = ("cannot", "attempting to grant")
"""What RBAC says, and the API server of a change that no object of that kind can have."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One request.

    ``body`` is the operations for ``patch``, an object for ``create``, ``apply`` and ``replace``; ``by`` is the field manager of
    an apply.
    """

    verb: str
    kind: Kind
    name: str
    namespace: str = ""
    body: Any = None
    subresource: str = ""
    by: str = "thief"

    def __str__(self) -> str:
        place = "/".join(part for part in (self.namespace, self.name, self.subresource) if part)
        return f"{self.verb} {self.kind.kind} {place}"


@dataclass(frozen=True, slots=True)
class Attack:
    """A request that must be refused, and in which words: those of the fence, of RBAC, or of the API server's own rules."""

    title: str
    ask: Ask
    words: str

    @property
    def is_by_fence(self) -> bool:
        """Whether the fence refuses it, and not what stands before it."""
        return not self.words.startswith(_BEFORE)


@dataclass(frozen=True, slots=True)
class Theft:
    """What the thief of one identity tries, what the function has to be able to do, and what has to be there for it.

    ``function`` is the identity: where duties of a function run apart, that of the duty.
    """

    function: str
    check: str
    scene: Sequence[tuple[Kind, Object]]
    needs: Sequence[Ask]
    attacks: Sequence[Attack]

    @property
    def fence(self) -> str:
        """The name of its fence, by which it is left out."""
        return f"tenantry-fence-{self.function}"


async def ask(api: Api, what: Ask) -> None:
    """Make the request as a dry run.

    Raises:
        ApiError: it is refused.
    """
    path, query = what.kind.path(what.namespace, what.name), {"dryRun": "All", "fieldManager": what.by}
    if what.subresource:
        path = f"{path}/{what.subresource}"
    if what.verb == "create":
        await api.request("POST", what.kind.path(what.namespace), query, what.body)
    elif what.verb == "apply":
        await api.request("PATCH", path, {**query, "force": "true"}, what.body, "application/apply-patch+yaml")
    elif what.verb == "replace":
        version = (await api.request("GET", path))["metadata"]["resourceVersion"]
        body = {**what.body, "metadata": {**what.body["metadata"], "resourceVersion": version}}
        await api.request("PUT", path, query, body)
    elif what.verb == "patch":
        await api.request("PATCH", path, query, what.body, "application/json-patch+json")
    else:
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "dryRun": ["All"]}
        await api.request("DELETE", path, None, options)


# -- short forms -----------------------------------------------------------------------------------------------------


def create(kind: Kind, body: Object) -> Ask:
    """Make an object."""
    return Ask("create", kind, body["metadata"]["name"], body["metadata"].get("namespace", ""), body)


def apply(kind: Kind, body: Object, subresource: str = "", by: str = "thief") -> Ask:
    """Server-side apply with force: everything in the body becomes so."""
    return Ask("apply", kind, body["metadata"]["name"], body["metadata"].get("namespace", ""), body, subresource, by)


def replace(kind: Kind, body: Object) -> Ask:
    """An update of all of an object that is there."""
    return Ask("replace", kind, body["metadata"]["name"], body["metadata"].get("namespace", ""), body)


def patch(kind: Kind, name: str, namespace: str, *steps: tuple[str, str, Any], subresource: str = "") -> Ask:
    """A JSON patch as (op, path, value)."""
    body = [{"op": op, "path": path, "value": value} for op, path, value in steps]
    return Ask("patch", kind, name, namespace, body, subresource)


def delete(kind: Kind, name: str, namespace: str = "") -> Ask:
    """Delete an object."""
    return Ask("delete", kind, name, namespace)


def in_system_namespaces(title: str, words: str, asking: Callable[[str], Ask]) -> list[Attack]:
    """The same attack on each system namespace, whose name ends the title."""
    return [Attack(f"{title} {name}", asking(name), words) for name in SYSTEM_NAMESPACES]


def taking_over(function: str, kind: Kind, name: str, namespace: str = "", **labels: str) -> list[Attack]:
    """Applies of what others wrote under the name of the function's field manager, which would then take it off."""
    found = {"labels": labels or {"team": "x"}, "annotations": {"team": "x"}}
    return [
        Attack(
            f"the {part} of others, to take them off later",
            apply(kind, obj(kind, name, namespace, metadata={part: values}), by=f"tenantry-{function}"),
            f"does not become the owner of {part}",
        )
        for part, values in found.items()
    ]


def varied(base: Object, *changes: tuple[str, Any]) -> Object:
    """A deep copy of an object with other values at dotted paths; a function makes the value of the one that is there."""
    made = copy.deepcopy(base)
    for path, change in changes:
        *parents, last = path.split(".")
        found: Any = made
        for part in parents:
            found = found[part]
        found[last] = change(found.get(last)) if callable(change) else change
    return made


def with_team(found: Object) -> Object:
    """Labels or annotations, and one more."""
    return {**found, "team": "x"}
