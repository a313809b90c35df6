"""The function: its name and its units."""

from __future__ import annotations

from rbac_aggregation.descriptor import descriptor
from rbac_aggregation.projects import Releases
from tenantry.model.kinds import PROJECT_HELM_CHART
from tenantry.model.releases import header_of
from tenantry.serving import Function, Settings


def _units(settings: Settings) -> list[Releases]:
    return [Releases(settings.config)]


function = Function(descriptor, _units, concurrency=64, keeps={PROJECT_HELM_CHART: header_of})
