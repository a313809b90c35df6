"""Resources as kubectl takes them: plural, singular, short name or kind, with a group, a subresource and a name.

What is served, the API server says: without it nobody could tell ``deploy`` from a name.  Resources that are only there for
rights, such as ``users`` that can be impersonated, are known besides.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tenantry.api.served import ServedResource
from tenantry.cli.one_line import WrongUse
from tenantry.model.kinds import NAMESPACE, Kind
from tenantry.model.rbac import EVERYTHING

_ONLY_RIGHTS = {
    "users": "",
    "groups": "",
    "uids": "authentication.k8s.io",
    "userextras": "authentication.k8s.io",
    "signers": "certificates.k8s.io",
}
"""Resources that no server serves, with their groups."""
_ONLY_VERBS = frozenset({EVERYTHING, "approve", "attest", "bind", "escalate", "impersonate", "proxy", "sign", "use"})
"""Verbs that no resource is served with."""


@dataclass(frozen=True, slots=True)
class NamedResource:
    """What is asked about.  ``namespaced`` None: that is not known."""

    group: str
    resource: str
    subresource: str = ""
    name: str = ""
    namespaced: bool | None = None
    kind: Kind | None = None
    notes: tuple[str, ...] = ()


def find(text: str, served: Sequence[ServedResource]) -> ServedResource | None:
    """The first resource of a name, which may have a group, or version and group, after a dot."""
    head, _, rest = text.partition(".")
    for each in served:
        if head.lower() not in each.names and head != each.kind.kind:
            continue
        version = each.kind.api_version.rpartition("/")[2]
        if not rest or rest in (each.kind.group, f"{version}.{each.kind.group}".rstrip(".")):
            return each
    return None


def resource_named(
    text: str, verb: str, served: Sequence[ServedResource], *, subresource: str = "", name: str = ""
) -> NamedResource:
    """Read ``RESOURCE``, ``RESOURCE/SUBRESOURCE``, ``RESOURCE/NAME`` or ``RESOURCE/NAME/SUBRESOURCE``.

    Raises:
        WrongUse: the server has no such resource, and no group is written with which it could be asked about all the same.
    """
    head, *rest = text.split("/")
    if not head or "" in rest or len(rest) > 2:
        raise WrongUse(f"{text!r} is no resource: write RESOURCE, RESOURCE/NAME or RESOURCE/SUBRESOURCE, such as pods/log")
    found = find(head, served)
    named, below, notes = _parts(rest, found, subresource)
    if name and named and name != named:
        raise WrongUse(f"two names are given, {named} and {name}: leave one out")
    name = name or named
    if found is not None:
        notes += _unserved_verb(verb, found, below)
        return NamedResource(found.kind.group, found.kind.plural, below, name, found.kind.namespaced, found.kind, tuple(notes))
    if head == EVERYTHING or head.startswith(f"{EVERYTHING}."):
        return NamedResource(head.partition(".")[2] or EVERYTHING, EVERYTHING, below, name)
    if head in _ONLY_RIGHTS:
        return NamedResource(_ONLY_RIGHTS[head], head, below, name, namespaced=False)
    plural, _, group = head.partition(".")
    if not group:
        raise WrongUse(
            f"the server serves no resource {head!r}{_near(head, served)}; of one it does not serve write RESOURCE.GROUP"
        )
    notes.append(f"the server serves no {head}: what rules say about it is judged all the same")
    return NamedResource(group, plural, below, name, notes=tuple(notes))


def _parts(rest: Sequence[str], found: ServedResource | None, subresource: str) -> tuple[str, str, list[str]]:
    """Name, subresource and remarks: one part is a subresource where the resource has it, else a name."""
    if len(rest) == 2:
        return rest[0], rest[1], []
    if not rest or subresource:
        return rest[0] if rest else "", subresource, []
    if found is not None and rest[0] not in found.subresources:
        return rest[0], "", []
    if found is None:
        return "", rest[0], []
    return "", rest[0], [f"{rest[0]} is taken for the subresource: of an object with this name ask with --name {rest[0]}"]


def _unserved_verb(verb: str, found: ServedResource, below: str) -> Iterator[str]:
    if not below and verb not in found.verbs | _ONLY_VERBS:
        yield f"{found.kind.resource} is not served with the verb {verb!r}; it has {', '.join(sorted(found.verbs))}"


def _near(text: str, served: Sequence[ServedResource]) -> str:
    close = difflib.get_close_matches(text.lower(), sorted({name for each in served for name in each.names}), 1)
    return f"; did you mean {close[0]}?" if close else ""


def place_of(named: NamedResource, namespace: str, *, chosen: bool = False) -> tuple[str, tuple[str, ...]]:
    """The namespace that the authorizer sees, with remarks: what has none is asked about without, a namespace is in itself.

    ``chosen``: the namespace was named by whoever asks.
    """
    if named.namespaced is not False:
        return namespace, ()
    if named.kind is not None and named.kind.gvk == NAMESPACE.gvk and named.name:
        return named.name, ()
    return "", (f"{named.resource} have no namespace: asked about in the whole cluster",) if chosen and namespace else ()
