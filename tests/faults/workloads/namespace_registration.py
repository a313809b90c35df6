"""namespace-registration: projects come, move and go; what Tenantry keeps in them drifts and is put back."""

from tenantry.model.conditions import find_condition
from tenantry.model.kinds import Object, annotations_of, is_terminating, labels_of
from tenantry.model.names import ADOPT, OPERATED, ORPHANED, PROJECT_ID, REGISTERED_CONDITION
from tenantry.testing.workload import Workload, delete, edit, namespace
from tenantry.testing.world import Moment

PROJECT, HOME, CHART = "field.cattle.io/projectId", "cattle-project-p-@", "dummy.cattle.io.v1alpha1"
JOIN, MOVE, BAD, DENIED = (namespace("a-@", {PROJECT: id_}) for id_ in ("p-@", "q-@", "Bad_@", "p-denied"))
LEAVE, LEAVE_TOO, JOIN_TOO = namespace("a-@"), namespace("b-@"), namespace("b-@", {PROJECT: "p-@"})
MAY_GO = edit("Namespace", HOME, "", "/metadata/annotations/tenantry.dev~1allow-deletion", "true")
THEIRS, VANISH, POLICY = {"foreign.example/owner": "them"}, delete("Namespace", "a-@"), "hpo-generated-default"
FOREIGN, HELD = namespace(HOME, THEIRS), namespace("a-@", {PROJECT: "p-@"}, finalizers=["foreign.example/hold"])


def leaves_others_alone(moment: Moment) -> str:
    """The function deletes no namespace, labels no foreign one, and of a member only writes the memory of its project."""
    if not moment.by or moment.change.key.kind != "Namespace" or (before := moment.change.before) is None:
        return ""
    changed = {label for label, _ in set(labels_of(before).items()) ^ set(labels_of(moment.change.after).items())}
    foreign = "foreign.example/owner" in labels_of(before) and ADOPT not in annotations_of(before)
    ours = moment.change.key.name.startswith("cattle-project-") and not foreign
    wrong = set() if ours else changed - (set() if foreign else {PROJECT_ID})
    return "deleted a namespace" if moment.change.after is None else f"changed {wrong}" if wrong else ""


def orphaned_when_empty(objects: list[Object]) -> str:
    """A registration namespace is marked exactly when nobody who stays is in its project."""
    spaces = [labels_of(each) for each in objects if each["kind"] == "Namespace" and not is_terminating(each)]
    joined = {labels.get(PROJECT) for labels in spaces if OPERATED not in labels} - {"p-denied"}
    return ", ".join(x[PROJECT_ID] for x in spaces if OPERATED in x and (ORPHANED in x) == (x[PROJECT_ID] in joined))


workload = Workload(
    "namespace-registration",
    config={"helmProjectOperator": {"otherSystemProjectLabelValues": ["p-denied"]}},
    tells=lambda obj: (find_condition(obj, REGISTERED_CONDITION) or {}).get("status") == "False",
    leftover=lambda obj: ORPHANED in labels_of(obj),
    safe=[leaves_others_alone],
    ends=[orphaned_when_empty],
)
workload.scenario("register", JOIN, JOIN_TOO)
workload.scenario("move", MOVE, before=[JOIN], other=[JOIN, LEAVE, MOVE])
workload.scenario("leave", LEAVE, LEAVE_TOO, before=[JOIN_TOO, JOIN], other=[JOIN, LEAVE, LEAVE_TOO])
workload.scenario("orphan-return", LEAVE, JOIN, before=[JOIN])
workload.scenario("delete-last", delete("Namespace", "a-@", gone=True), before=[JOIN], other=[JOIN, LEAVE, VANISH])
workload.scenario("delete-held", VANISH, before=[HELD], other=[HELD, LEAVE, HELD, VANISH])
workload.scenario("rebuild", delete("Namespace", HOME, gone=True), before=[JOIN, MAY_GO])
workload.scenario("drift-labels", edit("Namespace", HOME, "", "/metadata/labels/helm.cattle.io~1projectId"), before=[JOIN])
workload.scenario("drift-chart", edit("ConfigMap", CHART, HOME, "/data/values.yaml", "x: 1"), before=[JOIN])
workload.scenario("drift-immutable", edit("ConfigMap", CHART, HOME, "/immutable", True), before=[JOIN])
workload.scenario("drift-deleted", delete("ConfigMap", CHART, HOME), delete("NetworkPolicy", POLICY, HOME), before=[JOIN])
workload.scenario("drift-policy", edit("NetworkPolicy", POLICY, HOME, "/spec/ingress", [{}]), before=[JOIN])
workload.scenario("drift-account", edit("ServiceAccount", "default", HOME, "/automountServiceAccountToken", True), before=[JOIN])
workload.scenario("bad-id", BAD, JOIN)
workload.scenario("clash", JOIN, before=[FOREIGN])
workload.scenario("adopt", namespace(HOME, THEIRS, annotations={ADOPT: "true"}), before=[FOREIGN, JOIN])
workload.scenario("denied", DENIED, before=[JOIN], other=[JOIN, LEAVE, DENIED])
