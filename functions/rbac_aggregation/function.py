"""The function, by its descriptor."""

from __future__ import annotations

from rbac_aggregation.descriptor import descriptor
from tenantry.model.kinds import PROJECT_HELM_CHART
from tenantry.model.releases import header_of
from tenantry.serving import Function

function = Function(descriptor, concurrency=64, keeps={PROJECT_HELM_CHART: header_of})
