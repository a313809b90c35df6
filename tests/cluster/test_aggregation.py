"""Rights in release namespaces follow the bindings of registration namespaces and of the cluster (hpo-58 to hpo-66, hpo-68)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import pytest_asyncio
from flawless import Calm
from people import C1, OPERATED, PROJECT_ID, People, token
from rights import AGGREGATE_FROM, AGGREGATION, CLEANUP, DUMMY, RBAC, ROLE_OF, Everywhere, Project, account, group, named, user
from times import PROJECTS_S

from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.model.kinds import PROJECT_HELM_CHART, ROLE, ROLE_BINDING, annotations_of
from tenantry.model.names import PROJECT_CHART
from tenantry.testing import eventually
from tenantry.testing.settling import settle


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def aggregation(flawlessly: Callable[..., Awaitable[Knative]]) -> Knative:
    """rbac-aggregation under the reference configuration, until the module ends."""
    return await flawlessly(C1, functions=[AGGREGATION])


@pytest.fixture
async def project(aggregation: Knative, people: People) -> Project:
    """A project with a release and its Role for level admin."""
    made = await Project(people).set_up()
    await made.role()
    return made


@pytest.mark.check("hpo-58")
async def test_people_of_the_registration_namespace_get_the_role(project: Project) -> None:
    """Who has the ClusterRole in the registration namespace is bound to the Role of that level in the release namespace."""
    await project.bind("alice", "admin", user("alice"))
    found = await project.bound("User alice")

    assert found["roleRef"] == {"apiGroup": RBAC, "kind": "Role", "name": "r-admin"}
    assert found["subjects"] == [{"kind": "User", "name": "alice", "apiGroup": RBAC}]
    assert found["metadata"]["labels"] == {
        OPERATED: "true",
        PROJECT_ID: project.id,
        "helm.cattle.io/project-helm-chart-role-binding": project.release,
    }

    async def told() -> list[str]:
        events = await project.events(lambda event: event["reason"] == "RoleBound")
        return [event["involvedObject"]["name"] for event in events]

    assert await eventually(told, within=PROJECTS_S) == ["r-admin"]


async def test_order_of_appearance_does_not_matter(aggregation: Knative, people: People, admin: Api) -> None:
    """The binding may be there before the chart is asked for, and the Role may come last."""
    made = Project(people)
    await made.set_up(place=False)
    await made.bind("alice", "view", user("alice"))
    await settle(aggregation, admin)
    await made.make_place()
    await made.role("r-view", "view")
    await made.bound("User alice", name="r-view")


@pytest.mark.check("hpo-59")
async def test_people_of_the_cluster_get_the_role_in_every_project(
    project: Project, people: People, aggregation: Knative, admin: Api
) -> None:
    """A ClusterRoleBinding reaches every project, and its end does too; another level hears nothing of it."""
    other = await Project(people).set_up()
    await other.role()
    await other.role("r-view", "view")
    await project.admit("alice")
    async with Everywhere(admin) as everywhere:
        ops = f"ops-{project.run}"
        await everywhere.bind(ops, "admin", group(ops))
        await project.bound(f"Group {ops}", "User alice")
        await other.bound(f"Group {ops}")
        assert await other.binding("r-view") is None
        await everywhere.unbind(ops)
        await project.bound("User alice")
        await other.bound()


async def test_a_cluster_binding_made_anew_for_another_role_is_followed(
    project: Project, aggregation: Knative, admin: Api
) -> None:
    """Deleted and made anew under its name, a ClusterRoleBinding stands for its new ClusterRole only, at once."""
    async with Everywhere(admin) as everywhere:
        ops = f"ops-{project.run}"
        await everywhere.bind(ops, "admin", group(ops))
        await project.bound(f"Group {ops}")
        await everywhere.unbind(ops)
        await everywhere.bind(ops, "tenantry-nothing", group(ops))
        await project.bound()


@pytest.mark.check("hpo-60")
async def test_only_users_and_groups_and_each_once(project: Project) -> None:
    """ServiceAccounts never appear, a user in two bindings appears once, and user x and group x are two; in a fixed order."""
    await project.bind("first", "admin", user("x"), account("robot", project.home), user("bob"))
    await project.bind("second", "admin", group("x"), user("bob"), user("alice"))

    await project.bound("Group x", "User alice", "User bob", "User x")


@pytest.mark.check("hpo-61")
async def test_the_last_one_takes_the_binding_along(project: Project) -> None:
    """With the last subject the RoleBinding goes, and comes back with the next."""
    await project.admit("alice")
    await project.unbind("alice")
    await project.bound()
    await project.bind("robot", "admin", account("robot"))
    await project.admit("alice")


@pytest.mark.check("hpo-62")
async def test_without_role_or_level_there_is_no_binding(project: Project, aggregation: Knative, admin: Api, calm: Calm) -> None:
    """A deleted Role takes its RoleBinding along; a level that does not exist yields nothing, and the owner is told."""
    await project.bind("alice", "admin", user("alice"))
    await project.role("r-owner", "owner")
    await project.bound("User alice")
    assert AGGREGATE_FROM in await project.told("UnknownLevel")
    await project.people.delete(ROLE, "r-admin", project.place)
    await project.bound()
    await calm(aggregation)

    assert await project.binding("r-owner") is None
    await project.people.delete(ROLE, "r-owner", project.place)
    await project.told("")


@pytest.mark.check("hpo-63")
@pytest.mark.parametrize("drift", ["subjects", "more subjects", "no subjects", "labels", "annotation", "deleted"])
async def test_binding_is_restored(project: Project, drift: str) -> None:
    """A RoleBinding in the release namespace comes back after any edit and after its deletion."""
    await project.bind("alice", "admin", user("alice"))
    before = await project.bound("User alice")
    where = (ROLE_BINDING, "r-admin", project.place)
    match drift:
        case "subjects":
            await project.people.edit(*where, ("replace", "/subjects", [user("mallory")]))
        case "more subjects":
            await project.people.edit(*where, ("add", "/subjects/-", account("robot")))
        case "no subjects":
            await project.people.edit(*where, ("remove", "/subjects", None))
        case "labels":
            await project.people.edit(*where, ("remove", "/metadata/labels", None))
        case "annotation":
            await project.people.edit(*where, ("remove", "/metadata/annotations", None))
        case "deleted":
            await project.people.delete(*where)

    def restored(found: dict) -> bool:  # type: ignore[type-arg]
        same = all(found["metadata"].get(part) == before["metadata"].get(part) for part in ("labels", "annotations"))
        return same and named(found) == ["User alice"]

    after = await project.people.until(*where, restored)
    assert (drift == "deleted") == (after["metadata"]["uid"] != before["metadata"]["uid"]), "made anew only where it must be"


@pytest.mark.check("hpo-64")
async def test_bindings_elsewhere_have_no_effect(
    project: Project, people: People, aggregation: Knative, admin: Api, calm: Calm
) -> None:
    """RoleBindings in an ordinary namespace of the project, in its release namespace and in another project count for nothing."""
    other = await Project(people).set_up()
    await people.namespace(f"a1-{project.id}", project.id)
    for place in (f"a1-{project.id}", other.home, project.place):
        await project.bind("elsewhere", "admin", user("mallory"), namespace=place)
    await calm(aggregation)
    assert await project.binding() is None

    await project.admit("alice")


@pytest.mark.check("hpo-65")
async def test_a_role_of_that_name_grants_nothing(project: Project, aggregation: Knative, admin: Api, calm: Calm) -> None:
    """A RoleBinding to a Role called admin, which a project owner may make, is no binding to the ClusterRole."""
    await project.bind("trick", {"apiGroup": RBAC, "kind": "Role", "name": "admin"}, user("mallory"))
    await calm(aggregation)
    assert await project.binding() is None


@pytest.mark.check("hpo-66")
async def test_at_rest_nothing_is_written(project: Project, aggregation: Knative, admin: Api, calm: Calm) -> None:
    """With ten subjects and no changes, sweeps and repeated events leave the RoleBinding's version as it is."""
    await project.bind("many", "admin", *(user(f"u{number}") for number in (7, 3, 9, 1, 0, 5, 2, 8, 6, 4)))
    await project.bound(*(f"User u{number}" for number in range(10)))
    await calm(aggregation)
    before = await project.binding()
    assert before is not None

    for _ in range(10):
        # The source's own word for it: somebody touches a binding that names the same people.
        await project.people.edit(
            ROLE_BINDING, "many", project.home, ("add", "/metadata/annotations", {"tenantry.dev/touched": str(_)})
        )
        await aggregation.sweep(AGGREGATION)
    await calm(aggregation)

    after = await project.binding()
    assert after is not None
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


