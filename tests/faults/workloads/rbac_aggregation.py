"""What is tried on rbac-aggregation: people who come and go, Roles, levels, charts, drift by hand, and a foreign RoleBinding."""

from tenantry.model.conditions import find_condition
from tenantry.model.kinds import EVENT, NAMESPACE, PROJECT_HELM_CHART, ROLE, ROLE_BINDING
from tenantry.model.names import AGGREGATE_FROM, CLEANUP, OPERATED, PROJECT_ID, ROLE_OF, ROLES_BOUND_CONDITION
from tenantry.testing.workload import Step, Workload, apply, delete, edit, namespace
from tenantry.testing.world import Moment

HOME, PLACE, CHART = "cattle-project-p-@", "demo-@-dummy", ("ProjectHelmChart", "demo-@", "cattle-project-p-@")
SPEC = {"helmApiVersion": "dummy.cattle.io/v1alpha1"}
OURS = {OPERATED: "true", PROJECT_ID: "p-@"}


def people(name: str, role: str, *users: str) -> Step:
    group = "rbac.authorization.k8s.io"
    subjects = [{"apiGroup": group, "kind": "User", "name": user} for user in users]
    reference = {"apiGroup": group, "kind": "ClusterRole", "name": role}
    return apply("RoleBinding", name, HOME, roleRef=reference, subjects=subjects)


def role(name: str, level: str, **labels: str) -> Step:
    return apply("Role", name, PLACE, labels=labels or {ROLE_OF: PLACE, AGGREGATE_FROM: level}, rules=[])


def only_who_is_named(moment: Moment) -> str:
    """Every subject of a binding that the function writes is named in the registration namespace; it only deletes its own."""
    before, after = moment.change.before, moment.change.after
    if not moment.by or moment.change.key.kind != "RoleBinding":
        return ""
    if after is None:
        return "" if before is None or OPERATED in before["metadata"].get("labels", {}) else "deleted what is not its own"
    inside = [obj for key, obj in moment.objects.items() if key.kind == "RoleBinding" and "cattle-project-" in key.namespace]
    named = {subject["name"] for obj in inside for subject in obj.get("subjects") or ()}
    strange = {subject["name"] for subject in after.get("subjects") or ()} - named
    return f"gave a right to {strange}" if strange - {each["name"] for each in (before or {}).get("subjects") or ()} else ""


workload = Workload(
    "rbac-aggregation",
    config={"global": {"cattle": {"systemProjectId": "p-system"}}},
    tells=lambda obj: (find_condition(obj, ROLES_BOUND_CONDITION) or {}).get("status") == "False",
    safe=[only_who_is_named],
    watched=(NAMESPACE, PROJECT_HELM_CHART, ROLE, ROLE_BINDING, EVENT),
)
ASKED = [namespace(HOME, OURS), namespace(PLACE, OURS), apply(*CHART, spec=SPEC)]
ALICE, BOB, NOBODY = people("one", "admin", "alice"), people("two", "admin", "bob"), people("one", "admin")
ADMIN, VIEW, BARE = role("r-admin", "admin"), role("r-view", "view"), role("r-admin", "", team="x")
BOUND = [*ASKED, ADMIN, ALICE]
workload.scenario("bind", ADMIN, ALICE, BOB, before=ASKED)
workload.scenario("last-one", NOBODY, before=BOUND)
workload.scenario("unbind", delete("RoleBinding", "one", HOME), before=[*BOUND, BOB])
workload.scenario("role-gone", delete("Role", "r-admin", PLACE), before=BOUND)
workload.scenario("label-gone", BARE, before=BOUND)
workload.scenario("level", role("r-admin", "view"), before=[*BOUND, people("three", "view", "carol")])
workload.scenario("chart-gone", delete(*CHART), before=BOUND)
workload.scenario("clean-up", apply(*CHART, labels={CLEANUP: "true"}, spec=SPEC), before=BOUND)
workload.scenario("drift", edit("RoleBinding", "r-admin", PLACE, "/subjects"), before=BOUND)
workload.scenario("drift-gone", delete("RoleBinding", "r-admin", PLACE), before=BOUND)
workload.scenario("unknown-level", role("r-odd", "owner"), VIEW, before=BOUND)
