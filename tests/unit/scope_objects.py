"""Declarations of scopes, and objects as the API server has them, for tests without a cluster."""

from __future__ import annotations

from typing import Any

from tenantry.model.kinds import Kind, Object, object_of

SUBJECT: Object = {"kind": "ServiceAccount", "name": "op", "namespace": "ops"}
ROLES: list[Object] = [
    {"generateName": "t", "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}], "subjects": [SUBJECT]}
]
"""The one role of a template."""


def declared(kind: Kind, name: str, **spec: Any) -> Object:
    """A declaration in its first generation."""
    metadata = {"name": name, "uid": f"uid-of-{name}", "generation": 1, "resourceVersion": "1"}
    return object_of(kind, metadata, spec=spec)


def stored(body: Object) -> Object:
    """What was wanted, as it is when it was made."""
    return {**body, "metadata": {"uid": "u", "resourceVersion": "1", **body["metadata"]}}
