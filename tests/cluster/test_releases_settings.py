"""Releases under other configurations (hpo-44, 50, 52, 54 to 57)."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from people import LABEL, ORPHANED, PROJECT_ID, changed, registration, token
from releases import CLEANUP, CONFIG, DUMMY, FUNCTIONS, PROVISIONING, SYSTEM, Owners, cattle_of, conditions_of

from tenantry.local.knative import Knative
from tenantry.model.kinds import CONFIG_MAP, HELM_CHART, NAMESPACE, PROJECT_HELM_CHART, SERVICE_ACCOUNT, annotations_of, labels_of
from tenantry.model.names import SYSTEM_NAMESPACE
from tenantry.serving.config import ConfigError, parse_config
from tenantry.testing.settling import settle

Running = Callable[..., AbstractAsyncContextManager[Knative]]


def with_charts(*charts: dict[str, Any], **operator: Any) -> dict[str, Any]:
    return changed(CONFIG, operator={"charts": list(charts), **operator})


@pytest.mark.check("hpo-44")
@pytest.mark.check("hpo-54")
async def test_a_singleton_and_a_chart_from_a_repository(running: Running, owners: Owners) -> None:
    """A singleton chart is named after its registration namespace and is there once; a managed chart is a reference."""
    reference = {"repo": "https://charts.example", "name": "monitoring", "version": "1.2.3"}
    config = with_charts(
        {"helmApiVersion": DUMMY, "releaseName": "dummy", "singleton": True},
        {"helmApiVersion": "monitoring.cattle.io/v1alpha1", "releaseName": "monitoring", "chart": reference},
        helmController={"enabled": False, "externalControllerName": "k3s", "jobImage": "registry.example/helm:1"},
    )
    project, second = f"p-{token()}", f"z-{token()}"
    release = f"{registration(project)}-dummy"
    async with running(config, functions=FUNCTIONS):
        await owners.project(name=project)
        await owners.ask(f"a-{second}", project)
        chart = await owners.provisioned(release)
        await owners.ask(second, project)
        await owners.ask("demo", project, version="monitoring.cattle.io/v1alpha1")
        told = await owners.told(second, project, "UnableToCreateHelmRelease")
        managed = await owners.provisioned("demo-monitoring")

    assert chart["spec"]["targetNamespace"] == release
    assert f"{registration(project)}/a-{second}" in told["status"]["statusMessage"]
    assert annotations_of(chart)["helmcharts.cattle.io/managed-by"] == "k3s"
    assert chart["spec"]["chartContent"]
    assert chart["spec"]["chart"] == release
    assert chart["spec"]["jobImage"] == "registry.example/helm:1"
    assert "chartContent" not in managed["spec"]
    assert {name: managed["spec"][name] for name in ("repo", "chart", "version")} == {
        "repo": "https://charts.example",
        "chart": "monitoring",
        "version": "1.2.3",
    }
    with pytest.raises(ConfigError, match="version: required"):
        parse_config("helmProjectOperator: {charts: [{helmApiVersion: a.b/v1, releaseName: a, chart: {repo: r, name: n}}]}")


async def test_a_chart_folder_is_packed_alike_everywhere(running: Running, owners: Owners, tmp_path: Path) -> None:
    """The embedded chart is what Helm reads, and another process with the same files packs the same bytes."""
    folder = tmp_path / "chart"
    (folder / "templates").mkdir(parents=True)
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: mine\nversion: 1.0.0\n")
    (folder / "templates" / "a.yaml").write_text("kind: ConfigMap\n")
    config = with_charts({"helmApiVersion": DUMMY, "releaseName": "packed", "chart": str(folder)})
    async with running(config, functions=FUNCTIONS):
        project = await owners.project()
        await owners.ask(f"demo-{project}", project)
        chart = await owners.provisioned(f"demo-{project}-packed")
    for path in folder.rglob("*"):
        os.utime(path, (1, 1))
    async with running(config, functions=FUNCTIONS) as again:
        await settle(again, owners.admin)
    import base64
    import io

    archive = tarfile.open(fileobj=io.BytesIO(base64.b64decode(chart["spec"]["chartContent"])))  # noqa: SIM115

    assert archive.getnames() == ["chart/Chart.yaml", "chart/templates/a.yaml"]
    assert (await owners.get(HELM_CHART, f"demo-{project}-packed", SYSTEM))["metadata"]["generation"] == 1


@pytest.mark.check("hpo-55", open="Without a label value alone releases keep namespaces of their own: a switch turns them off.")
async def test_without_release_namespaces(running: Running, owners: Owners) -> None:
    """Switched off there are no release namespaces: the chart goes into the registration namespace."""
    config = changed(CONFIG, operator={"projectReleaseNamespaces": {"enabled": False}})
    async with running(config, functions=FUNCTIONS):
        project = await owners.project()
        name, home = f"demo-{project}", registration(project)
        await owners.ask(name, project)
        chart = await owners.provisioned(f"{name}-dummy")
        await owners.dashboard("mine", home, f"{name}-dummy", **{"a.json": '{"k": 1}'})
        told = await owners.told(name, project, "Deployed")
        await owners.edit(CONFIG_MAP, "mine", home, ("remove", "/metadata/labels", None))
        await owners.told(name, project, "WaitingForDashboardValues")
        await owners.delete(PROJECT_HELM_CHART, name, home)
        await owners.taken_away(f"{name}-dummy")

    assert chart["spec"]["targetNamespace"] == home
    assert cattle_of(chart)["projectNamespaceSelector"] == {"matchLabels": {LABEL: project}}
    assert cattle_of(chart)["projectNamespaces"] == [f"a1-{project}"]
    assert cattle_of(chart)["releaseProjectID"] == ""
    assert told["status"]["targetNamespaces"] == [f"a1-{project}"]
    assert told["status"]["dashboardValues"] == {"k": 1}
    assert await owners.admin.get(NAMESPACE, f"{name}-dummy") is None
    assert ORPHANED not in labels_of(await owners.get(NAMESPACE, home))


async def test_release_namespaces_need_no_project(running: Running, owners: Owners) -> None:
    """Without any project id releases have namespaces of their own, which are in no project."""
    async with running(changed(CONFIG, cattle={"systemProjectId": ""}), functions=FUNCTIONS):
        project = await owners.project()
        name = f"demo-{project}"
        await owners.ask(name, project)
        chart = await owners.provisioned(f"{name}-dummy")
        await owners.dashboard("theirs", f"{name}-dummy", f"{name}-dummy", **{"a.json": '{"k": 1}'})
        await owners.told(name, project, "Deployed")
        namespace = await owners.get(NAMESPACE, f"{name}-dummy")
        await owners.delete(PROJECT_HELM_CHART, name, registration(project))
        await owners.until(NAMESPACE, f"{name}-dummy", "", lambda found: ORPHANED in labels_of(found))

    assert chart["spec"]["targetNamespace"] == f"{name}-dummy"
    assert cattle_of(chart)["projectNamespaces"] == [f"a1-{project}", f"{name}-dummy"]
    assert labels_of(namespace)[PROJECT_ID] == project
    assert LABEL not in {**labels_of(namespace), **annotations_of(namespace)}


@pytest.mark.one_variant("before")
@pytest.mark.parametrize("before", [True, False], ids=["from dedicated", "to dedicated"])
async def test_a_release_is_not_moved_by_a_setting(running: Running, owners: Owners, before: bool) -> None:
    """A release that is installed stays where it is and as it is when the setting changes, and its owner is told."""

    def switched(enabled: bool) -> dict[str, Any]:
        return changed(CONFIG, operator={"projectReleaseNamespaces": {"enabled": enabled}})

    async with running(switched(before), functions=FUNCTIONS):
        project = await owners.project()
        name, release, home = f"demo-{project}", f"demo-{project}-dummy", registration(project)
        await owners.ask(name, project)
        chart = await owners.provisioned(release)
        await owners.told(name, project, "WaitingForDashboardValues")
    place = release if before else home
    async with running(switched(not before), functions=FUNCTIONS):
        told = await owners.told(name, project, "UnableToCreateHelmRelease")
        live = await owners.get(HELM_CHART, release, SYSTEM)
    async with running(switched(before), functions=FUNCTIONS):
        await owners.told(name, project, "WaitingForDashboardValues")

    assert chart["spec"]["targetNamespace"] == place
    assert (live["metadata"]["uid"], live["spec"]) == (chart["metadata"]["uid"], chart["spec"])
    assert f"it is installed in namespace {place}, and no release is moved" in told["status"]["statusMessage"]
    assert f"projectReleaseNamespaces.enabled: {str(before).lower()}" in told["status"]["statusMessage"]


@pytest.mark.check("hpo-56")
@pytest.mark.check("hpo-57")
async def test_single_namespace_mode(running: Running, owners: Owners) -> None:
    """Without a project label a selector chooses the namespaces, and namespaces that come and go are followed."""
    config = changed(CONFIG, cattle={"projectLabel": ""})
    team = token()
    first, second, other = f"first-{team}", f"second-{team}", f"other-{team}"
    await owners.namespace(first, labels={"team": team})
    await owners.namespace(other, labels={"team": "x"})
    selector = {"matchLabels": {"team": team}, "matchExpressions": [{"key": "secret", "operator": "DoesNotExist"}]}
    async with running(config, functions=FUNCTIONS) as knative:
        await owners.ask(f"chosen-{team}", "", namespace=SYSTEM, projectNamespaceSelector=selector)
        await owners.ask(f"none-{team}", "", namespace=SYSTEM)
        chart = await owners.provisioned(f"chosen-{team}-dummy")
        await owners.told(f"none-{team}", "", "NoTargetProjectNamespaces", namespace=SYSTEM)
        await owners.namespace(second, labels={"team": team})
        await owners.provisioned(
            f"chosen-{team}-dummy", holds=lambda found: cattle_of(found)["projectNamespaces"] == [first, second]
        )
        await owners.delete(NAMESPACE, other)
        await owners.delete(NAMESPACE, first)
        await owners.provisioned(f"chosen-{team}-dummy", holds=lambda found: cattle_of(found)["projectNamespaces"] == [second])
        await owners.gone(other)
        await owners.label(second, {"secret": "yes"})
        await owners.told(f"chosen-{team}", "", "NoTargetProjectNamespaces", namespace=SYSTEM)
        await owners.taken_away(f"chosen-{team}-dummy")
        for name in (f"chosen-{team}", f"none-{team}"):
            await owners.delete(PROJECT_HELM_CHART, name, SYSTEM)
            await owners.away(PROJECT_HELM_CHART, name, SYSTEM)
        await knative.drain()
        assert not knative.dead_letters.exists()

    assert chart["spec"]["targetNamespace"] == SYSTEM
    assert cattle_of(chart)["projectNamespaceSelector"] == selector
    assert cattle_of(chart)["projectID"] == f"chosen-{team}"
    assert await owners.admin.get(HELM_CHART, f"none-{team}-dummy", SYSTEM) is None


@pytest.mark.check("hpo-50")
@pytest.mark.check("hpo-52")
async def test_a_denied_project_and_a_new_installation(running: Running, owners: Owners) -> None:
    """A denied project's release stays, is told, and can be deleted; a system that is deployed again lifts the cleanup."""
    denied, cleaned = f"p-{token()}", f"p-{token()}"
    async with running(CONFIG, functions=FUNCTIONS):
        for project in (denied, cleaned):
            await owners.project(name=project)
            await owners.ask(f"demo-{project}", project)
            await owners.provisioned(f"demo-{project}-dummy")
            await owners.told(f"demo-{project}", project, "WaitingForDashboardValues")
        await owners.edit(
            PROJECT_HELM_CHART, f"demo-{cleaned}", registration(cleaned), ("add", "/metadata/labels", {CLEANUP: "true"})
        )
        await owners.told(f"demo-{cleaned}", cleaned, "AwaitingOperatorRedeployment")
        await owners.taken_away(f"demo-{cleaned}-dummy")
    before = await owners.get(HELM_CHART, f"demo-{denied}-dummy", SYSTEM)
    await owners.delete(SERVICE_ACCOUNT, PROVISIONING, SYSTEM_NAMESPACE)  # the system is uninstalled, and comes again

    async with running(
        changed(CONFIG, operator={"otherSystemProjectLabelValues": ["p-denied", denied]}), functions=FUNCTIONS
    ) as again:
        told = await owners.told(f"demo-{denied}", denied, "UnableToCreateHelmRelease")
        lifted = await owners.told(f"demo-{cleaned}", cleaned, "WaitingForDashboardValues")
        await owners.provisioned(f"demo-{cleaned}-dummy")
        await settle(again, owners.admin)
        kept = await owners.get(HELM_CHART, f"demo-{denied}-dummy", SYSTEM)

        await owners.delete(PROJECT_HELM_CHART, f"demo-{denied}", registration(denied))
        await owners.away(PROJECT_HELM_CHART, f"demo-{denied}", registration(denied))
        await owners.taken_away(f"demo-{denied}-dummy")

    assert CLEANUP not in labels_of(lifted)
    assert "denied by the configuration" in told["status"]["statusMessage"]
    assert conditions_of(told)["Stalled"] == ("True", "ProjectDenied")
    assert (kept["metadata"]["uid"], kept["metadata"]["resourceVersion"]) == (
        before["metadata"]["uid"],
        before["metadata"]["resourceVersion"],
    )
