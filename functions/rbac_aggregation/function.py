"""The function: its name and its units."""

from __future__ import annotations

from rbac_aggregation.projects import Releases
from tenantry.serving import Function, Settings


def _units(settings: Settings) -> list[Releases]:
    return [Releases(settings.config)]


function = Function("rbac-aggregation", _units, concurrency=64)
