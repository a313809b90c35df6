"""What is tried on rbac-aggregation: people who come and go, Roles, levels, charts, and drift by hand."""

from tenantry.model.conditions import find_condition
from tenantry.model.kinds import EVENT, NAMESPACE, PROJECT_HELM_CHART, ROLE, ROLE_BINDING, Object, labels_of
from tenantry.model.names import AGGREGATE_FROM, CLEANUP, OPERATED, PROJECT_ID, ROLE_OF, ROLES_BOUND_CONDITION
from tenantry.testing.workload import Step, Workload, apply, bind, delete, edit, namespace
from tenantry.testing.world import Moment

HOME, PLACE, CHART = "cattle-project-p-@", "demo-@-dummy", ("ProjectHelmChart", "demo-@", "cattle-project-p-@")
SPEC = {"helmApiVersion": "dummy.cattle.io/v1alpha1"}
OURS = {OPERATED: "true", PROJECT_ID: "p-@"}


def role(name: str, level: str, **labels: str) -> Step:
    return apply("Role", name, PLACE, labels=labels or {ROLE_OF: PLACE, AGGREGATE_FROM: level}, rules=[])


def named(binding: Object | None, *levels: object) -> set[str]:
    counts = binding is not None and (not levels or binding["roleRef"]["name"] in levels)
    return {each["name"] for each in (binding or {}).get("subjects") or () if counts}


def only_who_is_named(moment: Moment) -> str:
    """Who gets a right is named for the Role's level in the registration namespace; who goes on being named keeps it."""
    key, now = moment.change.key, moment.objects
    if not moment.by or key.kind != "RoleBinding":
        return ""
    levels = {labels_of(each).get(AGGREGATE_FROM) for each in moment.declared("Role", key.name, key.namespace)}
    bindings = [(where, found) for where, found in moment.all_declared("RoleBinding") if "-project-" in where.namespace]
    may = {name for _, found in bindings for each in found for name in named(each, *levels)}
    held = len(levels) == 1 and {each.kind for each in now} >= {"Role", "ProjectHelmChart"}
    held = held and not any(CLEANUP in labels_of(each) for each in now.values())
    keeps = {who for where, found in bindings if held and where in now for who in named(found[0], *levels) & named(found[-1])}
    had, has = named(moment.change.before), named(moment.change.after)
    return f"gave {has - had - may}, took {keeps & had - has}" if has - had - may or keeps & had - has else ""


workload = Workload(
    "rbac-aggregation",
    config={"global": {"cattle": {"systemProjectId": "p-system"}}},
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
