"""Everything on one machine: ``tenantry up``, and the story from a labelled namespace to a release that stays as it is."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
import pytest_asyncio
from people import FUNCTION, LABEL, People, may
from rights import cluster_role, user
from times import START_S
from upping import ROOT, Up, run_up, tenantry, uninstall

from tenantry.api import Api
from tenantry.local.control_plane import ALL_MODULES, ControlPlane, ensure_binaries
from tenantry.local.deployment import documents
from tenantry.model.conditions import find_condition
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    CONFIG_MAP,
    CUSTOM_RESOURCE_DEFINITION,
    HELM_CHART,
    HELM_RELEASE,
    NAMESPACE,
    PROJECT_HELM_CHART,
    ROLE_BINDING,
    SECRET,
    Object,
)
from tenantry.testing import eventually
from tenantry.testing.objects import obj

HOME, RELEASE, CHART = "cattle-project-p-a", "demo-monitored", "apps.example.com.v1alpha1"

pytestmark = pytest.mark.timeout(240)


@pytest_asyncio.fixture(loop_scope="session")
async def up(tmp_path: Path) -> AsyncIterator[Up]:
    """``make run`` without its set-up, with a home of its own and the programs that are there."""
    programs = tmp_path / "programs"
    programs.mkdir()
    found = await asyncio.to_thread(ensure_binaries, modules=ALL_MODULES)
    for name in ("etcd", "kube-apiserver", "kube-controller-manager", "helm"):
        (programs / name).symlink_to(found.path(name))
    async with run_up(tmp_path / "home", TENANTRY_CONTROL_PLANE=str(programs)) as running:
        yield running


def _is_ready(chart: Object) -> bool:
    return (find_condition(chart, "Ready") or {}).get("status") == "True"


def _lacks_rights(helm_release: Object) -> bool:
    return (find_condition(helm_release, "Complete") or {}).get("reason") == "RightMissing"


def _keeps_all(helm_release: Object) -> bool:
    return (find_condition(helm_release, "Complete") or {}).get("status") == "True"


async def test_the_story_from_a_labelled_namespace_to_rights(up: Up) -> None:
    """One command runs everything, real Helm and the lock on what it made included; it is uninstalled, and SIGTERM ends it."""
    await up.says("Ready.")
    kubeconfig = (await up.says("export KUBECONFIG=")).partition("=")[2]
    await up.says(f"kubectl label namespace team-a {LABEL}=p-a")
    await up.says("apps.example.com/v1alpha1")
    processes = psutil.Process(up.process.pid).children(recursive=True)
    assert len(processes) >= 6, "etcd, API server, controller manager, and the functions"

    async with await Api.connect(field_manager="tests-admin", kubeconfig=Path(kubeconfig)) as api:
        people = People(api, START_S)
        await api.create(NAMESPACE, obj(NAMESPACE, "team-a", labels={LABEL: "p-a"}))
        await up.says(f"create Namespace {HOME}")
        await up.says(f"create ConfigMap {HOME}/{CHART}")
        assert await api.get(CONFIG_MAP, CHART, HOME) is not None

        spec = {"helmApiVersion": "apps.example.com/v1alpha1"}
        await api.create(PROJECT_HELM_CHART, obj(PROJECT_HELM_CHART, "demo", HOME, spec=spec))
        told = await people.until(PROJECT_HELM_CHART, "demo", HOME, _is_ready)
        assert told["status"]["status"] == "Deployed"
        assert await api.get(HELM_CHART, RELEASE, "cattle-helm-system") is not None
        assert await api.get(SECRET, f"sh.helm.release.v1.{RELEASE}.v1", RELEASE) is not None, "Helm has installed it"

        dashboard = f"{RELEASE}-dashboard"
        assert not await may(api, "alice", "get", "configmaps", RELEASE, name=dashboard)
        binding = obj(ROLE_BINDING, "alice", HOME, roleRef=cluster_role("view"), subjects=[user("alice")])
        await api.create(ROLE_BINDING, binding)
        await eventually(
            lambda: may(api, "alice", "get", "configmaps", RELEASE, name=dashboard), within=START_S, what="alice may"
        )
        assert not await may(api, "alice", "update", "configmaps", RELEASE, name=dashboard)

        await people.until(HELM_RELEASE, RELEASE, "cattle-helm-system", _lacks_rights)  # nobody has said what locks may write
        for role in documents(ROOT / "knative" / "lockable-kinds"):
            await api.apply(CLUSTER_ROLE, role)
        await people.until(HELM_RELEASE, RELEASE, "cattle-helm-system", _keeps_all)
        chart = await people.until(CONFIG_MAP, dashboard, RELEASE, bool)
        await api.json_patch(CONFIG_MAP, dashboard, RELEASE, [{"op": "replace", "path": "/data/dashboard.json", "value": "{}"}])
        await people.until(CONFIG_MAP, dashboard, RELEASE, lambda live: live["data"] == chart["data"])

        await up.says("is shown by tenantry history")
        code, told, errors = await tenantry("history", "alice", KUBECONFIG=kubeconfig)
        assert (code, "Role/demo-monitored-view for +User/alice" in told) == (0, True), errors

        await uninstall(kubeconfig)
        await up.says("Ctrl-C ends the control plane")
        assert await api.get(HELM_CHART, RELEASE, "cattle-helm-system") is None
        assert await api.get(NAMESPACE, HOME) is not None, "the control plane stays"

    up.process.send_signal(signal.SIGTERM)
    assert await up.ends() == 0, "\n".join(up.lines)
    assert up.lines[-1].endswith("ended")
    assert not [line for line in up.lines if "Traceback" in line]
    _, alive = psutil.wait_procs(processes, timeout=10)
    assert alive == []


async def test_somebody_elses_cluster_is_used_and_left_alone(tmp_path: Path) -> None:
    """With --kubeconfig a function serves that cluster; SIGINT ends it, SIGKILL ends its function, and the cluster stays."""
    with ControlPlane(ephemeral=True) as plane:
        options = ("--kubeconfig", str(plane.kubeconfig), "--function", FUNCTION)
        async with await Api.connect(field_manager="tests-admin", kubeconfig=plane.kubeconfig) as admin:
            people = People(admin)
            async with run_up(tmp_path / "home", *options) as up:
                await up.says("Ready.")
                for crd in documents(ROOT / "knative" / "crds"):
                    assert await admin.get(CUSTOM_RESOURCE_DEFINITION, crd["metadata"]["name"]) is not None
                await people.namespace("team-a", "p-a")
                await people.until(CONFIG_MAP, CHART, HOME, bool, within=START_S)
                processes = psutil.Process(up.process.pid).children(recursive=True)
                assert [FUNCTION in each.cmdline() for each in processes] == [True]
                up.process.send_signal(signal.SIGINT)
                assert await up.ends() == 0, "\n".join(up.lines)
                assert up.lines[-1].endswith("ended")
                assert not [line for line in up.lines if "Traceback" in line]
                assert [each for each in processes if each.is_running()] == []

            async with run_up(tmp_path / "home", *options) as up:
                await up.says("Ready.")
                processes = psutil.Process(up.process.pid).children(recursive=True)
                assert [FUNCTION in each.cmdline() for each in processes] == [True]
                up.process.kill()
                _, alive = await asyncio.to_thread(psutil.wait_procs, processes, timeout=30)
                for each in alive:
                    each.kill()
                assert alive == []
            await people.get(NAMESPACE, HOME)


async def test_an_uninstallation_ends_it(tmp_path: Path) -> None:
    """In somebody else's cluster it ends by itself when Tenantry is uninstalled, and leaves no dead letter."""
    with ControlPlane(ephemeral=True) as plane:
        async with run_up(tmp_path / "home", "--kubeconfig", str(plane.kubeconfig), "--function", FUNCTION) as up:
            await up.says("Ready.")
            processes = psutil.Process(up.process.pid).children(recursive=True)
            await uninstall(plane.kubeconfig)
            assert [each for each in processes if each.is_running()] == []
            assert await up.ends() == 0, "\n".join(up.lines)
    assert [line for line in up.lines if "Tenantry was taken out of this cluster" in line]
    assert not [line for line in up.lines if "dead letter:" in line]


