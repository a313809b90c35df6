"""The function, by its descriptor."""

from release_provisioning.descriptor import descriptor
from release_provisioning.kept import kept_chart
from tenantry.model.kinds import PROJECT_HELM_CHART
from tenantry.serving import Function

function = Function(descriptor, keeps={PROJECT_HELM_CHART: kept_chart})
