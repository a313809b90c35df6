"""Everything on one machine: ``tenantry up``, and the story from a labelled namespace to a release that stays as it is."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import pytest_asyncio
from people import LABEL

from tenantry.api import Api
from tenantry.local.control_plane import ALL_MODULES, ensure_binaries
from tenantry.local.deployment import documents
from tenantry.model.conditions import find_condition
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    CONFIG_MAP,
    HELM_CHART,
    HELM_RELEASE,
    NAMESPACE,
    PROJECT_HELM_CHART,
    ROLE_BINDING,
    SECRET,
    Kind,
    Object,
)
from tenantry.testing import eventually

ROOT = Path(__file__).parents[2]
HOME, RELEASE = "cattle-project-p-a", "demo-monitored"

pytestmark = pytest.mark.timeout(240)


class Up:
    """``tenantry up`` as a process, and the lines it printed so far."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[str] = []
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            self.lines.append(line.decode().rstrip())

    async def says(self, text: str, within: float = 60) -> str:
        """Wait for a line that has the text."""

        async def said() -> str:
            found = next((line for line in self.lines if text in line), "")
            assert found or self.process.returncode is None, "\n".join(self.lines)
            return found

        return await eventually(said, within=within, what=text)

    async def ends(self) -> int:
        """Wait for the end and the last line."""
        code = await asyncio.wait_for(self.process.wait(), 60)
        await self._reading
        return code


@pytest_asyncio.fixture(loop_scope="session")
async def up(tmp_path: Path) -> AsyncIterator[Up]:
    """``make run`` without its set-up, with a home of its own and the programs that are there."""
    programs = tmp_path / "programs"
    programs.mkdir()
    found = await asyncio.to_thread(ensure_binaries, modules=ALL_MODULES)
    for name in ("etcd", "kube-apiserver", "kube-controller-manager", "helm"):
        (programs / name).symlink_to(found.path(name))
    environment = {
        **{name: value for name, value in os.environ.items() if name != "KUBECONFIG"},
        "TENANTRY_HOME": str(tmp_path / "home"),
        "TENANTRY_CONTROL_PLANE": str(programs),
        "TENANTRY_CONFIG": "docs/examples/tenantry.yaml",
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tenantry.cli", "up"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=environment,
        cwd=ROOT,
    )
    running = Up(process)
    yield running
    if process.returncode is None:
        process.kill()
        await process.wait()


async def _until(api: Api, kind: Kind, name: str, namespace: str = "", holds: Any = lambda _: True) -> Object:
    async def found() -> Object | None:
        live = await api.get(kind, name, namespace)
        return live if live is not None and holds(live) else None

    return await eventually(found, within=60, what=f"{kind.kind} {namespace}/{name}")


def _is_ready(chart: Object) -> bool:
    return (find_condition(chart, "Ready") or {}).get("status") == "True"


def _lacks_rights(helm_release: Object) -> bool:
    return (find_condition(helm_release, "Complete") or {}).get("reason") == "RightMissing"


def _keeps_all(helm_release: Object) -> bool:
    return (find_condition(helm_release, "Complete") or {}).get("status") == "True"


async def _may(api: Api, who: str, verb: str, config_map: str) -> bool:
    attributes = {"verb": verb, "resource": "configmaps", "name": config_map, "namespace": RELEASE}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
    spec = {"user": who, "resourceAttributes": attributes}
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    answer = await api.request("POST", path, body={**review, "spec": spec})
    return bool(answer["status"]["allowed"])


async def test_the_story_from_a_labelled_namespace_to_rights(up: Up) -> None:
    """One command runs everything, real Helm and the lock on what it made included; SIGTERM ends it with nothing left."""
    await up.says("Ready.")
    kubeconfig = (await up.says("export KUBECONFIG=")).partition("=")[2]
    await up.says(f"kubectl label namespace team-a {LABEL}=p-a")
    await up.says("apps.example.com/v1alpha1")
    processes = psutil.Process(up.process.pid).children(recursive=True)
    assert len(processes) >= 6, "etcd, API server, controller manager, and the functions"

    async with await Api.connect(field_manager="tests-admin", kubeconfig=Path(kubeconfig)) as api:
        metadata = {"name": "team-a", "labels": {LABEL: "p-a"}}
        await api.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        await up.says(f"create Namespace {HOME}")

        identity = {"apiVersion": PROJECT_HELM_CHART.api_version, "kind": PROJECT_HELM_CHART.kind}
        asked = {**identity, "metadata": {"name": "demo", "namespace": HOME}}
        await api.create(PROJECT_HELM_CHART, {**asked, "spec": {"helmApiVersion": "apps.example.com/v1alpha1"}})
        told = await _until(api, PROJECT_HELM_CHART, "demo", HOME, _is_ready)
        assert told["status"]["status"] == "Deployed"
        assert await api.get(HELM_CHART, RELEASE, "cattle-helm-system") is not None
        assert await api.get(SECRET, f"sh.helm.release.v1.{RELEASE}.v1", RELEASE) is not None, "Helm has installed it"

        dashboard = f"{RELEASE}-dashboard"
        assert not await _may(api, "alice", "get", dashboard)
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
        alice = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}
        binding = {"apiVersion": ROLE_BINDING.api_version, "kind": ROLE_BINDING.kind, "roleRef": role, "subjects": [alice]}
        await api.create(ROLE_BINDING, {**binding, "metadata": {"name": "alice", "namespace": HOME}})

        async def alice_may() -> bool:
            return await _may(api, "alice", "get", dashboard)

        await eventually(alice_may, within=60)
        assert not await _may(api, "alice", "update", dashboard)

        await _until(api, HELM_RELEASE, RELEASE, "cattle-helm-system", _lacks_rights)  # nobody has said what locks may write
        for role in documents(ROOT / "knative" / "lockable-kinds"):
            await api.apply(CLUSTER_ROLE, role)
        await _until(api, HELM_RELEASE, RELEASE, "cattle-helm-system", _keeps_all)
        chart = await _until(api, CONFIG_MAP, dashboard, RELEASE)
        await api.json_patch(CONFIG_MAP, dashboard, RELEASE, [{"op": "replace", "path": "/data/dashboard.json", "value": "{}"}])
        await _until(api, CONFIG_MAP, dashboard, RELEASE, lambda live: live["data"] == chart["data"])

    up.process.send_signal(signal.SIGTERM)
    assert await up.ends() == 0, "\n".join(up.lines)
    assert up.lines[-1].endswith("ended")
    assert not [line for line in up.lines if "Traceback" in line]
    _, alive = psutil.wait_procs(processes, timeout=10)
    assert alive == []
