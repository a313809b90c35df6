"""The Helm controller of K3s in place of ours, on its own control plane: the same HelmCharts, handled by it.

It is built only when somebody asks for it, as `make volume` does (`tenantry cluster build helm-controller`); without it these
tests are skipped.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from helm_people import FUNCTION, SYSTEM, HelmPeople
from people import People, changed, registration, token
from releases import CONFIG, FUNCTIONS, Owners, conditions_of
from times import HELM_S, START_S

from tenantry.api import Api
from tenantry.local.control_plane import HELM_CONTROLLER, ControlPlane, Lines, ensure_helm, find_binaries
from tenantry.local.knative import Knative
from tenantry.model.conditions import find_condition
from tenantry.model.kinds import (
    CONFIG_MAP,
    CUSTOM_RESOURCE_DEFINITION,
    HELM_CHART,
    JOB,
    NAMESPACE,
    PROJECT_HELM_CHART,
    annotations_of,
)
from tenantry.testing.objects import obj
from tenantry.testing.settling import settle

THEIRS = {"helmcharts.cattle.io/managed-by": "helm-controller"}
EXAMPLE = Path(__file__).parents[2] / "docs/examples/monitored-app"
MONITORED = "apps.example.com/v1alpha1"
EXTERNAL_S = 120.0
"""Its first try mostly comes before its own informers are there; it tries again after growing pauses."""
OURS = {"helmcharts.cattle.io/managed-by": "helm-project-operator"}


def config(*, enabled: bool) -> dict[str, Any]:
    return {"helmProjectOperator": {"systemNamespace": SYSTEM, "helmController": {"enabled": enabled}}}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def plane(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ControlPlane]:
    """A control plane with the real helm-controller, which brings its own CRDs."""
    found, _ = find_binaries((HELM_CONTROLLER,))
    if not found:
        pytest.skip("the real helm-controller is not built: tenantry cluster build helm-controller (about 3 minutes, once)")
    folder = tmp_path_factory.mktemp("helm-controller")
    with ControlPlane(ephemeral=True) as running, (folder / "log").open("wb") as log:
        async with await Api.connect(field_manager="test", kubeconfig=running.kubeconfig) as api:
            await api.create(NAMESPACE, obj(NAMESPACE, SYSTEM))
        process = await asyncio.create_subprocess_exec(
            str(found[0].paths["helm-controller"]),
            *("--kubeconfig", str(running.kubeconfig), "--namespace", SYSTEM, "--controller-name", "helm-controller"),
            *("--default-job-image", "rancher/klipper-helm", "--node-name", "here"),
            stdout=log,
            stderr=log,
            stdin=asyncio.subprocess.DEVNULL,
        )
        try:
            yield running
        finally:
            process.kill()
            await process.wait()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def helm(plane: ControlPlane) -> AsyncIterator[HelmPeople]:
    """An administrator, once the CRDs of the helm-controller are there."""
    async with await Api.connect(field_manager="test", kubeconfig=plane.kubeconfig) as api:
        people = People(api, HELM_S)
        await people.until(CUSTOM_RESOURCE_DEFINITION, "helmchartconfigs.helm.cattle.io", "", bool, within=START_S)
        yield HelmPeople(people)


async def test_external_controller_does_the_same(plane: ControlPlane, helm: HelmPeople, tmp_path: Path) -> None:
    """With helmController.enabled: false the real helm-controller installs, upgrades and uninstalls; we write nothing."""
    name = f"theirs-{token()}"
    async with Knative(
        plane.kubeconfig, tmp_path, config=config(enabled=False), functions=[FUNCTION], helm=ensure_helm(Lines())
    ) as system:
        await helm.ask(name, THEIRS, valuesContent="greeting: hello")
        await helm.greets(name, "hello", within=EXTERNAL_S)
        await helm.change(name, valuesContent="greeting: servus")
        await helm.greets(name, "servus", within=EXTERNAL_S)
        await settle(system, helm.admin)
        chart = await helm.people.get(HELM_CHART, name, SYSTEM)
        writers = {entry["manager"] for entry in chart["metadata"]["managedFields"]}
        assert not [manager for manager in writers if manager.startswith("tenantry-release")]
        assert annotations_of(chart) | THEIRS == annotations_of(chart)

        await helm.people.delete(HELM_CHART, name, SYSTEM)
        await helm.gone(HELM_CHART, name, within=EXTERNAL_S)
        assert await helm.admin.get(CONFIG_MAP, name, name) is None


async def test_both_live_on_the_definitions_of_the_other(plane: ControlPlane, helm: HelmPeople, tmp_path: Path) -> None:
    """On CRDs that are not ours, which know fewer fields, our controller works beside the other one, each on its own."""
    ours, theirs = f"ours-{token()}", f"theirs-{token()}"
    async with Knative(
        plane.kubeconfig, tmp_path, config=config(enabled=True), functions=[FUNCTION], helm=ensure_helm(Lines())
    ) as system:
        await helm.ask(ours, OURS, valuesContent="greeting: ours")
        await helm.ask(theirs, THEIRS, valuesContent="greeting: theirs")
        await helm.greets(ours, "ours", within=EXTERNAL_S)
        await helm.greets(theirs, "theirs", within=EXTERNAL_S)

        chart = await helm.people.until(
            HELM_CHART, ours, SYSTEM, lambda found: (find_condition(found, "Failed") or {}).get("reason") == "Complete"
        )
        assert chart["metadata"]["finalizers"] == ["tenantry.dev/helm-chart"]
        before = await helm.people.get(JOB, f"helm-install-{ours}", SYSTEM)
        await settle(system, helm.admin)
        await system.sweep(FUNCTION)
        after = await helm.people.get(HELM_CHART, ours, SYSTEM)
        assert after["metadata"]["resourceVersion"] == chart["metadata"]["resourceVersion"]
        assert (await helm.people.get(JOB, f"helm-install-{ours}", SYSTEM))["metadata"]["uid"] == before["metadata"]["uid"]

        await helm.people.delete(HELM_CHART, ours, SYSTEM)
        await helm.gone(HELM_CHART, ours)


async def test_project_helm_chart_is_deployed_by_the_external_controller(
    plane: ControlPlane, helm: HelmPeople, tmp_path: Path
) -> None:
    """From a ProjectHelmChart to the Job of the real helm-controller, the release, what its owner reads, and back."""
    charts = [{"helmApiVersion": MONITORED, "releaseName": "monitored", "chart": str(EXAMPLE)}]
    controller = {"enabled": False, "externalControllerName": "helm-controller"}
    wanted = changed(
        CONFIG,
        operator={
            "systemNamespace": SYSTEM,
            "helmController": controller,
            "charts": [*CONFIG["helmProjectOperator"]["charts"], *charts],
        },
    )
    owners, project = Owners(helm.admin, HELM_S), f"p-{token()}"
    name, home = f"demo-{project}", registration(project)
    release = f"{name}-monitored"
    functions = (*FUNCTIONS, "lock-enforcement")
    async with Knative(plane.kubeconfig, tmp_path, config=wanted, functions=functions, helm=ensure_helm(Lines())):
        await owners.project(name=project)
        await owners.ask(name, project, version=MONITORED)
        job = await owners.until(JOB, f"helm-install-{release}", SYSTEM, bool, within=EXTERNAL_S)
        await owners.told(name, project, "Deployed", holds=lambda chart: conditions_of(chart)["Ready"] == ("True", "Deployed"))
        chart = await owners.get(HELM_CHART, release, SYSTEM)
        before = await helm.releases(release)

        await owners.delete(PROJECT_HELM_CHART, name, home)
        await owners.away(PROJECT_HELM_CHART, name, home)
        await helm.gone(HELM_CHART, release, within=EXTERNAL_S)
        assert await helm.releases(release) == []
        assert await helm.admin.get(CONFIG_MAP, f"{release}-dashboard", release) is None

    assert job["spec"]["template"]["spec"]["containers"][0]["image"] == "rancher/klipper-helm"
    assert annotations_of(chart) | THEIRS == annotations_of(chart)
    assert chart["metadata"]["finalizers"] == ["wrangler.cattle.io/on-helm-chart-remove"]
    assert before == [(1, "deployed")]
