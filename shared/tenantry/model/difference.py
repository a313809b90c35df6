"""What one server-side apply would change: the rule behind "write only differences".

An apply is needed when a field that we want has another value (or none), or when our field manager owns
a field that we no longer want and must give up.  Both are computed from the live object and its
``managedFields`` (KEP-555), so that a run over a converged object makes no request at all.

Lists are compared whole, except those that the API merges by key (owner references, finalizers,
conditions): there only our own entries count and those of others stay.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tenantry.model.kinds import Object

MERGE_KEYS: Mapping[str, str] = {"ownerReferences": "uid", "conditions": "type", "secrets": "name", "finalizers": ""}
"""Lists that are merged, by field name, with the key of an entry; an empty key means a set of values."""

ATOMIC = frozenset({"podSelector", "namespaceSelector", "roleRef", "projectNamespaceSelector", "dashboardValues"})
"""Maps that are compared whole: an empty one means empty, not "anything", and names inside mean nothing to us."""

_STAMPED = "lastTransitionTime"
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
    if live is None:
        return Difference(changed=tuple(_leaves(body, "")), created=True)
    changed = tuple(_changed(body, live, ""))
    given_up: list[str] = []
    migrate = False
    for entry in entries_of(live, manager, subresource):
        lost = list(_given_up(entry.get("fieldsV1") or {}, body, ""))
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


def as_apply_entries(live: Object, manager: str) -> list[Object]:
    """``managedFields`` in which our plain updates are folded into our apply entry (no subresources)."""
    ours = entries_of(live, manager)
    others = [entry for entry in live["metadata"].get("managedFields") or () if entry not in ours]
    if not ours:
        return others
    merged: Object = {}
    for entry in ours:
        merge_fields(merged, entry.get("fieldsV1") or {})
    return [*others, {**ours[0], "operation": "Apply", "fieldsV1": merged}]


def merge_fields(into: Object, fields: Mapping[str, Any]) -> None:
    """Add the fields of one entry to those of another, which is changed."""
    for name, below in fields.items():
        merge_fields(into.setdefault(name, {}), below)


def _join(path: str, name: str) -> str:
    if not path:
        return name
    free_keys = path.rpartition(".")[2] in ("labels", "annotations", "data", "matchLabels")
    return f"{path}[{name}]" if free_keys else f"{path}.{name}"


def _is_stamped(path: str, name: str) -> bool:
    """True for the time in a condition: it is stamped when written, and never a reason to write."""
    return name == _STAMPED and "conditions[" in path


def _leaves(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for name, below in value.items():
            if path == "metadata" and name in _IDENTITY:
                continue
            yield from _leaves(below, _join(path, name))
    else:
        yield path


def _changed(wanted: Any, live: Any, path: str) -> Iterator[str]:
    if isinstance(wanted, dict):
        if not isinstance(live, dict):
            yield from _leaves(wanted, path)
            return
        for name, value in wanted.items():
            if (path == "metadata" and name in _IDENTITY) or _is_stamped(path, name):
                continue
            below = _join(path, name)
            if name in MERGE_KEYS and isinstance(value, list):
                yield from _changed_entries(value, live.get(name) or [], MERGE_KEYS[name], below)
            elif name in ATOMIC:
                if value != live.get(name):
                    yield below
            elif name not in live and not isinstance(value, dict):
                if value not in ([], None):
                    yield below
            else:
                yield from _changed(value, live.get(name, {}), below)
    elif wanted != live:
        yield path


def _changed_entries(wanted: Sequence[Any], live: Sequence[Any], key: str, path: str) -> Iterator[str]:
    for entry in wanted:
        if not key:
            if entry not in live:
                yield f"{path}[{entry}]"
            continue
        found = next((other for other in live if other.get(key) == entry.get(key)), None)
        here = f"{path}[{entry.get(key)}]"
        if found is None:
            yield here
        else:
            yield from _changed(entry, found, here)


def _given_up(fields: Mapping[str, Any], wanted: Any, path: str) -> Iterator[str]:
    for step, below in fields.items():
        if step == "." or _is_stamped(path, step.removeprefix("f:")):
            continue
        tag, _, rest = step.partition(":")
        present, value, here = _follow(tag, rest, wanted, path)
        if not present:
            yield here
        elif below:
            yield from _given_up(below, value, here)


def _follow(tag: str, rest: str, wanted: Any, path: str) -> tuple[bool, Any, str]:
    """Whether ``wanted`` has the field that a ``fieldsV1`` step names, its value and its path."""
    if tag == "f":
        present = isinstance(wanted, dict) and rest in wanted
        return present, wanted[rest] if present else None, _join(path, rest)
    decoded = json.loads(rest)
    entries = wanted if isinstance(wanted, list) else []
    if tag == "k":
        for entry in entries:
            if isinstance(entry, dict) and all(entry.get(name) == value for name, value in decoded.items()):
                return True, entry, f"{path}[{','.join(str(value) for value in decoded.values())}]"
        return False, None, f"{path}[{','.join(str(value) for value in decoded.values())}]"
    return decoded in entries, decoded, f"{path}[{decoded}]"
