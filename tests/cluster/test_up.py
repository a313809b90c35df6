"""Everything on one machine: ``tenantry up``, and the story from a labelled namespace to a release that stays as it is."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import psutil
import pytest
import pytest_asyncio
from people import FUNCTION, LABEL, People
from times import LEFT_TO_MAKE_WHOLE, START_S
from upping import CONFIGURATION, ROOT, Up, run_up, tenantry, uninstall

from tenantry.api import Api
from tenantry.local.control_plane import ALL_MODULES, ControlPlane, ensure_binaries
from tenantry.local.deployment import documents
from tenantry.model.kinds import CONFIG_MAP, CUSTOM_RESOURCE_DEFINITION, HELM_CHART, NAMESPACE, SECRET

HOME, RELEASE, CHART = "cattle-project-p-a", "demo-monitored", "apps.example.com.v1alpha1"

pytestmark = pytest.mark.timeout(480)


def programs(tmp_path: Path) -> dict[str, str]:
    """The variable that names the programs that are there, for a home of its own."""
    folder = tmp_path / "programs"
    folder.mkdir()
    found = ensure_binaries(modules=ALL_MODULES)
    for name in ("etcd", "kube-apiserver", "kube-controller-manager", "helm"):
        (folder / name).symlink_to(found.path(name))
    return {"TENANTRY_CONTROL_PLANE": str(folder)}


@pytest_asyncio.fixture(loop_scope="session")
async def up(tmp_path: Path) -> AsyncIterator[Up]:
    """``make run`` without its set-up, with a home of its own and the programs that are there."""
    async with run_up(tmp_path / "home", "--console", **await asyncio.to_thread(programs, tmp_path)) as running:
        yield running


async def test_the_story_from_a_labelled_namespace_to_rights(up: Up, tmp_path: Path) -> None:
    """One command runs everything, another acts out the story on it; it is uninstalled, and SIGTERM ends it."""
    await up.says("Ready.")
    kubeconfig = (await up.says("export KUBECONFIG=")).partition("=")[2]
    await up.says(f"kubectl label namespace team-a {LABEL}=p-a")
    start = up.lines[: next(number for number, line in enumerate(up.lines) if line.startswith("Ready."))]
    phases = [line.split("  ")[0] for line in start if line and not line[0].isdigit()]
    assert phases == ["control plane", "installed", "functions", "sources"], "\n".join(start)
    assert re.search("not here, so not watched: .*fluxcd.io", start[-2]), "what is not served is told, and is no error"
    processes = psutil.Process(up.process.pid).children(recursive=True)
    assert len(processes) >= 6, "etcd, API server, controller manager, and the functions"

    shown = up.lines[up.lines.index(f"  export KUBECONFIG={kubeconfig}") + 1 :]
    for command in ("status", "tree"):  # as they are printed: after that export, and nothing else
        assert any(re.match(rf"  \S+ {command}\b", line) for line in shown), command
        code, told, errors = await tenantry(command, KUBECONFIG=kubeconfig)
        assert code in (0, 3), told + errors

    page = (await up.says("http://127.0.0.1:")).strip()  # the address of the console
    async with aiohttp.ClientSession(trust_env=False) as session, session.get(page) as answer:
        assert (answer.status, "Tenantry" in await answer.text()) == (200, True)

    code, told, errors = await tenantry("demo", within=150, TENANTRY_HOME=str(tmp_path / "home"))
    assert code == 0, told + errors
    await up.says(f"create Namespace {HOME}")
    await up.says(f"create ConfigMap {HOME}/{CHART}")
    for number in range(1, 7):
        assert f"\n{number}. " in told
    for happened in (
        rf"\d+ ms  created Namespace {HOME}  by namespace-registration",
        rf"\d+ ms  created HelmChart cattle-helm-system/{RELEASE}  by release-provisioning",
        rf"\d+ ms  created ConfigMap {RELEASE}/{RELEASE}-dashboard  by Helm",
        rf"\d+ ms  created RoleBinding {RELEASE}/\S+  by rbac-aggregation",
        rf"\d+ ms  changed ConfigMap {RELEASE}/{RELEASE}-dashboard  by lock-enforcement",
        rf"\d+ ms  {RELEASE}-dashboard is as the chart has it",
        rf"\d+ ms  alice has no right in {RELEASE} any more",
    ):
        assert re.search(happened, told), f"{happened}\n{told}"

    async with await Api.connect(field_manager="tests-admin", kubeconfig=Path(kubeconfig)) as api:
        assert await api.get(SECRET, f"sh.helm.release.v1.{RELEASE}.v1", RELEASE) is not None, "Helm has installed it"
        await up.says("history")
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


@LEFT_TO_MAKE_WHOLE
async def test_the_story_starts_what_it_needs(tmp_path: Path) -> None:
    """Where nothing runs, `tenantry demo` starts everything, tells the story, and leaves no process."""
    environment = {"TENANTRY_HOME": str(tmp_path / "home"), "TENANTRY_CONFIG": CONFIGURATION}
    code, told, errors = await tenantry("demo", within=200, **environment, **programs(tmp_path))
    assert code == 0, told + errors
    assert "no `tenantry up` runs here" in told
    assert f"{RELEASE}-dashboard is as the chart has it" in told
    assert not [each for each in psutil.process_iter(["cmdline"]) if str(tmp_path) in " ".join(each.info["cmdline"] or ())]


@LEFT_TO_MAKE_WHOLE
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


@LEFT_TO_MAKE_WHOLE
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
@LEFT_TO_MAKE_WHOLE
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
