"""The local runner of Jobs: pods are run as a kubelet would, and no process outlives what it is for."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from people import People, token
from times import LOCAL_S

from tenantry.api import Api
from tenantry.local.control_plane import ControlPlane, Lines, ensure_helm
from tenantry.local.jobs import PARALLEL, JobRunner
from tenantry.local.tether import tethered
from tenantry.model.kinds import CONFIG_MAP, JOB, POD, Object
from tenantry.testing import eventually
from tenantry.testing.objects import obj

NOT_INSTALLED = "echo 'Error: release: not found' >&2; exit 1"
"""With a Helm that says so, what is to be uninstalled is uninstalled."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def namespace(admin: Api, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    """A namespace whose Jobs are run, with short pauses between restarts."""
    name = f"runner-{token()}"
    await People(admin).namespace(name)
    folder = tmp_path_factory.mktemp("runner")
    async with JobRunner(admin, name, ensure_helm(Lines()), folder, lambda _: None, restart_after_s=0.1):
        yield name
    assert list(folder.iterdir()) == []


@pytest.fixture(scope="module")
def people(admin: Api) -> People:
    """Who waits for Jobs."""
    return People(admin, LOCAL_S)


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
    return obj(JOB, name, namespace, spec=spec)


def program(path: Path, text: str) -> Path:
    """A shell script in place of Helm."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def absent() -> Object:
    """A volume of a ConfigMap that is not there."""
    return {"name": "content", "configMap": {"name": f"late-{token()}"}}


def waiting(namespace: str, volume: Object) -> Object:
    """A Job whose pod waits for a volume."""
    return job(namespace, "delete", volumes=[volume], volumeMounts=[{"name": "content", "mountPath": "/chart"}])


def ended(found: Object) -> str:
    """How a Job ended; empty while it has not."""
    conditions = (found.get("status") or {}).get("conditions") or ()
    return next((str(one["type"]) for one in conditions if one["type"] in ("Complete", "Failed") and one["status"] == "True"), "")


async def pods(admin: Api, of: Object) -> list[Object]:
    """The pods of a Job."""
    name = of["metadata"]["name"]
    return (await admin.list(POD, of["metadata"]["namespace"], label_selector=f"helmcharts.helm.cattle.io/chart={name}")).items


async def state_of(admin: Api, of: Object) -> Object:
    """The state of the container of a Job's one pod."""
    for pod in await pods(admin, of):
        for status in (pod.get("status") or {}).get("containerStatuses") or ():
            return dict(status["state"])
    return {}


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
    volume = absent()
    wanted = waiting(namespace, volume)
    wanted["spec"]["template"]["spec"]["containers"][0]["env"].append({"name": "TARGET_NAMESPACE", "value": namespace})
    made = await admin.create(JOB, wanted)
    await eventually(lambda: pods(admin, made), within=LOCAL_S, what="pending")
    await admin.create(CONFIG_MAP, obj(CONFIG_MAP, volume["configMap"]["name"], namespace))

    assert ended(await people.until(JOB, made["metadata"]["name"], namespace, ended)) == "Failed"
    (pod,) = await pods(admin, made)
    message = pod["status"]["containerStatuses"][0]["state"]["terminated"]["message"]
    assert f"system:serviceaccount:{namespace}:default" in message
    assert "forbidden" in message


async def test_pod_that_goes_before_it_runs_has_failed(admin: Api, people: People, namespace: str) -> None:
    """A pod that is deleted while it waits is told as failed, so that a Job that waits for its end makes the next one."""
    wanted = waiting(namespace, absent())
    wanted["spec"] |= {"backoffLimit": 1, "podReplacementPolicy": "Failed"}
    made = await admin.create(JOB, wanted)

    async def other(than: str = "") -> str:
        return next((name for pod in await pods(admin, made) if (name := pod["metadata"]["name"]) != than), "")

    first = await eventually(other, within=30)
    seen = (await admin.list(POD, namespace)).resource_version
    await admin.delete(POD, first, namespace)
    last: Object = {}
    async with aclosing(admin.watch(POD, namespace, resource_version=seen, timeout_s=60)) as told:  # type: ignore[type-var]
        async for change, pod in told:
            if change != "BOOKMARK" and pod["metadata"]["name"] == first:
                last = pod
            if change == "DELETED":
                break
    (container,) = last["status"]["containerStatuses"]
    assert (last["status"]["phase"], container["state"]["terminated"]["message"]) == ("Failed", "deleted before it had ended")
    await eventually(lambda: other(first), within=30)


@pytest.mark.parametrize(
    ("policy", "interrupted", "state", "end", "restarts"),
    [
        pytest.param("Never", "exec sleep 600", "running", "Failed", 0, id="never"),
        pytest.param("OnFailure", "exec sleep 600", "running", "Complete", 1, id="on-failure"),
        pytest.param("OnFailure", "exit 1", "waiting", "Complete", 1, id="in-its-pause"),
    ],
)
async def test_pod_that_a_runner_left_is_taken_up(
    admin: Api, people: People, tmp_path: Path, policy: str, interrupted: str, state: str, end: str, restarts: int
) -> None:
    """What ran when a runner ended counts as killed for the next one: it has failed, or is run again where the pod says so."""
    name = f"runner-{token()}"
    await people.namespace(name)
    wanted = job(name, "delete", restartPolicy=policy)
    wanted["spec"]["backoffLimit"] = 0 if policy == "Never" else 3
    made = await admin.create(JOB, wanted)

    async def left() -> bool:
        return state in await state_of(admin, made)

    async with JobRunner(admin, name, program(tmp_path / "interrupted", interrupted), tmp_path, lambda _: None):
        await eventually(left, within=LOCAL_S)
    assert await left()
    helm = program(tmp_path / "helm", NOT_INSTALLED)
    async with JobRunner(admin, name, helm, tmp_path, lambda _: None, restart_after_s=0.1):
        found = await people.until(JOB, made["metadata"]["name"], name, ended)

    assert ended(found) == end
    (pod,) = await pods(admin, made)
    (status,) = pod["status"]["containerStatuses"]
    assert status["restartCount"] == restarts
    assert status["state"]["terminated"]["exitCode"] == (137 if policy == "Never" else 0)


