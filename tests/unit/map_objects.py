"""What tests of the map have in common: a moment, and conditions."""

from __future__ import annotations

from datetime import UTC, datetime

from tenantry.model.kinds import Object

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)


def said(type_: str, status: str, reason: str, message: str = "it is wrong: correct it") -> Object:
    condition = {"type": type_, "status": status, "reason": reason, "message": message}
    return {"conditions": [{**condition, "lastTransitionTime": "2026-11-27T11:00:00Z"}]}
