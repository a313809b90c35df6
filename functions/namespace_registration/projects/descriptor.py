"""What registration namespaces bring to their function."""

from __future__ import annotations

from namespace_registration import NAME
from tenantry.model.descriptor import EventsOf, OwnerMark, Part, Product, Service, Source, Tells, Trigger, Watch
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, NETWORK_POLICY, SERVICE_ACCOUNT
from tenantry.model.names import OPERATED, PROJECT_ID, REGISTERED_CONDITION

OURS = f"{OPERATED}=true"
_INSIDE = (CONFIG_MAP, SERVICE_ACCOUNT, NETWORK_POLICY)

PROJECTS = Service(
    NAME,
    NAME,
    sources=(
        Source(f"{NAME}-cluster", (Watch(NAMESPACE),), whole=True),
        Source(f"{NAME}-owned", tuple(Watch(kind, OURS) for kind in _INSIDE)),
    ),
    triggers=(
        Trigger(f"{NAME}-cluster", (EventsOf(NAMESPACE, NAME),)),
        Trigger(f"{NAME}-owned", tuple(EventsOf(kind, NAME) for kind in _INSIDE)),
    ),
)
part = Part(
    PROJECTS,
    settings=(
        "global.cattle.projectLabel",
        "global.cattle.clusterId",
        "global.cattle.systemProjectId",
        "helmProjectOperator.systemNamespace",
        "helmProjectOperator.systemNamespaces",
        "helmProjectOperator.charts.helmApiVersion",
        "helmProjectOperator.charts.chart",
        "helmProjectOperator.projectReleaseNamespaces",
        "helmProjectOperator.otherSystemProjectLabelValues",
        "helmProjectOperator.hardenedNamespaces",
        "helmProjectOperator.namespaceLabels",
        "helmProjectOperator.namespaceAnnotations",
    ),
    makes=(Product(CONFIG_MAP, OURS), Product(NETWORK_POLICY, OURS)),
    tells=(Tells(NAMESPACE, REGISTERED_CONDITION),),
    marks=(OwnerMark("project", PROJECT_ID),),
)
