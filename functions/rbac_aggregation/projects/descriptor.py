"""What the rights in releases bring to their function."""

from __future__ import annotations

from rbac_aggregation import NAME
from tenantry.model.descriptor import EventsOf, OwnerMark, Part, Product, Service, Source, Tells, Trigger, Watch
from tenantry.model.kinds import CLUSTER_ROLE_BINDING, PROJECT_HELM_CHART, ROLE, ROLE_BINDING
from tenantry.model.names import BINDING_OF, OPERATED, ROLE_OF, ROLES_BOUND_CONDITION

RELEASES = Service(
    NAME,
    NAME,
    "projects",
    ("projects",),
    sources=(
        Source(f"{NAME}-cluster", (Watch(CLUSTER_ROLE_BINDING),)),
        Source(f"{NAME}-owned", (Watch(PROJECT_HELM_CHART), Watch(ROLE_BINDING), Watch(ROLE, ROLE_OF))),
    ),
    triggers=(
        Trigger(f"{NAME}-cluster", (EventsOf(CLUSTER_ROLE_BINDING, NAME),)),
        Trigger(f"{NAME}-owned", tuple(EventsOf(kind, NAME) for kind in (PROJECT_HELM_CHART, ROLE_BINDING, ROLE))),
    ),
    memory_mib=288,
)
part = Part(
    RELEASES,
    settings=(
        "global.cattle.projectLabel",
        "helmProjectOperator.systemNamespace",
        "helmProjectOperator.charts.helmApiVersion",
        "helmProjectOperator.charts.releaseName",
        "helmProjectOperator.charts.singleton",
        "helmProjectOperator.projectReleaseNamespaces",
        "helmProjectOperator.releaseRoleBindings",
    ),
    makes=(Product(ROLE_BINDING, f"{OPERATED}=true"),),
    tells=(Tells(PROJECT_HELM_CHART, ROLES_BOUND_CONDITION),),
    marks=(OwnerMark("release", BINDING_OF),),
)
