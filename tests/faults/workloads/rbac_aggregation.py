"""What is tried on rbac-aggregation: people who come and go, Roles, levels, charts, and drift by hand."""

from tenantry.model.conditions import find_condition
from tenantry.model.kinds import EVENT, NAMESPACE, PROJECT_HELM_CHART, ROLE, ROLE_BINDING
from tenantry.model.names import CLEANUP, ROLES_BOUND_CONDITION
from tenantry.testing.workload import Workload, apply, bind, delete, edit, namespace, together

from ._release_rights import CHART, CONFIG, HOME, OURS, PLACE, SPEC, accept, as_bound_before, only_who_is_named, role

workload = Workload(
    "rbac-aggregation",
    config=CONFIG,
    tells=lambda obj: (find_condition(obj, ROLES_BOUND_CONDITION) or {}).get("status") == "False",
    safe=[only_who_is_named],
    watched=(NAMESPACE, PROJECT_HELM_CHART, ROLE, ROLE_BINDING, EVENT),
)
ASKED = [namespace(HOME, OURS), namespace(PLACE, OURS), apply(*CHART, spec=SPEC)]
ALICE, BOB, NOBODY = bind("one", HOME, "admin", "alice"), bind("two", HOME, "admin", "bob"), bind("one", HOME, "admin")
ADMIN, VIEW, BARE = role("r-admin", "admin"), role("r-view", "view"), role("r-admin", "", team="x")
BOUND = [*ASKED, ADMIN, ALICE]
workload.scenario("bind", ADMIN, ALICE, BOB, before=ASKED)
workload.scenario("last-one", NOBODY, before=BOUND)
workload.scenario("unbind", delete("RoleBinding", "one", HOME), before=[*BOUND, BOB])
workload.scenario("role-gone", delete("Role", "r-admin", PLACE), before=BOUND)
workload.scenario("label-gone", BARE, before=BOUND)
workload.scenario("level", role("r-admin", "view"), before=[*BOUND, bind("three", HOME, "view", "carol")])
workload.scenario("chart-gone", delete(*CHART), before=BOUND)
workload.scenario("clean-up", apply(*CHART, labels={CLEANUP: "true"}, spec=SPEC), before=BOUND)
workload.scenario("drift", edit("RoleBinding", "r-admin", PLACE, "/subjects"), before=BOUND)
workload.scenario("drift-gone", delete("RoleBinding", "r-admin", PLACE), before=BOUND)
workload.scenario("unknown-level", role("r-odd", "owner"), VIEW, before=BOUND)
BOSS = bind("two", HOME, "boss", "bob")
WAITS = [*ASKED, BOSS, as_bound_before, ADMIN]
workload.scenario("another-cluster-role", VIEW, ALICE, before=WAITS, other=[*WAITS, together(VIEW, ALICE)])
workload.scenario("nobody-of-either", delete("RoleBinding", "two", HOME), before=WAITS, other=[*ASKED, ADMIN])
workload.scenario("accepted", accept, before=WAITS, other=[*ASKED, BOSS, ADMIN, accept])
