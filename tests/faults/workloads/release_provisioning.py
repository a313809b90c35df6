"""release-provisioning: charts are asked for, clash, follow their project and go; what was made drifts and is put back."""

from tenantry.model import kinds
from tenantry.model.conditions import find_condition
from tenantry.model.names import DASHBOARD_VALUES, OPERATED, ORPHANED, PROJECT_CHART, PROJECT_ID
from tenantry.testing.workload import Step, Workload, apply, delete, edit, namespace, together
from tenantry.testing.world import Moment

PROJECT, P, Q, SYSTEM = "field.cattle.io/projectId", "cattle-project-p-@", "cattle-project-q-@", "cattle-helm-system"
RELEASE, DUMMY, ALSO = "demo-@-dummy", "dummy.cattle.io/v1alpha1", (kinds.SERVICE_ACCOUNT, kinds.NETWORK_POLICY, kinds.EVENT)


def member(name: str, project: str, before: str = "") -> Step:
    """A namespace of a project, with its memory of it."""
    return namespace(name, {PROJECT: project, PROJECT_ID: before or project})


def ask(where: str, **spec: object) -> Step:
    return apply("ProjectHelmChart", "demo-@", where, spec={"helmApiVersion": DUMMY, **spec})


HOME, OTHER = (namespace(f"cattle-project-{p}", {OPERATED: "true", PROJECT_ID: p, PROJECT: p}) for p in ("p-@", "q-@"))
JOIN, JOIN_TOO, MOVE, THEIRS = (member(*each) for each in (("a-@", "p-@"), ("b-@", "p-@"), ("b-@", "q-@", "p-@"), ("c-@", "q-@")))
LEAVE, OFF = namespace("a-@", {PROJECT_ID: "p-@"}), edit("Namespace", RELEASE, "", "/metadata/labels/helm.cattle.io~1projectId")
FOREIGN, GIVEN = namespace(RELEASE, {"foreign.example/owner": "them"}), ask(P, values={"data": {"hello": "you"}})
READY, UNWANTED = [together(HOME, JOIN, ask(P))], delete("ProjectHelmChart", "demo-@", P, gone=True)
DASHBOARD = apply("ConfigMap", "dash", RELEASE, labels={DASHBOARD_VALUES: RELEASE}, data={"a.json": '{"k": 1}'})


def takes_away_with_a_reason(moment: Moment) -> str:
    """HelmCharts and HelmReleases go only with who asked, his project or their namespace; nothing foreign is changed."""
    if not moment.by or (before := moment.change.before) is None:
        return ""
    if moment.change.after is None and before["kind"] != "ProjectHelmChart":
        home, _, name = kinds.annotations_of(before).get(PROJECT_CHART, "").partition("/")
        asked = moment.declared("ProjectHelmChart", name, home)
        there = {k for k, obj in moment.objects.items() if k.kind == "Namespace" and not kinds.is_terminating(obj)}
        was = [found for k, found in moment.all_declared("Namespace") if k in there and k.name != home]  # a run may follow either
        members = [found for found in was if all(f"cattle-project-{kinds.labels_of(o).get(PROJECT)}" == home for o in found)]
        place = [k for k in there if k.name == moment.change.key.name]
        if before["kind"] == "Namespace" or (asked and members and place and not any(map(kinds.is_terminating, asked))):
            return f"deleted a {before['kind']} that is asked for"
    return "changed a foreign namespace" if "foreign.example/owner" in kinds.labels_of(before) else ""


workload = Workload(
    "release-provisioning",
    config={"global": {"cattle": {"systemProjectId": "p-s"}}, "helmProjectOperator": {"helmController": {"enabled": False}}},
    tells=lambda obj: (find_condition(obj, "Stalled") or {}).get("status") == "True",
    leftover=lambda obj: ORPHANED in kinds.labels_of(obj),
    safe=[takes_away_with_a_reason],
    watched=(*ALSO, kinds.NAMESPACE, kinds.CONFIG_MAP, kinds.PROJECT_HELM_CHART, kinds.HELM_CHART, kinds.HELM_RELEASE),
)
workload.scenario("provision", ask(P), JOIN_TOO, before=[together(HOME, JOIN)])
workload.scenario("values", GIVEN, DASHBOARD, before=READY, other=[HOME, JOIN, GIVEN, DASHBOARD])
workload.scenario("clash", ask(Q), before=[together(OTHER, THEIRS, *READY)], other=[*READY, OTHER, ask(Q), THEIRS])
workload.scenario("unwanted", UNWANTED, before=READY, other=[*READY, LEAVE, JOIN, UNWANTED])
workload.scenario("foreign", ask(P), before=[together(FOREIGN, HOME, JOIN)])
