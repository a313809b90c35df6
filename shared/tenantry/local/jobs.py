"""The Jobs of release-provisioning where no kubelet runs: their pods are run as processes, with a real Helm.

The Job controller of the control plane makes a pod for each attempt of a Job.  There is no scheduler and no node, so the pod
stays pending; the runner takes it as it is, lays out its volumes in a folder of its own (Secrets, ConfigMaps, and the token of
its ServiceAccount, from a TokenRequest), runs the program of our job image there whatever image is named, and writes the pod's
status as a kubelet would.  The Job controller then counts the attempt.  One release is worked on by one process at a time; a
pod that is deleted gives its process the grace period.  On a cluster nothing of this exists.

No pod is left alone while it is there: one that runs according to its status, but not here, lost its process together with the
runner before; what the API server does not answer is asked again.  A pod that waits, for a volume or before its next start, keeps
no other from running.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from tenantry.api import Api
from tenantry.api.errors import ApiError, ConflictError, NotFound
from tenantry.local.deployment import deployment_folder
from tenantry.local.reflector import Reflector
from tenantry.local.tether import tethered
from tenantry.model.kinds import CONFIG_MAP, POD, SECRET, SERVICE_ACCOUNT, Kind, Object, is_terminating
from tenantry.model.names import CHART_LABEL

RUNNER_MANAGER = "tenantry-local-runner"
PARALLEL = 4
"""So many processes run at a time."""
_TOKEN_LIFETIME_S = 3600
_VOLUME_RETRY_S = 1.0
_FIRST_RETRY_S = 0.5
_LONGEST_RETRY_S = 30.0
_MESSAGE_LIMIT = 4096
_KILLED = 128 + signal.SIGKILL

Say = Callable[[str], None]


def helm_job_program() -> Path:
    """The program of our job image."""
    return deployment_folder("knative") / "helm-job" / "helm_job.py"


class JobRunner:
    """Runs what is to be run in a namespace between ``async with`` and its end; afterwards no process is left.

    Args:
        api: an administrator's client; it reads volumes, requests tokens and writes the status of pods.
        namespace: where HelmCharts live.
        helm: the Helm program.
        folder: for the files of running pods.
        say: gets a line per pod.
        restart_after_s: the first pause before a container that failed is started again in its pod (restart policy OnFailure).
    """

    def __init__(self, api: Api, namespace: str, helm: Path, folder: Path, say: Say, *, restart_after_s: float = 10.0) -> None:
        self._api = api
        self._namespace = namespace
        self._helm = helm
        self._folder = folder
        self._say = say
        self._restart_after_s = restart_after_s
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._gone: dict[str, asyncio.Event] = {}
        self._ended: set[str] = set()  # pods that are still there; what the watch says of them later is what was before
        self._turns: dict[str, asyncio.Lock] = {}
        self._gate = asyncio.Semaphore(PARALLEL)
        self._watch: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        reflector = Reflector(
            self._api,
            POD,
            self._namespace,
            label_selector=CHART_LABEL,
            keep_objects=True,
            on_change=self._changed,
            on_state=lambda *_: None,
        )
        self._watch = asyncio.create_task(reflector.run())
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        tasks = [task for task in (self._watch, *self._tasks.values()) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _changed(self, verb: str, namespace: str, name: str, pod: Object | None) -> None:
        del namespace, name
        if pod is None:
            return
        uid = pod["metadata"]["uid"]
        if verb == "delete" or is_terminating(pod):
            self._ended.discard(uid)
            if uid in self._gone:
                self._gone[uid].set()
        elif uid not in self._tasks and uid not in self._ended and _phase(pod) in ("Pending", "Running"):
            self._gone[uid] = asyncio.Event()
            self._tasks[uid] = asyncio.create_task(self._take(pod))

    async def _take(self, pod: Object) -> None:
        """One pod from its start to its end."""
        uid = pod["metadata"]["uid"]
        gone = self._gone[uid]
        turn = self._turns.setdefault(pod["metadata"]["labels"][CHART_LABEL], asyncio.Lock())
        try:
            async with turn:
                await self._run(pod, gone)
            if not gone.is_set():
                self._ended.add(uid)
        except (ConflictError, NotFound):
            self._say(f"pod {pod['metadata']['name']} is gone")
        finally:
            del self._gone[uid], self._tasks[uid]

    async def _run(self, pod: Object, gone: asyncio.Event) -> None:
        name, never = pod["metadata"]["name"], pod["spec"].get("restartPolicy") == "Never"
        restarts, ended = _left(pod)
        while not gone.is_set():
            ended = ended or await self._attempt(pod, gone, restarts)
            if ended is None:
                break
            code = ended["exitCode"]
            self._say(f"pod {name}: {'done' if code == 0 else f'failed with code {code}'}: {ended['message']}")
            state: Object = {"terminated": ended}
            if code == 0 or never:
                await self._tell_at_last(gone, pod, "Succeeded" if code == 0 else "Failed", state, restarts)
                return
            restarts, ended = restarts + 1, None
            await self._tell_at_last(gone, pod, "Running", {"waiting": {"reason": "CrashLoopBackOff"}}, restarts, last=state)
            await _rest(gone, min(self._restart_after_s * 2 ** (restarts - 1), 300.0))
        # It is deleted and does not run. Its Job may wait for its end before it makes the next one.
        ended = _terminated(_KILLED, "deleted before it had ended", _now())
        await self._tell_at_last(gone, pod, "Failed", {"terminated": ended}, restarts)

    async def _attempt(self, pod: Object, gone: asyncio.Event, restarts: int) -> Object | None:
        """Run the container once and return how it ended; None when the pod went before.

        As a kubelet does, wait for what is not there yet; the others run meanwhile.
        """
        pauses, told = _pauses(), ""
        while not gone.is_set():
            try:
                async with self._gate:
                    if gone.is_set():
                        return None
                    with tempfile.TemporaryDirectory(prefix="pod-", dir=self._folder, ignore_cleanup_errors=True) as folder:
                        root = Path(folder)
                        if not (missing := await self._lay_out(pod, root)):
                            started = _now()
                            await self._tell(pod, "Running", {"running": {"startedAt": started}}, restarts)
                            code = await self._execute(pod, root, gone)
                            return _terminated(code, _read(root / "dev/termination-log")[:_MESSAGE_LIMIT], started)
                trouble, pause = f"waits for a volume: {missing}", _VOLUME_RETRY_S
            except (ConflictError, NotFound):
                raise
            except ApiError as error:
                trouble, pause = f"is started later: {error.message}", next(pauses)
            if trouble != told:
                self._say(f"pod {pod['metadata']['name']} {trouble}")
                told = trouble
            await _rest(gone, pause)
        return None

    # -- the container ---------------------------------------------------------------------------------

    async def _execute(self, pod: Object, root: Path, gone: asyncio.Event) -> int:
        container = pod["spec"]["containers"][0]
        server = urlsplit(self._api.server)
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(root / "home/klipper-helm"),
            "KUBERNETES_SERVICE_HOST": server.hostname or "",
            "KUBERNETES_SERVICE_PORT": str(server.port or 443),
            **{given["name"]: given.get("value") or "" for given in container.get("env") or ()},
            "HELM_JOB_ROOT": str(root),
            "HELM_JOB_HELM": str(self._helm),
        }
        command = tethered(sys.executable, str(helm_job_program()), *(container.get("args") or ()))
        with (root / "log").open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=environment,
                cwd=root,
                start_new_session=True,
            )
        ending = asyncio.create_task(process.wait())
        leaving = asyncio.create_task(gone.wait())
        try:
            await asyncio.wait({ending, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not ending.done():
                process.send_signal(signal.SIGTERM)
                await asyncio.wait({ending}, timeout=float(pod["spec"].get("terminationGracePeriodSeconds") or 30))
        finally:
            leaving.cancel()
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
            if process.stdin is not None:
                process.stdin.close()
        return await ending

    async def _tell_at_last(
        self, gone: asyncio.Event, pod: Object, phase: str, state: Object, restarts: int, last: Object | None = None
    ) -> None:
        """What happened is told until the API server takes it, or the pod goes."""
        pauses = _pauses()
        while True:
            try:
                await self._tell(pod, phase, state, restarts, last)
            except (ConflictError, NotFound):
                raise
            except ApiError as error:
                self._say(f"pod {pod['metadata']['name']}: its status is written later: {error.message}")
            else:
                return
            if await _rest(gone, next(pauses)):
                return

    async def _tell(self, pod: Object, phase: str, state: Object, restarts: int, last: Object | None = None) -> None:
        metadata, container = pod["metadata"], pod["spec"]["containers"][0]
        running = "running" in state
        status: Object = {
            "name": container["name"],
            "image": container["image"],
            "imageID": "",
            "ready": running,
            "started": running,
            "restartCount": restarts,
            "state": state,
        }
        if last is not None:
            status["lastState"] = last
        ready = {"type": "Ready", "status": "True" if running else "False"}
        body: Object = {
            "apiVersion": POD.api_version,
            "kind": POD.kind,
            "metadata": {"name": metadata["name"], "namespace": metadata["namespace"], "uid": metadata["uid"]},
            "status": {"phase": phase, "conditions": [ready], "containerStatuses": [status]},
        }
        await self._api.apply(POD, body, subresource="status")

    # -- its volumes -----------------------------------------------------------------------------------

    async def _lay_out(self, pod: Object, root: Path) -> str:
        """Write the volumes; what is returned says what is missing."""
        for folder in ("dev", "tmp", "home/klipper-helm"):
            (root / folder).mkdir(parents=True)
        mounts = {mount["name"]: mount["mountPath"] for mount in pod["spec"]["containers"][0].get("volumeMounts") or ()}
        try:
            for volume in pod["spec"].get("volumes") or ():
                if volume["name"] in mounts:
                    target = root / mounts[volume["name"]].lstrip("/")
                    target.mkdir(parents=True, exist_ok=True)
                    for path, content in (await self._files(volume, pod)).items():
                        (target / path).write_bytes(content)
        except NotFound as error:
            return error.message
        return ""

    async def _files(self, volume: Object, pod: Object) -> dict[str, bytes]:
        files: dict[str, bytes] = {}
        sources = (volume.get("projected") or {}).get("sources") or [volume]
        for source in sources:
            if (secret := source.get("secret")) is not None:
                files |= await self._keys(SECRET, secret.get("name") or secret.get("secretName"), secret, pod)
            elif (config_map := source.get("configMap")) is not None:
                files |= await self._keys(CONFIG_MAP, config_map["name"], config_map, pod)
            elif (token := source.get("serviceAccountToken")) is not None:
                files[token["path"]] = await self._token(pod)
            elif (downward := source.get("downwardAPI")) is not None:
                for item in downward.get("items") or ():
                    field = item["fieldRef"]["fieldPath"].rpartition(".")[2]
                    files[item["path"]] = str(pod["metadata"].get(field, "")).encode()
        return files

    async def _keys(self, kind: Kind, name: str, source: Mapping[str, Any], pod: Object) -> dict[str, bytes]:
        found = await self._api.get(kind, name, pod["metadata"]["namespace"])
        if found is None:
            if source.get("optional"):
                return {}
            raise NotFound(f"{kind.kind} {name} does not exist", status=404, reason="NotFound")
        data: dict[str, bytes] = {key: text.encode() for key, text in (found.get("data") or {}).items()}
        if kind is SECRET:
            data = {key: base64.b64decode(text) for key, text in data.items()}
        items = source.get("items")
        if items is None:
            return data
        return {item["path"]: data[item["key"]] for item in items if item["key"] in data}

    async def _token(self, pod: Object) -> bytes:
        """A token of the pod's ServiceAccount that ends with the pod."""
        metadata = pod["metadata"]
        path = SERVICE_ACCOUNT.path(metadata["namespace"], pod["spec"]["serviceAccountName"]) + "/token"
        bound = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}
        spec = {"expirationSeconds": _TOKEN_LIFETIME_S, "boundObjectRef": bound}
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        answer = await self._api.request("POST", path, body=body)
        return str(answer["status"]["token"]).encode()


