"""Objects as people declare them."""

from __future__ import annotations

from typing import Any

from tenantry.model.kinds import Kind, Object


def obj(
    kind: Kind, name: str, namespace: str = "", labels: Object | None = None, annotations: Object | None = None, **rest: Any
) -> Object:
    """An object; ``metadata`` among the rest adds to its metadata."""
    metadata: Object = {"name": name, **({"namespace": namespace} if namespace else {})}
    metadata |= {"labels": labels} if labels else {}
    metadata |= {"annotations": annotations} if annotations else {}
    metadata |= rest.pop("metadata", {})
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **rest}
