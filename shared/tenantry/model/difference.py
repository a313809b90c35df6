"""What one server-side apply would change: the rule behind "write only differences".

An apply is needed when a field that we want has another value (or none), or when our field manager owns
a field that we no longer want and must give up.  Both are computed from the live object and its
``managedFields`` (KEP-555), so that a run over a converged object makes no request at all.

What fields mean is in `OURS`: of the kinds that we write ourselves, by the names of their fields, since plans ask no API server.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tenantry.model.comparison import METADATA, MISSING, Path, Schema, differing, shown, step_of, value_at
from tenantry.model.kinds import Object

_STAMPED = "lastTransitionTime"
_CONDITION = Schema(properties={_STAMPED: Schema(meaning="never compared")})
_ATOMIC = ("podSelector", "namespaceSelector", "roleRef", "projectNamespaceSelector", "dashboardValues")
"""Maps that are compared whole: an empty one means empty, not "anything", and names inside mean nothing to us."""
OURS = Schema(
    properties={
        **METADATA.properties,
        "conditions": Schema(keys=("type",), other=_CONDITION),
        "secrets": Schema(keys=("name",)),
        **dict.fromkeys(_ATOMIC, Schema(atomic=True)),
    }
)
"""Fields that the API merges by key, or replaces whole, wherever they stand; a condition's time is stamped when it is written,
and no reason to write."""
OURS.other = OURS
_AMOUNTS = Schema(other=Schema(meaning="quantity"))
_QUOTA = Schema(properties={"spec": Schema(properties={"hard": _AMOUNTS})}, other=OURS)
_LIMITS = ("default", "defaultRequest", "max", "min", "maxLimitRequestRatio")
_RANGE = Schema(properties=dict.fromkeys(_LIMITS, _AMOUNTS))
_OF_KIND: Mapping[str, Schema] = {
    "ResourceQuota": _QUOTA,
    "ClusterResourceQuota": Schema(properties={"spec": Schema(properties={"quota": _QUOTA.properties["spec"]})}, other=OURS),
    "LimitRange": Schema(properties={"spec": Schema(properties={"limits": Schema(other=_RANGE)})}, other=OURS),
}
"""Kinds with quantities, which the API server writes in its own form."""
_IDENTITY = frozenset({"name", "namespace", "uid", "resourceVersion"})


@dataclass(frozen=True, slots=True)
class Difference:
    """Why an apply is needed.

    ``changed`` and ``given_up`` are field paths such as ``metadata.labels[team]``.  ``created`` says that
    there is no live object.  ``migrate`` says that fields to give up are recorded as plain updates of our
    manager, which an apply cannot remove before the record is turned into one of an apply.
    """

    changed: tuple[str, ...] = ()
    given_up: tuple[str, ...] = ()
    created: bool = False
    migrate: bool = False

    def __str__(self) -> str:
        parts = [f"~ {path}" for path in self.changed] + [f"- {path}" for path in self.given_up]
        return ", ".join(parts)


def difference(wanted: Object, live: Object | None, *, manager: str, subresource: str = "") -> Difference | None:
    """What applying ``wanted`` under ``manager`` would change in ``live``; None when nothing.

    ``wanted`` is the complete set of fields that the manager owns in this object (or subresource).
    """
    body = {name: value for name, value in wanted.items() if name not in ("apiVersion", "kind")}
    if "metadata" in body:
        body["metadata"] = {name: value for name, value in body["metadata"].items() if name not in _IDENTITY}
    if live is None:
        return Difference(changed=tuple(map(shown, _leaves(body, ()))), created=True)
    schema = _OF_KIND.get(wanted.get("kind", ""), OURS)
    changed = tuple(map(shown, differing(body, live, schema, absent_is_empty=True)))
    given_up: list[str] = []
    migrate = False
    for entry in entries_of(live, manager, subresource):
        lost = list(map(shown, _given_up(entry.get("fieldsV1") or {}, body, ())))
        migrate = migrate or bool(lost and entry.get("operation") == "Update")
        given_up += [path for path in lost if path not in given_up]
    if not changed and not given_up:
        return None
    return Difference(changed=changed, given_up=tuple(given_up), migrate=migrate)


def entries_of(live: Object, manager: str, subresource: str = "") -> list[Object]:
    """The ``managedFields`` entries of one manager and subresource."""
    return [
        entry
        for entry in live["metadata"].get("managedFields") or ()
        if entry.get("manager") == manager and (entry.get("subresource") or "") == subresource
    ]


def owns(live: Object, manager: str, *path: str) -> bool:
    """True when ``manager`` owns the field at ``path`` (map keys only) of the live object."""
    return any(has_field(entry, *path) for entry in entries_of(live, manager))


def has_field(entry: Object, *path: str) -> bool:
    """True when an entry of ``managedFields`` has the field at ``path`` (map keys only)."""
    fields: Any = entry.get("fieldsV1") or {}
    for step in path:
        fields = fields.get("f:" + step) if isinstance(fields, dict) else None
    return fields is not None


def is_sole_owner(live: Object, manager: str, *path: str) -> bool:
    """True when ``manager`` and nobody else owns the field at ``path``: giving it up removes it."""
    managers = {str(entry.get("manager")) for entry in live["metadata"].get("managedFields") or ()}
    return {found for found in managers if owns(live, found, *path)} == {manager}


def is_shared(live: Object, manager: str, *path: str) -> bool:
    """True when another manager than this one owns something at or below ``path``; who writes a subresource does not count."""
    entries = [entry for entry in live["metadata"].get("managedFields") or () if not entry.get("subresource")]
    return any(entry.get("manager") != manager and has_field(entry, *path) for entry in entries)


def as_apply_entries(live: Object, manager: str) -> list[Object]:
    """``managedFields`` in which our plain updates are folded into our apply entry (no subresources)."""
    ours = entries_of(live, manager)
    others = [entry for entry in live["metadata"].get("managedFields") or () if entry not in ours]
    if not ours:
        return others
    return [*others, {**ours[0], "operation": "Apply", "fieldsV1": fields_of(*ours)}]


def fields_of(*entries: Object) -> Object:
    """The fields of several entries together."""
    merged: Object = {}
    for entry in entries:
        _merge(merged, entry.get("fieldsV1") or {})
    return merged


def _merge(into: Object, fields: Mapping[str, Any]) -> None:
    for name, below in fields.items():
        _merge(into.setdefault(name, {}), below)


def _leaves(value: Any, path: Path) -> Iterator[Path]:
    if isinstance(value, dict) and (value or path == ("metadata",)):
        for name, below in value.items():
            yield from _leaves(below, (*path, name))
    else:
        yield path


def _given_up(fields: Mapping[str, Any], wanted: Any, path: Path) -> Iterator[Path]:
    for step, below in fields.items():
        if step == "." or (step == f"f:{_STAMPED}" and path[-2:-1] == ("conditions",)):
            continue
        here = step_of(step)
        value = value_at(wanted, (here,))
        if value is MISSING:
            yield (*path, here)
        elif below:
            yield from _given_up(below, value, (*path, here))
