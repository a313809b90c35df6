"""What a write makes of an object: server-side apply, a create, a JSON patch, as an API server carries them out.

Pure, and as exact as the difference rule needs it (`tenantry.model.difference`): what fields have, who owns them, the generation.
Admission, conversion and defaults of Kubernetes' own kinds are not here.  Who dates an object and counts versions is the caller.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

from tenantry.model.comparison import METADATA, MISSING, Schema, value_at
from tenantry.model.difference import entries_of
from tenantry.model.field_sets import (
    Fields,
    add_path,
    entries_without,
    entry_step,
    fields_in,
    leaves,
    lost,
    take_out,
    value_of,
)
from tenantry.model.kinds import Object
from tenantry.model.names import NAMESPACE_NAME
from tenantry.model.pointer import steps_of

_SYSTEM = ("name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "managedFields")
"""Metadata that is no field of anybody's."""
_COUNTED_GROUPS = ("apps", "batch", "networking.k8s.io", "policy", "admissionregistration.k8s.io", "apiextensions.k8s.io")
"""Groups of Kubernetes whose objects have a generation."""
_KUBERNETES_GROUPS = (".k8s.io",)


class BadPatchError(ValueError):
    """A JSON patch cannot be carried out on the object; the message names the step."""


def is_custom(group: str) -> bool:
    """Whether a kind of a group comes from a CRD."""
    return "." in group and not group.endswith(_KUBERNETES_GROUPS)


def is_counted(group: str) -> bool:
    """Whether objects of a group's kinds have a generation."""
    return is_custom(group) or group in _COUNTED_GROUPS


def with_metadata(schema: Schema) -> Schema:
    """The schema of a whole object: its metadata is merged alike in every kind."""
    metadata = schema.properties.get("metadata")
    if metadata is not None and "finalizers" in metadata.properties:
        return schema
    known = METADATA if metadata is None else Schema(properties={**metadata.properties, **METADATA.properties})
    return Schema(properties={**schema.properties, "metadata": known}, other=schema.other)


def merged(live: Any, wanted: Any, schema: Schema) -> Any:
    """``wanted`` laid on ``live`` as the schema merges: maps and keyed lists deeply, all else is replaced."""
    if isinstance(wanted, dict) and isinstance(live, dict) and not schema.atomic:
        return {**live, **{name: merged(live.get(name), value, schema.below(name)) for name, value in wanted.items()}}
    if isinstance(wanted, list) and isinstance(live, list) and schema.keys is not None:
        steps = [entry_step(each, schema) for each in wanted]
        before = [entry_step(each, schema) for each in live]
        if None not in steps and None not in before:
            there = dict(zip(before, live, strict=True))
            below = schema.below()
            return [
                deepcopy(there[step] if number is None else merged(there.get(step), wanted[number], below))
                for step, number in _in_order(before, steps)
            ]
    return deepcopy(wanted)


def _in_order(before: Sequence[str | None], steps: Sequence[str | None]) -> Iterator[tuple[str | None, int | None]]:
    """The entries of two lists merged, each with its number in the second: that one's order counts, and what only the first has
    stays where it was (structured-merge-diff, ``visitListItems``).
    """
    left, right, wanted, done = 0, 0, set(steps), set[str | None]()
    while left < len(before) or right < len(steps):
        if left < len(before):
            step = before[left]
            if step in done:
                left += 1
                continue
            if step not in wanted:
                left += 1
                yield step, None
                continue
        if right < len(steps):
            done.add(steps[right])
            yield steps[right], right
            right += 1


def filled(value: Any, schema: Schema) -> Any:
    """A value with the defaults that a CRD's schema gives, where a map is there to have them."""
    if isinstance(value, dict):
        found = {name: deepcopy(each.default) for name, each in schema.properties.items() if each.default is not None}
        return {name: filled(below, schema.below(name)) for name, below in {**found, **value}.items()}
    if isinstance(value, list):
        return [filled(each, schema.below()) for each in value]
    return value


