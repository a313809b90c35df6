"""What the Jobs that run Helm bring to their function."""

from __future__ import annotations

from release_provisioning import NAME
from tenantry.model.descriptor import EventsOf, Finalizer, Part, Service, Tells, Trigger
from tenantry.model.kinds import HELM_CHART, HELM_CHART_CONFIG, JOB
from tenantry.model.names import HELM_CHART_FINALIZER

_JOBS = f"{NAME}-helm-jobs"
HELM_JOBS = Service(
    _JOBS,
    NAME,
    "helm-jobs",
    ("jobs",),
    triggers=(Trigger(_JOBS, tuple(EventsOf(kind, NAME) for kind in (HELM_CHART, HELM_CHART_CONFIG, JOB))),),
    finalizers=(Finalizer(HELM_CHART, HELM_CHART_FINALIZER),),
)
part = Part(HELM_JOBS, tells=(Tells(HELM_CHART, "Failed", bad="True"),))
