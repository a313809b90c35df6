"""A mistyped ClusterRole in the configuration takes no project's administrators (decision 30, docs/rbac-aggregation.md)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest_asyncio
import yaml
from commanding import commanding
from people import C1, People, changed
from rights import AGGREGATION, Everywhere, Project, named, user

from tenantry.api import Api
from tenantry.local.control_plane import ControlPlane
from tenantry.local.knative import Knative
from tenantry.model.kinds import PROJECT_HELM_CHART
from tenantry.model.names import WITHDRAWAL_ACCEPTED
from tenantry.testing.settling import settle

Running = Callable[..., AbstractAsyncContextManager[Knative]]
LINE = "helmProjectOperator.releaseRoleBindings.clusterRoleRefs.admin"


def taken_from(cluster_role: str) -> dict[str, Any]:
    """The configuration whose level ``admin`` is taken from a ClusterRole."""
    return changed(C1, operator={"releaseRoleBindings": {"clusterRoleRefs": {"admin": cluster_role}}})


async def bindings(project: Project) -> dict[str, Any]:
    """The RoleBindings of both levels with their versions: what a write would change."""
    found = [await project.binding(name) for name in ("r-admin", "r-view")]
    return {each["metadata"]["resourceVersion"]: named(each) for each in found if each is not None}


@pytest_asyncio.fixture(loop_scope="session")
async def people(people: People, identity: Callable[..., Awaitable[Path]]) -> People:
    """The people of a cluster in which the function is installed."""
    await identity(AGGREGATION)
    return people


async def test_administrators_stay_until_somebody_accepts_it(
    running: Running, people: People, admin: Api, control_plane: ControlPlane, tmp_path: Path
) -> None:
    """It is foreseen and told, and put right it was nothing; who is taken by name goes meanwhile; accepted, all of them go."""
    command, wrong = commanding(control_plane), taken_from("nobody-made-this")
    file = tmp_path / "wrong.yaml"
    file.write_text(yaml.safe_dump(wrong))
    project = await Project(people).set_up()
    await project.role()
    await project.role("r-view", "view")
    await project.bind("alice", "admin", user("alice"))
    await project.bind("bob", "admin", user("bob"))
    await project.bind("carol", "view", user("carol"))
    async with running(C1, functions=[AGGREGATION]) as knative:
        await project.bound("User alice", "User bob")
        await project.bound("User carol", name="r-view")
        await settle(knative, admin)
    before = await bindings(project)

    code, foreseen, _ = await command("plan", "--config", file, "--function", AGGREGATION)
    assert (code, "0 created, 1 changed, 0 deleted" in foreseen) == (2, True)
    async with running(wrong, functions=[AGGREGATION]) as knative:
        told = await project.told("WithdrawalWaits")
        assert told.startswith(f"level admin would be taken from 2 people: {LINE} is nobody-made-this now, which does not exist")
        assert "ClusterRole admin: User alice, User bob" in told
        assert f"says WithdrawalWaits of ProjectHelmChart {project.home}/{project.chart}: {told}" in foreseen
        await people.label(project.place, {"touched": "1"}, "annotations")
        await knative.sweep(AGGREGATION)
        await settle(knative, admin)
        assert await bindings(project) == before
    async with running(C1, functions=[AGGREGATION]) as knative:
        await project.told("")
        await settle(knative, admin)
        assert await bindings(project) == before
    async with running(wrong, functions=[AGGREGATION]) as knative:
        mark, _, value = (await project.told("WithdrawalWaits")).rpartition(" ")[2].partition("=")
        assert mark == WITHDRAWAL_ACCEPTED
        await project.unbind("bob")
        await project.bound("User alice")
        code, output, _ = await command("explain", "rolebinding/r-admin", "-n", project.place, "--config", file)
        assert code == 0
        assert f"{LINE}: nobody-made-this" in output
        assert "admin, still in force" in output
        assert f"kubectl annotate -n {project.home} projecthelmcharts.helm.cattle.io {project.chart} {mark}={value}" in output
        annotations = ("add", "/metadata/annotations", {mark: "another"})
        await people.edit(PROJECT_HELM_CHART, project.chart, project.home, annotations)
        await knative.sweep(AGGREGATION)
        await settle(knative, admin)
        assert named(await project.binding()) == ["User alice"]
        await people.edit(PROJECT_HELM_CHART, project.chart, project.home, ("add", "/metadata/annotations", {mark: value}))
        await project.bound()
        await project.told("ClusterRoleMissing")
        await project.bound("User carol", name="r-view")


async def test_a_project_goes_over_once_somebody_has_the_other_cluster_role(running: Running, people: People, admin: Api) -> None:
    """A ClusterRole that is there and that nobody has keeps the last administrator; a level without him goes over at once."""
    async with Everywhere(admin) as everywhere:
        await everywhere.role("tests-owner")
        first, second = await Project(people).set_up(), await Project(people).set_up()
        for project in (first, second):
            await project.role()
        async with running(C1, functions=[AGGREGATION]):
            await first.admit("alice")
            await second.admit("alice")
        await second.bind("dora", "tests-owner", user("dora"))
        async with running(taken_from("tests-owner"), functions=[AGGREGATION]) as knative:
            await second.bound("User dora")
            assert "which nobody has here" in await first.told("WithdrawalWaits")
            await settle(knative, admin)
            assert named(await first.binding()) == ["User alice"]
            await first.bind("bob", "tests-owner", user("bob"))
            await first.bound("User bob")
            await first.told("")
            await first.unbind("bob")
            await first.bound()