async def test_a_wrong_configuration_ends_it_before_anything_is_started(tmp_path: Path) -> None:
    """An unknown key is named with its path, with exit code 2, and no control plane is looked for or begun."""
    config = tmp_path / "tenantry.yaml"
    config.write_text("global:\n  cattle:\n    clusterID: c\n")
    home = tmp_path / "home"
    async with run_up(home, TENANTRY_CONFIG=str(config), TENANTRY_CONTROL_PLANE=str(tmp_path / "nothing")) as up:
        assert await up.ends() == 2

    assert up.lines == [line for line in up.lines if "global.cattle.clusterID: unknown key" in line]
    assert len(up.lines) == 1
    assert not home.exists()


@pytest.mark.parametrize(("function", "stops"), [(FUNCTION, True), ("scope-binding", False)])
async def test_a_chart_that_is_not_there_is_told_where_it_is_needed(tmp_path: Path, function: str, stops: bool) -> None:
    """A function that reads no chart does not care; here it is the control plane that is missing then."""
    config = tmp_path / "tenantry.yaml"
    config.write_text("helmProjectOperator:\n  charts: [{helmApiVersion: a.b/v1, releaseName: r, chart: /nowhere}]\n")
    nothing = str(tmp_path / "nothing")
    async with run_up(
        tmp_path / "home", "--function", function, TENANTRY_CONFIG=str(config), TENANTRY_CONTROL_PLANE=nothing
    ) as up:
        assert await up.ends() == (2 if stops else 1)

    assert ("helmProjectOperator.charts[0].chart" in "\n".join(up.lines)) == stops
    assert (nothing in "\n".join(up.lines)) != stops
