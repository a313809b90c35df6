"""What injection replaced in an object, kept in an annotation of that object, so that it can be put back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic_core import from_json

from scope_binding.namespace_scopes.names import ORIGINAL
from tenantry.model.kinds import Object, annotations_of
from tenantry.model.pointer import pointer


def record_of(obj: Object) -> dict[str, Any]:
    """What was replaced in an object, as its annotation tells; what nobody can read tells nothing."""
    try:
        found = from_json(annotations_of(obj).get(ORIGINAL, "{}"), allow_inf_nan=False)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def keeping(obj: Object, kept: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """JSON patch operations after which the annotation says this; nothing to keep removes it."""
    value = json.dumps(kept, sort_keys=True, separators=(",", ":")) if kept else ""
    present = annotations_of(obj)
    if present.get(ORIGINAL, "") == value:
        return []
    path = pointer("metadata", "annotations", ORIGINAL)
    if not value:
        return [{"op": "remove", "path": path}] if ORIGINAL in present else []
    first: list[Mapping[str, Any]] = [] if present else [{"op": "add", "path": "/metadata/annotations", "value": {}}]
    return [*first, {"op": "add", "path": path, "value": value}]
