"""Sets of fields, as ``managedFields`` write them (``fieldsV1``, KEP-555): the fields of a value, and what becomes of it.

``f:name`` is a field of a map, ``k:{...}`` an entry of a list that is merged by keys, ``v:...`` a value of a set.  What a
`Schema` calls atomic, and lists that are replaced whole, are one field.  ``.`` is left out: nothing here depends on it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tenantry.model.comparison import MISSING, Schema, find_entry, step_of, value_at
from tenantry.model.kinds import Object

Fields = dict[str, Any]
Steps = tuple[str, ...]
"""A path in a set of fields, such as ``("f:metadata", "f:labels", "f:team")``."""


def fields_in(value: Any, schema: Schema) -> Fields:
    """The fields of a value; none below what is replaced whole."""
    return _fields(value, schema) or {}


def _fields(value: Any, schema: Schema) -> Fields | None:
    """The same; None of what is no field either: a merged list without entries, and a map of nothing but such."""
    if isinstance(value, dict) and not schema.atomic:
        inside = {f"f:{name}": _fields(below, schema.below(name)) for name, below in value.items()}
        found = {step: below for step, below in inside.items() if below is not None}
        return found if found or not value else None
    if isinstance(value, list) and schema.keys is not None:
        if not value:
            return None
        steps = {entry_step(each, schema): each for each in value}
        if None not in steps and len(steps) == len(value):
            below = schema.below()
            return {str(step): fields_in(each, below) if schema.keys else {} for step, each in steps.items()}
    return {}


def entry_step(value: Any, schema: Schema) -> str | None:
    """How a set of fields calls an entry of a merged list; None for one that lacks its keys."""
    if not schema.keys:
        return None if isinstance(value, dict | list) else f"v:{json.dumps(value, separators=(',', ':'))}"
    if not isinstance(value, dict):
        return None
    below = schema.below()
    named = {key: value.get(key, below.below(key).default) for key in sorted(schema.keys)}
    return None if None in named.values() else f"k:{json.dumps(named, separators=(',', ':'))}"


def leaves(fields: Mapping[str, Any], path: Steps = ()) -> Iterator[Steps]:
    """The paths that end in a set of fields."""
    for step, below in fields.items():
        if step == ".":
            continue
        if _is_deep(below):
            yield from leaves(below, (*path, step))
        else:
            yield (*path, step)


def lost(
    before: Mapping[str, Any], now: Mapping[str, Any], others: Sequence[Mapping[str, Any]], path: Steps = ()
) -> Iterator[Steps]:
    """What was in a set of fields, is not any more, and is in none of the others; beside metadata the highest such path.

    So what nobody owns, such as a default, goes with the field that it is in (structured-merge-diff, ``prune``).
    """
    for step, below in before.items():
        if step == ".":
            continue
        left = [each[step] for each in others if step in each]
        is_whole = (*path, step)[0] != "f:metadata" or step[0] in "kv" or not _is_deep(below)
        if step in now or not is_whole or (left and _is_deep(below)):
            yield from lost(below, now.get(step, {}), left, (*path, step))
        elif not left:
            yield (*path, step)


def _is_deep(fields: Mapping[str, Any]) -> bool:
    return any(each != "." for each in fields)


def add_path(fields: Fields, path: Steps) -> None:
    """Add a path to a set of fields."""
    for step in path:
        fields = fields.setdefault(step, {})


def drop_path(fields: Fields, path: Steps) -> None:
    """Take a path, and all below it, out of a set of fields, and what is empty above it then."""
    if not path or path[0] not in fields:
        return
    if len(path) > 1:
        drop_path(fields[path[0]], path[1:])
        if _is_deep(fields[path[0]]):
            return
    del fields[path[0]]


def value_of(value: Any, path: Steps) -> Any:
    """What a value has at a path, or `MISSING`."""
    return value_at(value, tuple(map(step_of, path)))


def take_out(value: Any, path: Steps) -> None:
    """Remove what a value has at a path, and the maps and lists that are empty then."""
    step, rest = step_of(path[0]), path[1:]
    if isinstance(step, str):
        if not isinstance(value, dict) or step not in value:
            return
        if rest:
            take_out(value[step], rest)
        if not rest or value[step] in ({}, []):
            del value[step]
    elif isinstance(value, list) and (found := find_entry(value, step)) is not MISSING:
        if rest:
            take_out(found, rest)
        else:
            value.remove(found)


def entries_without(entries: list[Object], paths: list[Steps]) -> list[Object]:
    """``managedFields`` in which nobody owns these paths; who owns nothing then is not in it."""
    kept = []
    for entry in entries:
        for path in paths:
            drop_path(entry.get("fieldsV1") or {}, path)
        if entry.get("fieldsV1"):
            kept.append(entry)
    return kept
