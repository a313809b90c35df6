"""Fields of objects: what of a manifest is locked, where a live object differs from it, and what puts it back.

Only fields that the manifest names count, compared as the API server compares them (`tenantry.model.comparison`).  The comparison
may take something for drift that is none (an API may drop a zero or add a default, or a webhook may have its way): a dry run of
the apply has the last word before anything is written.  It must never overlook drift.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tenantry.model.comparison import METADATA, MISSING, Entry, Path, Schema, differing, find_entry, value_at
from tenantry.model.kinds import Object, name_metadata
from tenantry.model.pointer import steps_of

_OF_THE_SERVER = frozenset(
    {"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "managedFields", "selfLink"}
)


_COMPARED_METADATA = ("labels", "annotations", "ownerReferences", "finalizers")


def locked_fields(manifest: Object, namespace: str) -> Object:
    """The fields of a manifest that can be compared and applied.

    ``namespace`` is the one that the object lives in, empty for a cluster-scoped one.  Nulls say nothing and are left
    out, as are status and what only the server writes; a Secret's ``stringData`` becomes ``data``.
    """
    made: Object = {name: _without_nulls(value) for name, value in manifest.items() if name != "status" and value is not None}
    metadata = {
        name: value
        for name, value in (made.get("metadata") or {}).items()
        if name not in _OF_THE_SERVER and name not in ("namespace", "generateName")
    }
    made["metadata"] = {**metadata, **({"namespace": namespace} if namespace else {})}
    if made["kind"] == "Secret" and made["apiVersion"] == "v1" and isinstance(made.get("stringData"), dict):
        plain = made.pop("stringData")
        encoded = {name: base64.b64encode(str(value).encode()).decode() for name, value in plain.items()}
        data = made.get("data")
        made["data"] = {**(data if isinstance(data, dict) else {}), **encoded}
    return made


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(below) for name, below in value.items() if below is not None}
    return [_without_nulls(below) for below in value] if isinstance(value, list) else value


def drifted(wanted: Object, live: Object, schema: Schema) -> tuple[Path, ...]:
    """Where ``live`` differs from ``wanted`` (see `locked_fields`), in the order of the manifest."""
    paths: list[Path] = []
    for name, value in wanted.items():
        if name == "metadata":
            compared = {part: value[part] for part in _COMPARED_METADATA if part in value}
            paths += differing(compared, live["metadata"], METADATA, ("metadata",), absent_is_empty=True)
        elif name not in ("apiVersion", "kind"):
            paths += differing(value, live.get(name, MISSING), schema.below(name), (name,))
    return tuple(paths)


# -- ignored fields ----------------------------------------------------------------------------------------


_FOUND_BY = ("name", "namespace", "*")


def pointer_problem(pointer: object) -> str:
    """Why a text cannot say which field is ignored; empty when it can."""
    if not isinstance(pointer, str) or not pointer.startswith("/") or pointer == "/":
        return f"{pointer!r} is not a JSON pointer such as /spec/replicas"
    steps = pointer.split("/")[1:]
    if steps[0] in ("apiVersion", "kind", "*") or steps == ["metadata"] or (steps[0] == "metadata" and steps[1] in _FOUND_BY):
        return f"{pointer!r} is what the object is found by and cannot be ignored"
    return ""


def without_ignored(wanted: Object, pointers: Iterable[str]) -> Object:
    """``wanted`` without the fields that JSON pointers (RFC 6901) name.

    ``*`` is any step; in a list a step is the position, or the value of the entry's key (a container's name).
    """
    for pointer in pointers:
        if not pointer_problem(pointer):
            wanted = _dropped(wanted, steps_of(pointer))
    return wanted


def _dropped(value: Any, steps: Sequence[str]) -> Any:
    step, rest = steps[0], steps[1:]
    if isinstance(value, dict):
        kept = {}
        for name, below in value.items():
            if step not in ("*", name):
                kept[name] = below
            elif rest:
                kept[name] = _dropped(below, rest)
        return kept
    if isinstance(value, list):
        entries = []
        for number, entry in enumerate(value):
            keys = ("name", "mountPath", "containerPort", "port")
            named = isinstance(entry, dict) and step in [str(entry.get(key)) for key in keys]
            if step not in ("*", str(number)) and not named:
                entries.append(entry)
            elif rest:
                entries.append(_dropped(entry, rest))
        return entries
    return value


# -- what an apply changes ---------------------------------------------------------------------------------


def partial(wanted: Object, paths: Iterable[Path]) -> Object:
    """The smallest apply that puts these paths back: identity, and the fields at the paths."""
    body: Object = {"apiVersion": wanted["apiVersion"], "kind": wanted["kind"], "metadata": name_metadata(wanted)}
    for path in paths:
        _copy(wanted, body, path)
    return body


def _copy(source: Any, target: Any, path: Path) -> None:
    step, rest = path[0], path[1:]
    if isinstance(step, str):
        if not rest:
            target[step] = source[step]
            return
        below = source[step]
        _copy(below, target.setdefault(step, [] if isinstance(below, list) else {}), rest)
        return
    entry, found = find_entry(source, step), find_entry(target, step)
    if rest:
        if found is MISSING:
            found = dict(step)
            target.append(found)
        _copy(entry, found, rest)
    else:
        target[:] = [value for value in target if value is not found]
        target.append({**dict(step), **entry} if isinstance(entry, dict) else entry)


def content_of(obj: Object) -> Object:
    """What an object says, without its status, its versions and who owns its fields."""
    metadata = {
        name: value
        for name, value in obj["metadata"].items()
        if name not in ("managedFields", "resourceVersion", "generation") and value not in ({}, [])
    }
    return {name: value for name, value in obj.items() if name != "status"} | {"metadata": metadata}


def changed_paths(paths: Iterable[Path], before: Object, after: Object) -> tuple[Path, ...]:
    """Those of the paths at which an apply changed something."""
    return tuple(path for path in paths if value_at(before, path) != value_at(after, path))


# -- who did it --------------------------------------------------------------------------------------------


def managers_of(live: Object, paths: Iterable[Path], *, besides: Iterable[str]) -> tuple[str, ...]:
    """The field managers that own the paths; for a field that is gone, the one who wrote the object last."""
    entries = [
        entry
        for entry in live["metadata"].get("managedFields") or ()
        if entry.get("manager") not in set(besides) and entry.get("subresource") != "status"
    ]
    found: dict[str, None] = {}
    for path in paths:
        owners = [str(entry.get("manager")) for entry in entries if _owns(entry.get("fieldsV1") or {}, path)]
        if not owners and entries and value_at(live, path) is MISSING:
            owners = [str(max(entries, key=lambda entry: str(entry.get("time") or "")).get("manager"))]
        found.update(dict.fromkeys(owners))
    return tuple(found)


def _owns(fields: Any, path: Path) -> bool:
    for number, step in enumerate(path):
        if number and fields == {}:
            return True  # what is above is owned whole
        name = f"f:{step}" if isinstance(step, str) else _named_entry(fields, step)
        if name not in fields:
            return False
        fields = fields[name]
    return True


def _named_entry(fields: Mapping[str, Any], entry: Entry) -> str:
    """The step of ``fieldsV1`` that names an entry of a list, if it is there."""
    if entry[0][0] == "":
        return f"v:{json.dumps(entry[0][1])}"
    return next((name for name in fields if name.startswith("k:") and json.loads(name[2:]) == dict(entry)), "")