@pytest.mark.check("hpo-68")
async def test_role_without_label_is_let_go(project: Project) -> None:
    """When the Role loses its label the RoleBinding goes, and the Role stays."""
    await project.admit("alice")
    pointer = f"/metadata/labels/{ROLE_OF.replace('/', '~1')}"
    await project.people.edit(ROLE, "r-admin", project.place, ("remove", pointer, None))
    await project.bound()

    assert ROLE_OF not in (await project.people.get(ROLE, "r-admin", project.place))["metadata"]["labels"]


async def test_levels_are_independent(project: Project) -> None:
    """A Role gets the people of its own level only, and follows when its level is changed."""
    await project.role("r-edit", "edit")
    await project.bind("alice", "admin", user("alice"))
    await project.bind("bob", "edit", user("bob"))
    await project.bound("User alice")
    await project.bound("User bob", name="r-edit")
    level = f"/metadata/labels/{AGGREGATE_FROM.replace('/', '~1')}"
    await project.people.edit(ROLE, "r-edit", project.place, ("replace", level, "admin"))
    await project.bound("User alice", name="r-edit")


async def test_role_of_another_release_or_place_is_not_bound(
    project: Project, aggregation: Knative, admin: Api, calm: Calm
) -> None:
    """A Role that names another release, or lies outside the release namespace, gets nothing."""
    await project.role("r-other", of=f"{project.release}-x")
    await project.role("r-home", namespace=project.home)
    await project.admit("alice")
    await calm(aggregation)

    assert await project.binding("r-other") is None
    assert await admin.get(ROLE_BINDING, "r-home", project.home) is None


