"""namespace-registration: projects come, move and go; what Tenantry keeps in them drifts and is put back."""

from tenantry.model.conditions import find_condition
from tenantry.model.kinds import annotations_of, labels_of
from tenantry.model.names import ADOPT, ORPHANED, PROJECT_ID, REGISTERED_CONDITION
from tenantry.testing.workload import Workload, delete, edit, namespace
from tenantry.testing.world import Moment

PROJECT, HOME = "field.cattle.io/projectId", "cattle-project-p-@"
CHART, POLICY = "dummy.cattle.io.v1alpha1", "hpo-generated-default"
JOIN, MOVE, BAD = (namespace("a-@", {PROJECT: project}) for project in ("p-@", "q-@", "Bad_@"))
LEAVE, LEAVE_TOO, JOIN_TOO = namespace("a-@"), namespace("b-@"), namespace("b-@", {PROJECT: "p-@"})
DENIED, FOREIGN = namespace("a-@", {PROJECT: "p-denied"}), namespace(HOME, {"foreign.example/owner": "them"})
VANISH = delete("Namespace", "a-@")
ADOPTED = namespace(HOME, {"foreign.example/owner": "them"}, annotations={ADOPT: "true"})


def leaves_others_alone(moment: Moment) -> str:
    """The function deletes no namespace, labels no foreign one, and of a member only writes the memory of its project."""
    before, after = moment.change.before, moment.change.after
    if not moment.by or moment.change.key.kind != "Namespace" or before is None:
        return ""
    changed = {label for label, _ in set(labels_of(before).items()) ^ set(labels_of(after).items())}
    foreign = "foreign.example/owner" in labels_of(before) and ADOPT not in annotations_of(before)
    allowed = set() if foreign else {PROJECT_ID}
    ours = moment.change.key.name.startswith("cattle-project-") and not foreign
    return "deleted a namespace" if after is None else "" if ours or changed <= allowed else f"changed {changed - allowed}"


workload = Workload(
    "namespace-registration",
    config={"helmProjectOperator": {"otherSystemProjectLabelValues": ["p-denied"]}},
    tells=lambda obj: (find_condition(obj, REGISTERED_CONDITION) or {}).get("status") == "False",
    destroys=lambda body: ORPHANED in labels_of(body),
    leftover=lambda obj: ORPHANED in labels_of(obj),
    safe=[leaves_others_alone],
)
workload.scenario("register", JOIN, JOIN_TOO)
workload.scenario("move", MOVE, before=[JOIN], other=[JOIN, LEAVE, MOVE])
workload.scenario("leave", LEAVE, LEAVE_TOO, before=[JOIN_TOO, JOIN], other=[JOIN, LEAVE, LEAVE_TOO])
workload.scenario("orphan-return", LEAVE, JOIN, before=[JOIN])
workload.scenario("delete-last", delete("Namespace", "a-@", gone=True), before=[JOIN], other=[JOIN, LEAVE, VANISH])
workload.scenario("rebuild", delete("Namespace", HOME, gone=True), before=[JOIN])
workload.scenario("drift-labels", edit("Namespace", HOME, "", "/metadata/labels/helm.cattle.io~1projectId"), before=[JOIN])
workload.scenario("drift-chart", edit("ConfigMap", CHART, HOME, "/data/values.yaml", "x: 1"), before=[JOIN])
workload.scenario("drift-immutable", edit("ConfigMap", CHART, HOME, "/immutable", True), before=[JOIN])
workload.scenario("drift-deleted", delete("ConfigMap", CHART, HOME), delete("NetworkPolicy", POLICY, HOME), before=[JOIN])
workload.scenario("drift-policy", edit("NetworkPolicy", POLICY, HOME, "/spec/ingress", [{}]), before=[JOIN])
workload.scenario("drift-account", edit("ServiceAccount", "default", HOME, "/automountServiceAccountToken", True), before=[JOIN])
workload.scenario("bad-id", BAD, JOIN)
workload.scenario("clash", JOIN, before=[FOREIGN])
workload.scenario("adopt", ADOPTED, before=[FOREIGN, JOIN])
workload.scenario("denied", DENIED, before=[JOIN], other=[JOIN, LEAVE, DENIED])
