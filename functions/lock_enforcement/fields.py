"""Fields of objects: what of a manifest is locked, what people let others change, and how fields are named and found.

A path leads to a field through maps by name and through lists that the API merges by the keys of an entry.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from tenantry.model.kinds import Object

BUILT_IN = frozenset(
    {
        "",
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "apps",
        "autoscaling",
        "batch",
        "coordination.k8s.io",
        "discovery.k8s.io",
        "networking.k8s.io",
        "node.k8s.io",
        "policy",
        "rbac.authorization.k8s.io",
        "scheduling.k8s.io",
        "storage.k8s.io",
    }
)
"""Groups whose schema is known here.  Of others every list and map below a top field may be replaced whole."""

_OF_THE_SERVER = frozenset(
    {"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "managedFields", "selfLink"}
)


class Missing:
    """No value at all."""


MISSING: Final = Missing()

Entry = tuple[tuple[str, Any], ...]
"""The entry of a merged list that has these keys."""
Step = str | Entry
Path = tuple[Step, ...]


def shown(path: Path) -> str:
    """A path for people: ``spec.template.spec.containers[web].image``, ``data[key]``.  Values are never shown."""
    text = ""
    for before, step in zip(("", *path), path, strict=False):
        if not isinstance(step, str):
            text += "[" + ",".join(str(value) for _, value in step) + "]"
        elif before in ("labels", "annotations", "data", "binaryData", "matchLabels"):
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text


def entry_of(value: Any, keys: tuple[str, ...]) -> Entry | None:
    """What an entry of a list is known by; None for one that does not have these keys."""
    if not isinstance(value, dict):
        return None
    found = tuple((key, value.get(key, "TCP" if key == "protocol" else None)) for key in keys)
    return None if any(part is None or isinstance(part, dict | list) for _, part in found) else found


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
            steps = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
            wanted = _dropped(wanted, steps)
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
    """The smallest apply that puts these paths back: identity, and the fields at the paths.

    Of kinds whose schema is not known here the whole top-level field is taken, since a list or map inside may be replaced whole.
    """
    metadata = wanted["metadata"]
    body: Object = {
        "apiVersion": wanted["apiVersion"],
        "kind": wanted["kind"],
        "metadata": {part: metadata[part] for part in ("name", "namespace") if part in metadata},
    }
    known = wanted["apiVersion"].rpartition("/")[0] in BUILT_IN
    for path in paths:
        _copy(wanted, body, path if known or path[0] == "metadata" else path[:1])
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
    keys = dict(step)
    entry = next(value for value in source if isinstance(value, dict) and entry_of({**value}, tuple(keys)) == step)
    found = next((value for value in target if entry_of(value, tuple(keys)) == step), None)
    if not rest:
        target[:] = [value for value in target if value is not found]
        target.append({**keys, **entry})
        return
    if found is None:
        found = dict(keys)
        target.append(found)
    _copy(entry, found, rest)


def same_object(before: Object, after: Object) -> bool:
    """Whether an apply changed nothing but who owns fields."""
    return _significant(before) == _significant(after)


def _significant(obj: Object) -> Object:
    metadata = {
        name: value
        for name, value in obj["metadata"].items()
        if name not in ("managedFields", "resourceVersion", "generation") and value not in ({}, [])
    }
    return {**obj, "metadata": metadata}


def changed_paths(paths: Iterable[Path], before: Object, after: Object) -> tuple[Path, ...]:
    """Those of the paths at which an apply changed something."""
    return tuple(path for path in paths if value_at(before, path) != value_at(after, path))


def value_at(value: Any, path: Path) -> Any:
    """What an object has at a path, or `MISSING`."""
    for step in path:
        if isinstance(step, str):
            value = value.get(step, MISSING) if isinstance(value, dict) else MISSING
        else:
            entries = value if isinstance(value, list) else []
            value = next((found for found in entries if entry_of(found, tuple(key for key, _ in step)) == step), MISSING)
        if value is MISSING:
            return MISSING
    return value


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
    for name in fields:
        if name.startswith("k:") and json.loads(name[2:]) == dict(entry):
            return name
    return ""
