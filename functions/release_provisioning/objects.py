"""Short forms for objects that both units make and read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tenantry.model.kinds import Kind, Object


def object_of(kind: Kind, metadata: Mapping[str, Any], **parts: Any) -> Object:
    """An object of a kind."""
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": dict(metadata), **parts}


def name_of(obj: Object) -> Object:
    """The metadata that names an object."""
    return {"name": obj["metadata"]["name"], "namespace": obj["metadata"]["namespace"]}


def finalizers_of(obj: Object) -> Sequence[str]:
    """The finalizers of an object."""
    found: list[str] = obj["metadata"].get("finalizers") or []
    return found
