"""release-provisioning: charts are asked for, clash, follow their project and go; what was made drifts and is put back."""

from tenantry.model.conditions import find_condition
from tenantry.model.kinds import (
    CONFIG_MAP,
    EVENT,
    HELM_CHART,
    HELM_RELEASE,
    NAMESPACE,
    PROJECT_HELM_CHART,
    annotations_of,
    labels_of,
)
from tenantry.model.names import OPERATED, ORPHANED, PROJECT_CHART
from tenantry.testing.workload import Workload, apply, delete, edit, namespace
from tenantry.testing.world import Moment

PROJECT, P, Q, SYSTEM = "field.cattle.io/projectId", "cattle-project-p-@", "cattle-project-q-@", "cattle-helm-system"
RELEASE, DUMMY = "demo-@-dummy", {"helmApiVersion": "dummy.cattle.io/v1alpha1"}


def home(project: str):  # type: ignore[no-untyped-def]
    """The registration namespace, as namespace-registration makes it."""
    labels = {OPERATED: "true", "helm.cattle.io/projectId": project, PROJECT: project}
    return namespace(f"cattle-project-{project}", labels)


def ask(where: str, **spec: object):  # type: ignore[no-untyped-def]
    """A ProjectHelmChart."""
    return apply("ProjectHelmChart", "demo-@", where, spec={**DUMMY, **spec})


JOIN, JOIN_TOO, LEAVE = namespace("a-@", {PROJECT: "p-@"}), namespace("b-@", {PROJECT: "p-@"}), namespace("a-@")
MOVE, FOREIGN = namespace("b-@", {PROJECT: "q-@"}), namespace(RELEASE, {"foreign.example/owner": "them"})
READY = [home("p-@"), JOIN, ask(P)]
DASHBOARD = apply(
    "ConfigMap", "dash", RELEASE, labels={"helm.cattle.io/dashboard-values-configmap": RELEASE}, data={"a.json": '{"k": 1}'}
)


def takes_away_with_a_reason(moment: Moment) -> str:
    """The function deletes HelmCharts and HelmReleases that were made for somebody, no namespace, and touches no foreign one."""
    before, after = moment.change.before, moment.change.after
    if not moment.by or before is None:
        return ""
    if after is None and (before["kind"] not in ("HelmChart", "HelmRelease") or PROJECT_CHART not in annotations_of(before)):
        return f"deleted a {before['kind']}"
    return "changed a foreign namespace" if "foreign.example/owner" in labels_of(before) else ""


workload = Workload(
    "release-provisioning",
    config={
        "global": {"cattle": {"systemProjectId": "p-system"}},
        "helmProjectOperator": {"helmController": {"enabled": False}},
    },
    tells=lambda obj: (find_condition(obj, "Stalled") or {}).get("status") == "True",
    destroys=lambda body: ORPHANED in labels_of(body),
    leftover=lambda obj: ORPHANED in labels_of(obj),
    safe=[takes_away_with_a_reason],
    watched=(NAMESPACE, CONFIG_MAP, PROJECT_HELM_CHART, HELM_CHART, HELM_RELEASE, EVENT),
)
workload.scenario("provision", ask(P), JOIN_TOO, before=[home("p-@"), JOIN])
workload.scenario("values", ask(P, values={"data": {"hello": "you"}}), DASHBOARD, before=READY)
workload.scenario("move-member", MOVE, before=[home("q-@"), *READY, JOIN_TOO], other=[*READY, MOVE, home("q-@")])
workload.scenario("clash", ask(Q), before=[home("q-@"), namespace("c-@", {PROJECT: "q-@"}), *READY])
workload.scenario("no-targets", LEAVE, JOIN, before=READY)
workload.scenario("unwanted", delete("ProjectHelmChart", "demo-@", P, gone=True), before=READY, other=[home("p-@"), JOIN])
workload.scenario("drift-chart", edit("HelmChart", RELEASE, SYSTEM, "/spec/valuesContent", "x: 1"), before=READY)
workload.scenario("drift-made", delete("HelmChart", RELEASE, SYSTEM), delete("HelmRelease", RELEASE, SYSTEM), before=READY)
workload.scenario("drift-labels", edit("Namespace", RELEASE, "", "/metadata/labels/helm.cattle.io~1projectId"), before=READY)
workload.scenario("rebuild", delete("Namespace", RELEASE, gone=True), before=READY)
workload.scenario("foreign", ask(P), before=[FOREIGN, home("p-@"), JOIN])