async def test_bindings_go_with_the_chart(project: Project) -> None:
    """When the ProjectHelmChart is gone its bindings go, and nobody else's."""
    await project.bind("alice", "admin", user("alice"))
    await project.bind("mine", "view", user("bob"), namespace=project.place)
    await project.bound("User alice")
    await project.people.delete(PROJECT_HELM_CHART, project.chart, project.home)
    await project.bound()
    assert named(await project.binding("mine")) == ["User bob"]


async def test_bindings_go_with_the_clean_up_label(project: Project) -> None:
    """An uninstallation's label on the ProjectHelmChart takes the bindings away, and its end brings them back."""
    await project.admit("alice")
    chart = (PROJECT_HELM_CHART, project.chart, project.home)
    await project.people.edit(*chart, ("add", "/metadata/labels", {CLEANUP: "true"}))
    await project.bound()
    await project.people.edit(*chart, ("remove", "/metadata/labels", None))
    await project.bound("User alice")


async def test_bindings_go_with_the_last_namespace_of_the_project(project: Project) -> None:
    """A ProjectHelmChart that is told to have no namespaces loses its bindings, and any other status brings them back."""
    await project.bind("alice", "admin", user("alice"))
    await project.bind("mine", "view", user("bob"), namespace=project.place)
    await project.bound("User alice")
    await project.provisioned("NoTargetProjectNamespaces")
    await project.bound()
    assert named(await project.binding("mine")) == ["User bob"]
    said = "Role r-admin is not bound any more: its project has no namespace"
    await eventually(lambda: project.events(lambda event: event["message"] == said), within=PROJECTS_S, what="the reason is told")
    await project.provisioned("WaitingForDashboardValues")
    await project.bound("User alice")


async def test_a_chart_that_is_not_ours_any_more_keeps_what_it_has(
    project: Project, aggregation: Knative, admin: Api, calm: Calm
) -> None:
    """Another helmApiVersion is no evidence that the release is gone: what is bound stays as it is."""
    await project.bind("alice", "admin", user("alice"))
    before = await project.bound("User alice")
    await project.people.edit(
        PROJECT_HELM_CHART, project.chart, project.home, ("replace", "/spec/helmApiVersion", "other.example/v1")
    )
    await calm(aggregation)

    after = await project.binding()
    assert after is not None
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


