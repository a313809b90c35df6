"""Rights under other configurations: levels off, no dedicated namespaces, singleton charts, no projects."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from people import C1, LABEL, OPERATED, PROJECT_ID, People, changed
from rights import AGGREGATION, Project, user
from times import LEFT_TO_MAKE_WHOLE

from tenantry.api import Api
from tenantry.local.control_plane import ControlPlane
from tenantry.local.knative import Knative
from tenantry.model.kinds import PROJECT_HELM_CHART, ROLE_BINDING
from tenantry.testing.forks import Forks
from tenantry.testing.settling import settle

pytestmark = LEFT_TO_MAKE_WHOLE

Start = Callable[[dict[str, Any]], AbstractAsyncContextManager[Knative]]


@pytest_asyncio.fixture(loop_scope="session")
async def start(
    control_plane: ControlPlane,
    forks: Forks,
    identity: Callable[..., Awaitable[Path]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Start:
    """``async with start(config)``: rbac-aggregation under a configuration; its start is a sweep."""
    await identity(AGGREGATION)  # with its CRDs

    def begin(config: dict[str, Any]) -> Knative:
        folder = tmp_path_factory.mktemp("settings")
        return Knative(control_plane.kubeconfig, folder, config=config, functions=[AGGREGATION], spawn=forks.spawn)

    return begin


async def test_what_is_switched_off_is_taken_away(start: Start, people: People) -> None:
    """With a level switched off its RoleBindings go, with the aggregation all of them; switched on they are back."""
    project = await Project(people).set_up()
    await project.role()
    await project.role("r-view", "view")
    await project.bind("alice", "admin", user("alice"))
    await project.bind("bob", "view", user("bob"))
    for bindings, admins, viewers in (
        ({}, ["User alice"], ["User bob"]),
        ({"clusterRoleRefs": {"admin": ""}}, [], ["User bob"]),
        ({"aggregate": False}, [], []),
        ({"clusterRoleRefs": {"admin": "view"}}, ["User bob"], ["User bob"]),
    ):
        async with start(changed(C1, operator={"releaseRoleBindings": bindings})):
            await project.bound(*admins)
            await project.bound(*viewers, name="r-view")


async def test_without_dedicated_namespaces_the_registration_namespace_has_the_roles(
    start: Start, people: People, admin: Api
) -> None:
    """Switched off the release is in the registration namespace, and so are Roles and their RoleBindings."""
    project = Project(people)
    project.place = project.home
    await project.set_up(place=False)
    async with start(changed(C1, operator={"projectReleaseNamespaces": {"enabled": False}})) as knative:
        await project.role()
        await project.admit("alice")
        await project.unbind("r-admin")
        await project.bound("User alice")
        await project.unbind("alice")
        await project.bound()
        await project.admit("alice")
        await settle(knative, admin)
        await people.delete(PROJECT_HELM_CHART, project.chart, project.home)
        await project.bound()


async def test_singleton_charts_are_named_after_the_project(start: Start, people: People) -> None:
    """A singleton chart's release is named after the registration namespace, whatever its ProjectHelmChart is called."""
    chart = {"helmApiVersion": "solo.example/v1", "releaseName": "solo", "singleton": True}
    project = Project(people)
    project.release = project.place = f"{project.home}-solo"
    await project.set_up(version="solo.example/v1")
    await project.role()
    await project.bind("alice", "admin", user("alice"))
    async with start(changed(C1, operator={"charts": [*C1["helmProjectOperator"]["charts"], chart]})):
        await project.bound("User alice")
        await people.delete(PROJECT_HELM_CHART, project.chart, project.home)
        await project.bound()


async def test_a_chart_that_is_changed_for_another_takes_its_bindings_along(start: Start, people: People, admin: Api) -> None:
    """With another configured helmApiVersion the release has another name: bindings of the old one go, those of the new come."""
    other = {"helmApiVersion": "other.example/v1", "releaseName": "other"}
    project = await Project(people).set_up()
    await project.role()
    await project.bind("alice", "admin", user("alice"))
    async with start(changed(C1, operator={"charts": [*C1["helmProjectOperator"]["charts"], other]})) as knative:
        await project.bound("User alice")
        edit = ("replace", "/spec/helmApiVersion", "other.example/v1")
        await people.edit(PROJECT_HELM_CHART, project.chart, project.home, edit)
        place = f"{project.chart}-other"
        labels = {OPERATED: "true", PROJECT_ID: project.id, LABEL: "p-system"}
        await people.namespace(place, labels=labels)
        await project.role("r-new", namespace=place, of=place)
        await people.until(ROLE_BINDING, "r-new", place, lambda found: found["subjects"] == [user("alice")])
        await settle(knative, admin)
        await knative.sweep(AGGREGATION)
        await project.bound()


async def test_single_namespace_mode(start: Start, people: People, admin: Api) -> None:
    """Without projects the system namespace has the ProjectHelmCharts, the people, the Roles and the RoleBindings."""
    project = Project(people)
    project.home = project.place = "cattle-helm-system"
    async with start(changed(C1, cattle={"projectLabel": ""})):
        await project.set_up(home=False, place=False)
        await project.role(f"r-{project.run}")
        await project.bind(f"alice-{project.run}", "admin", user("alice"))
        found = await project.bound("User alice", name=f"r-{project.run}")
        assert found["metadata"]["labels"][PROJECT_ID] == project.chart
        stranger = await Project(people).set_up()
        await stranger.role()
        await stranger.bind("alice", "admin", user("alice"))
        await project.unbind(f"alice-{project.run}")
        await project.bound(name=f"r-{project.run}")
        assert await stranger.binding() is None
    await people.delete(PROJECT_HELM_CHART, project.chart, project.home)
