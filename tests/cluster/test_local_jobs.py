"""The local runner of Jobs: pods are run as a kubelet would, and no process outlives what it is for."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from people import People, token

from tenantry.api import Api
from tenantry.local import tether
from tenantry.local.control_plane import Lines, ensure_helm
from tenantry.local.jobs import JobRunner
from tenantry.model.kinds import CONFIG_MAP, JOB, POD, Object
from tenantry.testing import eventually


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def namespace(admin: Api, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    """A namespace whose Jobs are run, with short pauses between restarts."""
    name = f"runner-{token()}"
    await People(admin).namespace(name)
    folder = tmp_path_factory.mktemp("runner")
    async with JobRunner(admin, name, ensure_helm(Lines()), folder, lambda _: None, restart_after_s=0.1):
        yield name
    assert list(folder.iterdir()) == []


def job(namespace: str, *arguments: str, **pod: Any) -> Object:
    """A Job of the kind that release-provisioning makes."""
    name = f"job-{token()}"
    container: Object = {"name": "helm", "image": "none", "args": list(arguments), "env": [{"name": "NAME", "value": name}]}
    if mounts := pod.pop("volumeMounts", None):
        container["volumeMounts"] = mounts
    template = {
        "metadata": {"labels": {"helmcharts.helm.cattle.io/chart": name}},
        "spec": {"restartPolicy": "Never", "containers": [container], **pod},
    }
    spec = {"backoffLimit": 0, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def ended(found: Object) -> str:
    """How a Job ended; empty while it has not."""
    conditions = (found.get("status") or {}).get("conditions") or ()
    return next((str(one["type"]) for one in conditions if one["type"] in ("Complete", "Failed") and one["status"] == "True"), "")


async def pods(admin: Api, of: Object) -> list[Object]:
    """The pods of a Job."""
    name = of["metadata"]["name"]
    return (await admin.list(POD, of["metadata"]["namespace"], label_selector=f"helmcharts.helm.cattle.io/chart={name}")).items


async def test_failure_is_told_in_the_pod_and_ends_the_job(admin: Api, people: People, namespace: str) -> None:
    """A program that fails leaves its last words in the pod, and the Job counts the attempt."""
    made = await admin.create(JOB, job(namespace, "dance"))

    found = await people.until(JOB, made["metadata"]["name"], namespace, ended)

    assert ended(found) == "Failed"
    (pod,) = await pods(admin, made)
    terminated = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    assert pod["status"]["phase"] == "Failed"
    assert terminated["exitCode"] == 1
    assert "the first argument is install or delete" in terminated["message"]


async def test_container_that_fails_is_started_again_where_the_pod_says_so(admin: Api, people: People, namespace: str) -> None:
    """With the restart policy OnFailure, as upstream's Jobs have it, the restarts of the one pod count."""
    wanted = job(namespace, "dance", restartPolicy="OnFailure")
    wanted["spec"]["backoffLimit"] = 1

    made = await admin.create(JOB, wanted)

    assert ended(await people.until(JOB, made["metadata"]["name"], namespace, ended)) == "Failed"


async def test_pod_waits_for_its_volumes(admin: Api, people: People, namespace: str) -> None:
    """A ConfigMap that is not there yet is waited for; the work begins when it comes, under the pod's own account."""
    volume = {"name": "content", "configMap": {"name": f"late-{token()}"}}
    mounts = [{"name": "content", "mountPath": "/chart"}]
    wanted = job(namespace, "delete", volumes=[volume], volumeMounts=mounts)
    wanted["spec"]["template"]["spec"]["containers"][0]["env"].append({"name": "TARGET_NAMESPACE", "value": namespace})
    made = await admin.create(JOB, wanted)

    async def pending() -> bool:
        return bool(await pods(admin, made))

    await eventually(pending, within=30)
    metadata = {"name": volume["configMap"]["name"], "namespace": namespace}  # type: ignore[index]
    await admin.create(CONFIG_MAP, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})

    assert ended(await people.until(JOB, made["metadata"]["name"], namespace, ended)) == "Failed"
    (pod,) = await pods(admin, made)
    message = pod["status"]["containerStatuses"][0]["state"]["terminated"]["message"]
    assert f"system:serviceaccount:{namespace}:default" in message
    assert "forbidden" in message


def test_nothing_outlives_the_runner(tmp_path: Path) -> None:
    """When the other end of the tether goes, so does the program and what it started, however long it would take."""
    script = (
        f"import os, subprocess; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); subprocess.run(['sleep', '600'])"
    )
    process = subprocess.Popen(
        [sys.executable, str(tether.__file__), sys.executable, "-c", script], stdin=subprocess.PIPE, start_new_session=True
    )
    assert process.stdin is not None
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        assert process.poll() is None
    inner = int((tmp_path / "pid").read_text())

    process.stdin.close()

    assert process.wait(timeout=30) == -9
    while Path(f"/proc/{inner}").exists() and "\nState:\tZ" not in Path(f"/proc/{inner}/status").read_text():
        os.sched_yield()


def test_tether_ends_as_its_command_does() -> None:
    """The exit code of the command is that of the tether."""
    command = [sys.executable, str(tether.__file__), sys.executable, "-c", "raise SystemExit(7)"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)

    assert process.wait(timeout=30) == 7
    assert process.stdin is not None
    process.stdin.close()
