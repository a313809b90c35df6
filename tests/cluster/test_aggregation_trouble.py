"""What cannot be bound is told and holds up nothing else (hpo-67); order and loss do not matter (hpo-85, hpo-86)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio
from line import Line
from people import C1, People, changed, token
from rights import AGGREGATION, Everywhere, Project, cluster_role, group, named, user
from times import LEFT_TO_MAKE_WHOLE, PROJECTS_S

from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.model.kinds import CLUSTER_ROLE, NAMESPACE, PROJECT_HELM_CHART, RESOURCE_QUOTA, ROLE, ROLE_BINDING
from tenantry.testing import eventually
from tenantry.testing.objects import obj
from tenantry.testing.settling import normalised, snapshot

pytestmark = LEFT_TO_MAKE_WHOLE

LEVELS = {"clusterRoleRefs": {"admin": "tests-owner", "edit": "tests-shared", "view": "tests-shared"}}
MINE = changed(C1, operator={"releaseRoleBindings": LEVELS})
"""A configuration whose levels are nobody else's: two share one ClusterRole, and none of the ClusterRoles exists."""

KINDS = (NAMESPACE, PROJECT_HELM_CHART, ROLE, ROLE_BINDING)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def line(knative: Callable[..., Awaitable[Knative]], admin: Api) -> AsyncIterator[Line]:
    """rbac-aggregation behind a broker whose sources are in the test's hands."""
    running = await knative(MINE, functions=[AGGREGATION], watch=False)
    async with Line(running, admin, [AGGREGATION]) as made:
        await made.settle()
        yield made
    assert not running.dead_letters.exists(), running.dead_letters.read_text()


@pytest.fixture
async def everywhere(admin: Api) -> AsyncIterator[Everywhere]:
    """The ClusterRoles of this module's levels, while a test runs."""
    async with Everywhere(admin) as made:
        await made.role("tests-owner")
        await made.role("tests-shared")
        yield made


@pytest.fixture
async def project(line: Line, everywhere: Everywhere, people: People) -> Project:
    """A project with a release and its Role for level admin, and alice, who has the level."""
    line.lose()
    made = await Project(people).set_up()
    await made.role()
    await made.bind("alice", "tests-owner", user("alice"))
    await made.bound("User alice")
    return made


async def test_foreign_binding_is_left_alone_and_told(project: Project, line: Line) -> None:
    """A RoleBinding that people made under a Role's name stays as it is; the others are served, and the owner is told."""
    theirs = await project.bind("r-edit", cluster_role("tests-shared"), user("carol"), namespace=project.place)
    await project.role("r-edit", "edit")
    await project.role("r-view", "view")
    await project.bind("bob", "tests-shared", user("bob"))
    await project.bound("User bob", name="r-view")
    message = await project.told("RoleBindingConflict")
    await line.settle()
    await line.knative.sweep(AGGREGATION)

    assert f"RoleBinding {project.place}/r-edit exists" in message
    found = await project.binding("r-edit")
    assert found is not None
    assert found["metadata"]["resourceVersion"] == theirs["metadata"]["resourceVersion"]
    warned = await project.events(lambda event: event["type"] == "Warning")
    assert [(event["reason"], event["involvedObject"]["kind"]) for event in warned] == [
        ("RoleBindingConflict", "ProjectHelmChart")
    ]
    await project.unbind("r-edit", project.place)
    await project.bound("User bob", name="r-edit")
    await project.told("")


async def test_two_levels_of_one_cluster_role_both_get_its_people(project: Project) -> None:
    """Where edit and view are taken from the same ClusterRole, Roles of both get the same people."""
    await project.role("r-edit", "edit")
    await project.role("r-view", "view")
    await project.bind("bob", "tests-shared", user("bob"))
    await project.bound("User bob", name="r-edit")
    await project.bound("User bob", name="r-view")


async def test_missing_cluster_role_is_told(project: Project, line: Line, admin: Api) -> None:
    """A level whose ClusterRole does not exist is told while it is so; who is bound stays bound."""
    await admin.delete(CLUSTER_ROLE, "tests-owner")
    await line.knative.sweep(AGGREGATION)
    message = await project.told("ClusterRoleMissing")
    assert "releaseRoleBindings.clusterRoleRefs.admin" in message
    await eventually(
        lambda: project.events(lambda event: event["type"] == "Warning" and event["message"] == message), within=PROJECTS_S
    )
    assert named(await project.binding()) == ["User alice"]
    async with Everywhere(admin) as again:
        await again.role("tests-owner")
        await line.knative.sweep(AGGREGATION)
        await project.told("")