class Behind(Api):
    """A client whose watch tells of nothing that runs or ran until it may."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.may = asyncio.Event()

    async def watch(self, *given: Any, **options: Any) -> AsyncIterator[tuple[str, Object]]:
        """Changes, when they may be told."""
        async with aclosing(super().watch(*given, **options)) as changes:  # type: ignore[type-var]
            async for verb, found in changes:
                if (found.get("status") or {}).get("phase") in ("Running", "Succeeded", "Failed"):
                    await self.may.wait()
                yield verb, found


async def test_pod_that_ended_is_not_taken_again(admin: Api, people: People, control_plane: ControlPlane, tmp_path: Path) -> None:
    """When the watch tells of its beginning after its end, a pod counts as what it is: done."""
    name, said = f"runner-{token()}", list[str]()
    await people.namespace(name)
    helm = program(tmp_path / "helm", NOT_INSTALLED)
    async with (
        await Behind.connect(field_manager="tests", kubeconfig=control_plane.kubeconfig) as api,
        JobRunner(api, name, helm, tmp_path, said.append),
    ):
        for _ in range(2):
            made = await admin.create(JOB, job(name, "delete"))
            assert ended(await people.until(JOB, made["metadata"]["name"], name, ended)) == "Complete"
            api.may.set()

    assert [line.partition(": ")[2] for line in said] == ["done: was not installed"] * 2


async def test_api_server_that_goes_takes_no_pod_along(
    admin: Api, people: People, control_plane: ControlPlane, tmp_path: Path
) -> None:
    """While the API server is away, one pod ends and another asks for its volumes; both are done with when it is back."""
    name, said = f"runner-{token()}", list[str]()
    await people.namespace(name)
    until = f"until [ -e {tmp_path / 'go'} ]; do sleep 0.05; done"
    helm = program(tmp_path / "helm", f"{until}; {NOT_INSTALLED}")
    volume = absent()
    async with JobRunner(admin, name, helm, tmp_path, said.append):
        ends, waits = [await admin.create(JOB, each) for each in (job(name, "delete"), waiting(name, volume))]

        async def begun() -> bool:
            return "running" in await state_of(admin, ends) and "does not exist" in "".join(said)

        async def missed() -> bool:
            asked = "\n".join(said)
            return "PATCH /api/" in asked and "GET /api/" in asked

        await eventually(begun, within=LOCAL_S)
        await asyncio.to_thread(control_plane.stop_api_server, kill=True)
        try:
            (tmp_path / "go").touch()
            await eventually(missed, within=LOCAL_S, what="both pods ask in vain")
        finally:
            await asyncio.to_thread(control_plane.start_api_server)
        await admin.create(CONFIG_MAP, obj(CONFIG_MAP, volume["configMap"]["name"], name))

        for each in (ends, waits):
            assert ended(await people.until(JOB, each["metadata"]["name"], name, ended)) == "Complete"
            (pod,) = await pods(admin, each)
            assert pod["status"]["containerStatuses"][0]["restartCount"] == 0
    assert len([line for line in said if ": done: " in line]) == 2, "each ran once"


@pytest.mark.parametrize("for_what", ["volume", "pause"])
async def test_pods_that_wait_stop_no_other(admin: Api, people: People, tmp_path: Path, for_what: str) -> None:
    """More pods wait, for a volume or before they start again, than processes may run; another one runs nevertheless."""
    name = f"runner-{token()}"
    await people.namespace(name)
    helm = program(tmp_path / "helm", NOT_INSTALLED)
    async with JobRunner(admin, name, helm, tmp_path, lambda _: None, restart_after_s=300.0):
        for _ in range(PARALLEL + 1):
            wanted = waiting(name, absent()) if for_what == "volume" else job(name, "dance", restartPolicy="OnFailure")
            wanted["spec"]["backoffLimit"] = 3
            await admin.create(JOB, wanted)

        async def wait() -> bool:
            found = (await admin.list(POD, name)).items
            states = [status["state"] for pod in found for status in pod["status"].get("containerStatuses") or ()]
            paused = len([state for state in states if "waiting" in state])
            return len(found) > PARALLEL and paused >= (0 if for_what == "volume" else PARALLEL)

        await eventually(wait, within=LOCAL_S)
        made = await admin.create(JOB, job(name, "delete"))

        assert ended(await people.until(JOB, made["metadata"]["name"], name, ended)) == "Complete"


def test_nothing_outlives_the_runner(tmp_path: Path) -> None:
    """When the other end of the tether goes, so does the program and what it started, however long it would take."""
    script = (
        f"import os, subprocess; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); subprocess.run(['sleep', '600'])"
    )
    process = subprocess.Popen(tethered(sys.executable, "-c", script), stdin=subprocess.PIPE, start_new_session=True)
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
    command = tethered(sys.executable, "-c", "raise SystemExit(7)")
    process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)

    assert process.wait(timeout=30) == 7
    assert process.stdin is not None
    process.stdin.close()
