"""The ways in which the API lets somebody change an object: whole, by patches, by apply, through subresources."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from tenantry.api import Api
from tenantry.model.kinds import Kind, Object

MERGE, JSON_PATCH, APPLY = "application/merge-patch+json", "application/json-patch+json", "application/apply-patch+yaml"
PARTS = ("labels", "annotations", "finalizers", "managedFields")
"""Parts of metadata that marks are in."""

Way = Callable[..., Awaitable[Object]]
"""``await way(api, kind, before, after, subresource="", manager="")``: make of an object another one."""


def place_of(kind: Kind, obj: Object, subresource: str = "") -> str:
    metadata = obj["metadata"]
    return kind.path(metadata.get("namespace", ""), metadata["name"]) + (f"/{subresource}" if subresource else "")


def changes(before: Object, after: Object) -> dict[str, Any]:
    """What of metadata and status differs, as a merge patch."""
    found: dict[str, Any] = {}
    for part in PARTS:
        old, new = before["metadata"].get(part), after["metadata"].get(part)
        if old == new:
            continue
        if isinstance(new, dict) or isinstance(old, dict):
            gone = dict.fromkeys((old or {}).keys() - (new or {}).keys())
            new = {**gone, **{key: text for key, text in (new or {}).items() if (old or {}).get(key) != text}}
        found.setdefault("metadata", {})[part] = new
    if before.get("status") != after.get("status"):
        found["status"] = after.get("status")
    return found


async def put(api: Api, kind: Kind, before: Object, after: Object, subresource: str = "", manager: str = "") -> Object:
    """The whole object, as it is to be; of a custom resource the API server asks for the version."""
    if kind.group and not kind.group.endswith(".k8s.io"):
        live = await api.get(kind, before["metadata"]["name"], before["metadata"].get("namespace", "")) or before
        after = {**after, "metadata": {**after["metadata"], "resourceVersion": live["metadata"]["resourceVersion"]}}
    return await api.request("PUT", place_of(kind, after, subresource), _query(api, manager), after)


async def merge(api: Api, kind: Kind, before: Object, after: Object, subresource: str = "", manager: str = "") -> Object:
    """A merge patch."""
    return await _patch(api, kind, before, changes(before, after), MERGE, subresource, manager)


async def json_patch(api: Api, kind: Kind, before: Object, after: Object, subresource: str = "", manager: str = "") -> Object:
    """A JSON patch of whole parts."""
    steps = [
        {"op": "add", "path": f"/metadata/{part}", "value": after["metadata"].get(part) or ([] if part == "finalizers" else {})}
        for part in changes(before, after).get("metadata", {})
    ]
    if "status" in changes(before, after):
        steps.append({"op": "add", "path": "/status", "value": after.get("status")})
    return await _patch(api, kind, before, steps, JSON_PATCH, subresource, manager)


async def apply(api: Api, kind: Kind, before: Object, after: Object, subresource: str = "", manager: str = "") -> Object:
    """A forced server-side apply of what differs; it cannot take away what another manager owns."""
    changed = changes(before, after)
    metadata = {key: before["metadata"][key] for key in ("name", "namespace") if key in before["metadata"]}
    body = {"apiVersion": kind.api_version, "kind": kind.kind, **changed, "metadata": {**metadata, **changed.get("metadata", {})}}
    return await _patch(api, kind, before, body, APPLY, subresource, manager)


WAYS: Mapping[str, Way] = {"put": put, "merge": merge, "json-patch": json_patch, "apply": apply}


async def create(api: Api, kind: Kind, body: Object, manager: str = "") -> Object:
    """A new object; with ``metadata.generateName`` instead of a name the API server makes one up."""
    return await api.request("POST", kind.path(body["metadata"].get("namespace", "")), _query(api, manager), body)


async def _patch(api: Api, kind: Kind, before: Object, body: Any, content: str, subresource: str, manager: str) -> Object:
    query = _query(api, manager) | ({"force": "true"} if content == APPLY else {})
    return await api.request("PATCH", place_of(kind, before, subresource), query, body, content_type=content)


def _query(api: Api, manager: str) -> dict[str, str]:
    return {"fieldManager": manager or api.field_manager}


def with_part(obj: Object, part: str, key: str, value: str | None) -> Object:
    """An object with a label, an annotation or a finalizer, or without it when the value is None."""
    made = copy.deepcopy(obj)
    metadata = made["metadata"]
    metadata.pop("resourceVersion", None)
    if part == "finalizers":
        others = [each for each in metadata.get(part) or () if each != key]
        metadata[part] = others if value is None else [*others, key]
    else:
        metadata[part] = {**(metadata.get(part) or {}), **({} if value is None else {key: value})}
        if value is None:
            metadata[part].pop(key, None)
    return made
