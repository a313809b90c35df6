"""The function: its name and its units."""

from __future__ import annotations

from namespace_registration.descriptor import descriptor
from namespace_registration.projects import Projects
from tenantry.serving import Function, Settings
from tenantry.serving.charts import chart_files


def _units(settings: Settings) -> list[Projects]:
    return [Projects(settings.config, chart_files(settings.config))]


function = Function(descriptor, _units)