def as_stored(made: Object) -> Object:
    """An object of one of Kubernetes' own kinds as it is stored: what is empty is not there, and a few defaults are."""
    found: Object = _without_empty_lists({name: value for name, value in made.items() if name != "metadata"})
    found["metadata"] = made["metadata"]
    kind = made["kind"]
    if kind in ("Secret", "ConfigMap"):
        plain = found.pop("stringData", None) or {}
        if plain:
            coded = {name: base64.b64encode(str(value).encode()).decode() for name, value in plain.items()}
            found["data"] = {**(found.get("data") or {}), **coded}
        found = {name: value for name, value in found.items() if value != {}}
    if kind == "Secret":
        found.setdefault("type", "Opaque")
    if kind == "Namespace":
        found["status"] = {"phase": "Active", **(found.get("status") or {})}
        labels = {**(made["metadata"].get("labels") or {}), NAMESPACE_NAME: made["metadata"]["name"]}
        found["metadata"] = {**made["metadata"], "labels": labels}
    if kind in ("RoleBinding", "ClusterRoleBinding"):
        found["roleRef"] = {"apiGroup": _RBAC, **(found.get("roleRef") or {})}
        if found.get("subjects"):
            found["subjects"] = [_subject(each) for each in found["subjects"]]
    return found


_RBAC = "rbac.authorization.k8s.io"


def _subject(subject: Object) -> Object:
    return subject if subject.get("kind") == "ServiceAccount" else {"apiGroup": _RBAC, **subject}


def _without_empty_lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_empty_lists(below) for name, below in value.items() if below != []}
    return [_without_empty_lists(each) for each in value] if isinstance(value, list) else value


def fields_of_write(body: Object, schema: Schema, parts: Sequence[str] = ()) -> Fields:
    """The fields that a body names, but for what names the object; ``parts`` are those that a subresource takes."""
    kept = {name: value for name, value in body.items() if name not in ("apiVersion", "kind") and (not parts or name in parts)}
    if "metadata" in kept:
        kept["metadata"] = {name: value for name, value in kept["metadata"].items() if name not in _SYSTEM}
        if not kept["metadata"]:
            del kept["metadata"]
    return fields_in(kept, schema)


def applied(
    body: Object, live: Object | None, schema: Schema, *, manager: str, subresource: str = "", has_status: bool = False
) -> Object:
    """What a forced apply of ``body`` makes; what the manager applied before and leaves out now goes, where nobody else owns it.

    Args:
        has_status: the status of the kind is written by itself: an apply of the rest leaves it as it is.
    """
    schema = with_metadata(schema)
    parts = (subresource,) if subresource else tuple(name for name in body if name != "status" or not has_status)
    fields = fields_of_write(body, schema, parts)
    base: Object = deepcopy(live) if live is not None else {name: body[name] for name in ("apiVersion", "kind")}
    base.setdefault("metadata", {name: body["metadata"][name] for name in ("name", "namespace") if name in body["metadata"]})
    wanted = {name: body[name] for name in parts if name in body and name not in ("apiVersion", "kind")}
    if "metadata" in wanted:
        wanted["metadata"] = {name: value for name, value in wanted["metadata"].items() if name not in _SYSTEM}
    made: Object = merged(base, wanted, schema)
    entries: list[Object] = made["metadata"].pop("managedFields", None) or []
    made["metadata"] = {**made["metadata"]}
    before = _entry_in(entries, manager, "Apply", subresource)
    others = [each for each in entries if each is not before]
    changed = [path for path in leaves(fields) if value_of(base, path) != value_of(made, path)]
    others = entries_without(others, changed)
    for path in list(lost((before or {}).get("fieldsV1") or {}, fields, [each.get("fieldsV1") or {} for each in others])):
        take_out(made, path)
    own = [_entry(body, manager, "Apply", subresource, fields)] if fields else []
    _own(made, [*others, *own])
    return made


def created(body: Object, schema: Schema, *, manager: str, has_status: bool = False) -> Object:
    """What a create of ``body`` makes: its fields are the manager's, by an update."""
    made = deepcopy(body)
    if has_status:
        made.pop("status", None)
    made["metadata"].pop("managedFields", None)
    _own(made, [_entry(body, manager, "Update", "", fields_of_write(made, with_metadata(schema)))])
    return made


def updated(after: Object, live: Object, schema: Schema, *, manager: str, subresource: str = "") -> Object:
    """``after`` as an update of ``live`` that a manager made: he owns what he changed, and nobody owns what is gone.

    Who wrote ``managedFields`` themselves has said who owns what.
    """
    made, schema = deepcopy(after), with_metadata(schema)
    made["metadata"] = _without_empty(made["metadata"])
    entries: list[Object] = deepcopy(made["metadata"].get("managedFields") or [])
    if entries != (live["metadata"].get("managedFields") or []):
        return made
    now, before = (fields_of_write(each, schema) for each in (made, live))
    changed = [path for path in leaves(now) if value_of(live, path) != value_of(made, path)]
    gone = [path for path in leaves(before) if value_of(made, path) is MISSING]
    entries = entries_without(entries, [*changed, *gone])
    if changed:
        entry = _entry_in(entries, manager, "Update", subresource)
        if entry is None:
            entry = _entry(made, manager, "Update", subresource, {})
            entries.append(entry)
        for path in changed:
            add_path(entry["fieldsV1"], path)
    _own(made, entries)
    return made


