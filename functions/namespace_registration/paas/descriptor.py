"""What namespaces of Paas bring to their function."""

from __future__ import annotations

from namespace_registration import NAME
from tenantry.model.descriptor import EventsOf, Finalizer, OwnerMark, Part, Service, Source, Tells, Trigger, Watch
from tenantry.model.kinds import NAMESPACE, RESOURCE_QUOTA
from tenantry.model.names import field_manager
from tenantry.model.paas.names import (
    CLUSTER_RESOURCE_QUOTA,
    MANAGED_BY_PAAS,
    PAAS,
    PAAS_CONFIG,
    PAAS_FINALIZER,
    PAAS_NS,
    READY,
    WARNINGS,
)

MANAGER = f"{field_manager(NAME)}-paas"
"""Not the field manager of projects, which write labels into the same namespaces."""
OPENSHIFT = "openshift"
"""The folder of ``knative/`` for what comes with OpenShift: a source ends while one of its kinds is not served."""
_PAAS, _QUOTAS = f"{NAME}-paas", f"{NAME}-quotas"
_DECLARED = (PAAS, PAAS_NS, PAAS_CONFIG)

PAAS_NAMESPACES = Service(
    NAME,
    NAME,
    sources=(
        Source(_PAAS, (*map(Watch, _DECLARED), Watch(RESOURCE_QUOTA, MANAGED_BY_PAAS)), whole=True),
        Source(_QUOTAS, (Watch(CLUSTER_RESOURCE_QUOTA),), whole=True, folder=OPENSHIFT),
    ),
    triggers=(
        Trigger(_PAAS, tuple(EventsOf(kind, NAME) for kind in (*_DECLARED, RESOURCE_QUOTA))),
        Trigger(_QUOTAS, (EventsOf(CLUSTER_RESOURCE_QUOTA, NAME),), folder=OPENSHIFT),
        Trigger(f"{NAME}-cluster", (EventsOf(NAMESPACE, NAME),)),
    ),
    finalizers=(Finalizer(PAAS, PAAS_FINALIZER, shared=True),),
)
part = Part(
    PAAS_NAMESPACES,
    # what the other parts tell is joined into these
    tells=tuple(each for kind in (PAAS, PAAS_NS) for each in (Tells(kind, READY), Tells(kind, WARNINGS, bad="True", warns=True))),
    marks=(OwnerMark("paas", MANAGED_BY_PAAS),),
)
