"""Pods as a test writes them, and the time that controllers have for what they do about them."""

from __future__ import annotations

import secrets

from tenantry.model.kinds import POD, Object
from tenantry.testing.objects import obj

CONTROLLER_S = 20.0  # controllers of the control plane see new objects by watches, and share the cores with everything else
PLAIN: Object = {
    "securityContext": {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
    "containers": [
        {
            "name": "c",
            "image": "image.invalid/x",
            "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        }
    ],
}


def pod(namespace: str, spec: Object, name: str = "", labels: dict[str, str] | None = None) -> Object:
    """A pod with this spec, under a name of its own unless one is given."""
    return obj(POD, name or f"pod-{secrets.token_hex(4)}", namespace, labels=labels or {}, spec=spec)