def _entry_in(entries: list[Object], manager: str, operation: str, subresource: str) -> Object | None:
    own = entries_of({"metadata": {"managedFields": entries}}, manager, subresource)
    return next((each for each in own if each.get("operation") == operation), None)


def _entry(obj: Object, manager: str, operation: str, subresource: str, fields: Fields) -> Object:
    """An entry of ``managedFields``."""
    entry = {"manager": manager, "operation": operation, "apiVersion": obj["apiVersion"], "fieldsType": "FieldsV1"}
    return {**entry, **({"subresource": subresource} if subresource else {}), "fieldsV1": fields}


def _without_empty(metadata: Object) -> Object:
    """Metadata as it is stored: what is empty is not there."""
    return {name: value for name, value in metadata.items() if value not in ({}, [])}


def _own(made: Object, entries: list[Object]) -> None:
    made["metadata"] = _without_empty(made["metadata"])
    made["metadata"].pop("managedFields", None)
    if entries:
        made["metadata"]["managedFields"] = entries


_FIXED: Mapping[str, tuple[str, ...]] = {
    "RoleBinding": ("roleRef",),
    "ClusterRoleBinding": ("roleRef",),
    "Deployment": ("spec", "selector"),
    "StatefulSet": ("spec", "selector"),
    "DaemonSet": ("spec", "selector"),
    "Job": ("spec", "template"),
}
_CONTENTS = ("data", "binaryData", "stringData", "immutable")


def fixed_change(live: Object, made: Object) -> str:
    """What a write would change that an API server lets nobody change once it is there; empty when nothing."""
    if live.get("immutable") is True:
        return next((f"{name}: field is immutable" for name in _CONTENTS if live.get(name) != made.get(name)), "")
    path = _FIXED.get(made["kind"], ())
    return f"{'.'.join(path)}: field is immutable" if path and value_at(live, path) != value_at(made, path) else ""


def same_content(one: Object, other: Object) -> bool:
    """Whether nothing differs but versions and times of ownership."""
    return _content(one) == _content(other)


def _content(obj: Object) -> Object:
    entries = [
        {name: value for name, value in each.items() if name != "time"} for each in obj["metadata"].get("managedFields") or ()
    ]
    entries.sort(key=lambda each: (each["manager"], each.get("operation", ""), each.get("subresource") or ""))
    metadata = {name: value for name, value in obj["metadata"].items() if name not in ("resourceVersion", "generation")}
    return {**obj, "metadata": {**metadata, "managedFields": [_bare(each) for each in entries]}}


def _bare(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {name: _bare(below) for name, below in value.items() if name != "."}


def declared_part(obj: Object, *, has_status: bool) -> Object:
    """What counts for the generation: all but metadata, and but a status that is written by itself."""
    return {name: value for name, value in obj.items() if name != "metadata" and not (has_status and name == "status")}


def patched(live: Object, operations: Sequence[Mapping[str, Any]]) -> Object:
    """What a JSON patch (RFC 6902) makes: ``add``, ``remove``, ``replace`` and ``test``.

    Raises:
        BadPatchError: a test fails, or a place is not there.
    """
    made = deepcopy(live)
    for step in operations:
        names = steps_of(step["path"])
        parent: Any = made
        try:
            for name in names[:-1]:
                parent = parent[int(name)] if isinstance(parent, list) else parent[name]
            _one(parent, names[-1], step)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise BadPatchError(f"{step['op']} {step['path']}: not there, or not as it was") from error
    return made


def _one(parent: Any, name: str, step: Mapping[str, Any]) -> None:
    place: Any = (len(parent) if name == "-" else int(name)) if isinstance(parent, list) else name
    match step["op"]:
        case "test":
            found = parent[place] if isinstance(parent, list) else parent.get(place)
            if found != step.get("value"):
                raise ValueError(name)
        case "remove":
            del parent[place]
        case "add" if isinstance(parent, list):
            parent.insert(place, deepcopy(step["value"]))
        case "add" | "replace":
            if step["op"] == "replace":
                parent[place]  # which must be there
            parent[place] = deepcopy(step["value"])
        case _:
            raise ValueError(step["op"])