async def test_what_the_api_server_refuses_is_told(project: Project, line: Line, admin: Api) -> None:
    """A quota that allows no more RoleBindings is told with its fix; the level that fits is served, and all when it is raised."""
    counted = "count/rolebindings.rbac.authorization.k8s.io"
    await admin.create(RESOURCE_QUOTA, obj(RESOURCE_QUOTA, "few", project.place, spec={"hard": {counted: "1"}}))
    await project.people.until(
        RESOURCE_QUOTA, "few", project.place, lambda found: found.get("status", {}).get("used", {}).get(counted) == "1"
    )
    await project.role("r-view", "view")
    await project.bind("bob", "tests-shared", user("bob"))
    message = await project.told("QuotaExceeded")
    assert f"RoleBinding {project.place}/r-view was refused" in message
    await project.bind("dora", "tests-owner", user("dora"))
    await project.bound("User alice", "User dora")
    await admin.delete(RESOURCE_QUOTA, "few", project.place)
    await line.knative.sweep(AGGREGATION)
    await project.bound("User bob", name="r-view")
    await project.told("")


async def test_condition_leaves_the_rest_of_the_status_alone(project: Project, admin: Api) -> None:
    """What another function says in the status of the ProjectHelmChart stays, and our condition goes with its reason."""
    theirs = {
        "type": "Ready", "status": "True", "reason": "Deployed", "message": "", "lastTransitionTime": "2020-01-01T00:00:00Z",
    }  # fmt: skip
    status = {"status": "Deployed", "conditions": [theirs]}
    body = obj(PROJECT_HELM_CHART, project.chart, project.home, status=status)
    await admin.apply(PROJECT_HELM_CHART, body, subresource="status")
    await project.role("r-odd", "owner")
    await project.told("UnknownLevel")
    await project.people.delete(ROLE, "r-odd", project.place)
    await project.told("")

    found = await project.people.get(PROJECT_HELM_CHART, project.chart, project.home)
    assert found["status"] == status


# -- order, repetition, loss ---------------------------------------------------------------------------------


async def _acts(people: People, run: str) -> None:
    """Many changes to three projects, with detours: all of them leave traces if an old event could win."""
    a, b, c = (Project(people, f"{run}-{name}") for name in "abc")
    for each in (a, b, c):
        await each.set_up()
        await each.role()
        await each.role("r-view", "view")
    await a.bind("alice", "tests-owner", user("alice"), group("team"))
    await a.bind("bob", "tests-owner", user("bob"))
    await b.bind("carol", "tests-shared", user("carol"))
    await c.bind("dora", "tests-owner", user("dora"))
    await a.unbind("bob")
    await b.unbind("carol")
    await b.bind("carol", "tests-owner", user("carol"))
    await people.delete(ROLE, "r-view", a.place)
    await people.delete(PROJECT_HELM_CHART, c.chart, c.home)
    await a.bind("view", "tests-shared", user("erin"))
    await a.role("r-edit", "edit")
    await people.edit(ROLE_BINDING, "alice", a.home, ("remove", "/subjects/0", None))
    await people.delete(PROJECT_HELM_CHART, b.chart, b.home)
    await b.ask()


async def _end(admin: Api, run: str) -> dict[str, Any]:
    return await normalised(admin, KINDS, containing=run)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def reference(line: Line, people: People, admin: Api) -> dict[str, Any]:
    """Where the changes end when every event is delivered at once and in order."""
    run = token()
    async with Everywhere(admin) as everywhere:
        await everywhere.role("tests-owner")
        await everywhere.role("tests-shared")
        line.lose()
        await _acts(people, run)
        await line.settle()
        return await _end(admin, run)


def test_reference_end_is_as_declared(reference: dict[str, Any]) -> None:
    """The end that the others are compared with is the right one."""
    bound = {key: named(found) for key, found in reference.items() if key.startswith("RoleBinding demo")}
    assert bound == {
        "RoleBinding demo-RUN-a-dummy/r-admin": ["Group team"],
        "RoleBinding demo-RUN-a-dummy/r-edit": ["User erin"],
        "RoleBinding demo-RUN-b-dummy/r-admin": ["User carol"],
    }


@pytest.mark.check("hpo-85")
@pytest.mark.parametrize(("order", "together"), [("reversed", False), ("every event twice", True), ("shuffled 1", True)])
async def test_order_and_repetition_do_not_matter(
    line: Line, everywhere: Everywhere, people: People, admin: Api, reference: dict[str, Any], order: str, together: bool
) -> None:
    """Events held back and delivered in another order or twice lead to the same RoleBindings."""
    run = token()
    line.lose()
    line.hold(run)
    await _acts(people, run)
    await line.release_as(order, together=together)
    assert reference == await _end(admin, run)


@pytest.mark.check("hpo-86")
@pytest.mark.parametrize(("share", "seed"), [(0.1, 1), (0.5, 2), (1.0, 3)])
async def test_lost_events_are_made_up_by_one_sweep(
    line: Line, everywhere: Everywhere, people: People, admin: Api, reference: dict[str, Any], share: float, seed: int
) -> None:
    """With a tenth, a half or all of the events lost, one sweep brings the same end; then nothing is written any more."""
    run = token()
    with line.losing(run, share, seed):
        await _acts(people, run)
        await line.settle()
    await line.knative.sweep(AGGREGATION)
    assert reference == await _end(admin, run)

    line.lose()
    before = await snapshot(admin, KINDS, containing=run)
    await line.at_once(reversed(line.of(run)))
    await line.knative.sweep(AGGREGATION)
    assert before == await snapshot(admin, KINDS, containing=run)
