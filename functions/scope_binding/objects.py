"""Short forms for objects that several units make."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tenantry.model.kinds import (
    CLUSTER_ROLE_BINDING,
    MUTATING_WEBHOOKS,
    ROLE,
    ROLE_BINDING,
    VALIDATING_WEBHOOKS,
    Kind,
    Object,
    object_of,
)

KINDS = {kind.kind: kind for kind in (ROLE, ROLE_BINDING, CLUSTER_ROLE_BINDING, VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS)}
"""The kinds of which there are two where one is meant, by name."""


def binding_of(kind: Kind, metadata: Mapping[str, Any], role: tuple[Kind, str], subjects: Iterable[Object]) -> Object:
    """A binding to a role, which is given by kind and name."""
    of, name = role
    reference = {"apiGroup": of.group, "kind": of.kind, "name": name}
    return object_of(kind, metadata, roleRef=reference, subjects=list(subjects))


def account_subject(namespace: str, name: str) -> Object:
    """A ServiceAccount as a subject of a binding."""
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}