def _phase(pod: Object) -> str:
    return str((pod.get("status") or {}).get("phase") or "")


def _left(pod: Object) -> tuple[int, Object | None]:
    """What another runner left of a pod: how often its container was started again, and its end if it ran at that time."""
    container: Object = next(iter((pod.get("status") or {}).get("containerStatuses") or ()), {})
    restarts, state = int(container.get("restartCount") or 0), container.get("state") or {}
    if _phase(pod) != "Running" or "waiting" in state:
        return restarts, None
    started = (state.get("running") or {}).get("startedAt") or _now()
    return restarts, _terminated(_KILLED, "killed: the process that ran this pod has ended", started)


def _terminated(code: int, message: str, started: str) -> Object:
    """The end of a container, as it stands in the status of its pod."""
    reason = "Completed" if code == 0 else "Error"
    return {"exitCode": code, "reason": reason, "message": message, "startedAt": started, "finishedAt": _now()}


def _pauses() -> Iterator[float]:
    """Growing pauses between tries."""
    pause = _FIRST_RETRY_S
    while True:
        yield pause
        pause = min(2 * pause, _LONGEST_RETRY_S)


async def _rest(gone: asyncio.Event, pause: float) -> bool:
    """Whether the pod goes during a pause, which then ends."""
    with contextlib.suppress(TimeoutError):
        return await asyncio.wait_for(gone.wait(), pause)
    return False


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
