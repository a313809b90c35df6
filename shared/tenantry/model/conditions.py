"""Conditions on objects, as ``metav1.Condition`` has them, without a clock.

A plan says type, status, reason and message; `stamped` adds ``lastTransitionTime`` at the moment of
writing and keeps the old one while the status stays the same, so that time alone is never a difference.
"""

from __future__ import annotations

from typing import Any, Literal

from tenantry.model import limits
from tenantry.model.kinds import Object


def condition(
    type_: str, status: Literal["True", "False", "Unknown"], reason: str, message: str, generation: int | None = None
) -> Object:
    """One condition; ``generation`` is the observed generation, where the object has one."""
    made: Object = {"type": type_, "status": status, "reason": reason, "message": message[: limits.MESSAGE_CHARACTERS]}
    if generation is not None:
        made["observedGeneration"] = generation
    return made


def find_condition(obj: Object | None, type_: str) -> Object | None:
    """The condition of that type in an object's status."""
    conditions: list[Any] = ((obj or {}).get("status") or {}).get("conditions") or []
    return next((found for found in conditions if found.get("type") == type_), None)


def stamped(wanted: Object, live: Object | None, now: str) -> Object:
    """``wanted`` with ``lastTransitionTime`` in each of its conditions."""
    status = wanted.get("status")
    if not isinstance(status, dict) or "conditions" not in status:
        return wanted
    conditions = []
    for made in status["conditions"]:
        old = find_condition(live, made["type"])
        same = old is not None and old.get("status") == made["status"]
        since = (old or {}).get("lastTransitionTime") if same else None
        conditions.append({**made, "lastTransitionTime": since or now})
    return {**wanted, "status": {**status, "conditions": conditions}}
