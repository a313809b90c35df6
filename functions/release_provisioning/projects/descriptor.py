"""What the releases of projects bring to their function."""

from __future__ import annotations

from release_provisioning import NAME
from tenantry.model.descriptor import EventsOf, Finalizer, OwnerMark, Part, Service, Source, Tells, Trigger, Watch
from tenantry.model.kinds import (
    CONFIG_MAP,
    HELM_CHART,
    HELM_CHART_CONFIG,
    HELM_RELEASE,
    JOB,
    NAMESPACE,
    NETWORK_POLICY,
    PROJECT_HELM_CHART,
    SERVICE_ACCOUNT,
)
from tenantry.model.names import CHART_LABEL, DASHBOARD_VALUES, PROJECT_CHART, RELEASE_FINALIZER

REGISTRATION = "namespace-registration"

RELEASES = Service(
    NAME,
    NAME,
    "releases",
    ("projects",),
    sources=(
        Source(
            f"{NAME}-owned",
            (
                # also what only Helm's Jobs are woken by: one adapter for both
                *(Watch(kind) for kind in (PROJECT_HELM_CHART, HELM_CHART, HELM_CHART_CONFIG, HELM_RELEASE)),
                Watch(JOB, CHART_LABEL),
                Watch(CONFIG_MAP, DASHBOARD_VALUES),
            ),
        ),
    ),
    triggers=(
        Trigger(f"{NAME}-cluster", (EventsOf(NAMESPACE, REGISTRATION),)),
        Trigger(
            f"{NAME}-owned",
            (
                *(EventsOf(kind, NAME) for kind in (PROJECT_HELM_CHART, HELM_CHART, HELM_RELEASE, CONFIG_MAP)),
                *(EventsOf(kind, REGISTRATION) for kind in (SERVICE_ACCOUNT, NETWORK_POLICY)),
            ),
        ),
    ),
    finalizers=(Finalizer(PROJECT_HELM_CHART, RELEASE_FINALIZER),),
    memory_mib=256,
)
part = Part(
    RELEASES,
    settings=(
        "global.cattle",
        "helmProjectOperator.systemNamespace",
        "helmProjectOperator.systemNamespaces",
        "helmProjectOperator.controllerName",
        "helmProjectOperator.charts",
        "helmProjectOperator.projectReleaseNamespaces",
        "helmProjectOperator.otherSystemProjectLabelValues",
        "helmProjectOperator.hardenedNamespaces",
        "helmProjectOperator.helmController",
        "helmProjectOperator.valuesOverride",
        "helmProjectOperator.namespaceLabels",
        "helmProjectOperator.namespaceAnnotations",
    ),
    tells=(Tells(PROJECT_HELM_CHART, "Stalled", bad="True"),),
    marks=(OwnerMark("chart", PROJECT_CHART, annotation=True),),
)