async def test_the_older_of_two_charts_has_the_release(
    project: Project, people: People, aggregation: Knative, admin: Api, calm: Calm
) -> None:
    """Two projects that claim one release name: the people of the older one are bound, and those of the other when it is gone."""
    rival = Project(people, f"z{project.run}", chart=project.chart)  # of two of the same second the first by name is older
    await rival.set_up(place=False)
    await rival.bind("bob", "admin", user("bob"))
    await project.admit("alice")
    await people.delete(PROJECT_HELM_CHART, project.chart, project.home)
    await project.bound()
    await calm(aggregation)
    assert await project.binding() is None, "the namespace is still that of the first project"
    await people.label(project.place, {PROJECT_ID: rival.id})
    await aggregation.sweep(AGGREGATION)
    await project.bound("User bob")


@pytest.mark.check("a-36")
async def test_an_older_chart_that_asks_later_takes_nothing(people: People, aggregation: Knative, calm: Calm) -> None:
    """Who has the release name keeps it: rights in its namespace follow the people of its project as before."""
    run = token()
    older = Project(people, f"0{run}", chart=f"demo-{run}")  # of two of the same second the first by name is older
    project = Project(people, f"1{run}", chart=older.chart)
    await older.set_up(version="other.example/v1", place=False)
    await project.set_up()
    await project.role()
    await older.bind("bob", "admin", user("bob"))
    made_for = {PROJECT_CHART: f"{project.home}/{project.chart}"}
    await people.label(project.place, made_for, "annotations")
    await project.admit("alice")

    await people.edit(PROJECT_HELM_CHART, older.chart, older.home, ("replace", "/spec/helmApiVersion", DUMMY))
    await calm(aggregation)
    await project.bind("carol", "admin", user("carol"))
    await project.bound("User alice", "User carol")
    await project.unbind("alice")
    await project.bound("User carol")
    await calm(aggregation)
    found = await project.binding()
    assert found is not None
    assert annotations_of(found)[PROJECT_CHART] == made_for[PROJECT_CHART]


async def test_foreign_namespace_of_that_name_is_left_alone(people: People, aggregation: Knative, admin: Api, calm: Calm) -> None:
    """Where the release namespace is somebody else's, nobody is given a right in it."""
    made = await Project(people).set_up(place=False)
    await people.namespace(made.place)
    await made.role()
    await made.bind("alice", "admin", user("alice"))
    await calm(aggregation)
    assert await made.binding() is None


async def test_chart_in_an_ordinary_namespace_counts_for_nothing(
    people: People, aggregation: Knative, admin: Api, calm: Calm
) -> None:
    """A ProjectHelmChart outside a registration namespace has no people, also where its namespace only looks like one."""
    made = Project(people)
    await people.namespace(made.home, made.id)  # the name alone makes it nobody's registration namespace
    await made.set_up(home=False)
    await made.role()
    await made.bind("alice", "admin", user("alice"))
    await calm(aggregation)
    assert await made.binding() is None


async def test_a_copy_of_a_binding_is_somebodys_own(
    project: Project, people: People, aggregation: Knative, admin: Api, calm: Calm
) -> None:
    """A copy of one of our RoleBindings in another namespace, marks included, is neither changed nor deleted."""
    await project.bind("alice", "admin", user("alice"))
    original = await project.bound("User alice")
    elsewhere = f"copy-{project.run}"
    await people.namespace(elsewhere)
    metadata = {"name": "r-admin", "namespace": elsewhere}
    metadata |= {part: original["metadata"][part] for part in ("labels", "annotations")}
    copy = await admin.create(ROLE_BINDING, {**original, "metadata": metadata, "subjects": [user("carol")]})
    await people.delete(PROJECT_HELM_CHART, project.chart, project.home)
    await project.bound()
    await calm(aggregation)

    after = await people.get(ROLE_BINDING, "r-admin", elsewhere)
    assert after["metadata"]["resourceVersion"] == copy["metadata"]["resourceVersion"]
