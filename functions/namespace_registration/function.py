"""The function: its name and its units."""

from __future__ import annotations

from namespace_registration.projects import Projects
from tenantry.serving import Function, Settings


def _units(settings: Settings) -> list[Projects]:
    return [Projects(settings.config, settings.charts)]


function = Function("namespace-registration", _units)
