"""What is measured, as processes of their own: ``tenantry up``, and a function alone; and how they are looked at.

The bench itself is the client: it shares no process with source, broker or function.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import operator
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import psutil
from tests.bench.objects import CONFIG
from tests.bench.wire import Wire

from tenantry.api import Api
from tenantry.kit.up import READY
from tenantry.local.control_plane import ControlPlane
from tenantry.local.identity import Identity
from tenantry.local.install import INSTALL_MANAGER, install
from tenantry.local.tether import tethered
from tenantry.model.descriptor import DUTY_VARIABLE
from tenantry.model.kinds import Kind, Object
from tenantry.serving.installed import descriptors, services_of

FUNCTION = "namespace-registration"
OUR_RESOURCES = ("namespaces", "configmaps", "serviceaccounts", "networkpolicies", "events")
_READS, _WRITES = ("GET", "LIST"), ("POST", "PUT", "PATCH", "APPLY", "DELETE")
_REQUESTS = "apiserver_request_total"
_LABEL = re.compile(r'(\w+)="([^"]*)"')

MIB = 1024 * 1024
IN_FLIGHT = 16
START_S = 300.0
"""Seconds until `tenantry up` is ready, on a cluster with thousands of objects."""

Counts = dict[tuple[str, str], float]
T = TypeVar("T")


def say(line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.stderr, flush=True)


def admin(plane: ControlPlane, connections: int = IN_FLIGHT) -> Wire:
    return Wire(plane.server_url, plane.ca_file, plane.admin_token, connections)


async def in_flight(work: Callable[[T], Awaitable[object]], todo: Iterable[T], at_once: int = IN_FLIGHT) -> None:
    """Work on each, in order, so many at a time."""
    left = iter(todo)

    async def some() -> None:
        for each in left:
            await work(each)

    await asyncio.gather(*(some() for _ in range(at_once)))


async def create(wire: Wire, bodies: Iterable[tuple[Kind, Object]]) -> None:
    """Make objects, 16 at a time."""
    await in_flight(lambda each: wire.do("POST", each[0].path(each[1]["metadata"].get("namespace", "")), each[1]), bodies)


async def samples(wire: Wire, metric: str = _REQUESTS) -> list[tuple[dict[str, str], float]]:
    """Each sample of a metric of the API server, with its labels."""
    text = (await wire.do("GET", "/metrics")).decode()
    found = re.findall(rf"^{metric}\{{(.*)\}} (\S+)$", text, re.MULTILINE)
    return [(dict(_LABEL.findall(labels)), float(value)) for labels, value in found]


async def request_counts(wire: Wire, resources: Container[str] = OUR_RESOURCES) -> Counts:
    """``apiserver_request_total`` of the kinds that the function reads and writes, by verb and resource.

    The server does not count by client.  The controller manager reads these kinds through informers and writes a
    ServiceAccount and a ConfigMap into each namespace (POST); it never applies, and records no events here.
    """
    counts: Counts = {}
    for labels, value in await samples(wire):
        if labels["resource"] in resources and not labels["subresource"]:
            key = (labels["verb"], labels["resource"])
            counts[key] = counts.get(key, 0) + value
    return counts


def difference(after: Counts, before: Counts) -> Counts:
    return {key: count - before.get(key, 0) for key, count in after.items() if count != before.get(key, 0)}


def reads(counts: Counts) -> float:
    return sum(count for (verb, _), count in counts.items() if verb in _READS)


def writes(counts: Counts) -> float:
    """Writes that can only be ours: every apply, and each creation of an event or a namespace."""
    ours = (("POST", "events"), ("POST", "namespaces"))
    return sum(count for (verb, kind), count in counts.items() if verb in ("APPLY", "PATCH", "DELETE") or (verb, kind) in ours)


def all_writes(counts: Counts) -> float:
    return sum(count for (verb, _), count in counts.items() if verb in _WRITES)


async def quiet(
    wire: Wire,
    for_s: float = 0.6,
    within: float = 120.0,
    *,
    resources: Container[str] = OUR_RESOURCES,
    of: Callable[[Counts], object] = dict,
) -> None:
    """Wait until nobody reads or writes any more: the controller manager is done with new namespaces too.

    ``of`` says what of the counts has to stay the same.
    """

    async def counts() -> object:
        return of(await request_counts(wire, resources))

    await _stays(counts, operator.ne, for_s, within, "the cluster", pause_s=0.2 if for_s > 0.2 else for_s / 2)


async def _stays(
    read: Callable[[], Awaitable[Any]],
    differ: Callable[[Any, Any], bool],
    for_s: float,
    within: float,
    what: str,
    *,
    pause_s: float,
) -> None:
    """Wait until what is read has not changed for a while."""
    deadline = time.monotonic() + within
    before, since = await read(), time.monotonic()
    while time.monotonic() < deadline:
        await asyncio.sleep(pause_s)
        now = await read()
        if differ(now, before):
            since = time.monotonic()
        elif time.monotonic() - since >= for_s:
            return
        before = now
    raise RuntimeError(f"{what} does not come to rest")


class Up:
    """``tenantry up`` against a control plane, as people start it: with all functions, or some."""

    def __init__(
        self,
        plane: ControlPlane,
        folder: Path,
        config: Path | None = None,
        functions: Sequence[str] = (),
        *,
        instances: int = 1,
    ) -> None:
        self._plane = plane
        self._chosen = [text for name in functions for text in ("--function", name)] + ["--instances", str(instances)]
        self._config = config
        self._log = folder / f"up-{time.monotonic_ns()}.log"
        self._process: subprocess.Popen[bytes] | None = None

    async def __aenter__(self) -> Up:
        with self._log.open("wb") as out:
            command = [sys.executable, "-m", "tenantry.cli", "up", "--kubeconfig", str(self._plane.kubeconfig), *self._chosen]
            self._process = subprocess.Popen(  # noqa: ASYNC220
                tethered(*command),
                stdin=subprocess.PIPE,  # its end is that of the bench, however that comes
                stdout=out,
                stderr=subprocess.STDOUT,
                env=without_configuration({"TENANTRY_CONFIG": str(self._config)} if self._config else None),
                start_new_session=True,
            )
        deadline = time.monotonic() + START_S
        while f"\n{READY}" not in self._log.read_text():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"tenantry up did not start:\n{self._log.read_text()[-2000:]}")
            await asyncio.sleep(0.05)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._process is not None
        if self._process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            await asyncio.to_thread(self._process.wait, 40)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    @property
    def process(self) -> psutil.Process:
        """The command itself, which its tether has started."""
        assert self._process is not None
        (command,) = psutil.Process(self._process.pid).children()
        return command

    @property
    def function(self) -> psutil.Process:
        return self.process_of(FUNCTION)

    def process_of(self, function: str) -> psutil.Process:
        """The process that serves a function, or one of its duties: that of a Service."""
        return self._processes()[function][0]

    def processes_of(self, function: str) -> list[psutil.Process]:
        """All of them, where there are several."""
        return self._processes()[function]

    def served(self) -> list[str]:
        """The Services that run."""
        running = self._processes()
        return [each.name for each in services_of(descriptors()) if each.name in running]

    def _processes(self) -> dict[str, list[psutil.Process]]:
        found: dict[str, list[psutil.Process]] = {}
        for child in self.process.children():
            line = child.cmdline()
            for name, function in descriptors().items():
                if name in line:
                    found.setdefault(function.service_of(child.environ().get(DUTY_VARIABLE, "")).name, []).append(child)
        return found


def url_of(function: psutil.Process) -> str:
    """Where a function listens; it inherits the socket, so its command line does not say."""
    port = next(found.laddr.port for found in function.net_connections("tcp") if found.status == psutil.CONN_LISTEN)
    return f"http://127.0.0.1:{port}/"


def without_configuration(more: Mapping[str, str] | None = None) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TENANTRY_CONFIG", "OTEL_", "K_SINK"))}
    return {**kept, **(more or {})}


def cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def rss_mb(process: psutil.Process) -> float:
    return float(process.memory_info().rss) / MIB


def peak_mb(process: psutil.Process) -> float:
    """The largest resident size so far, where the system keeps it; else the size now."""
    with contextlib.suppress(OSError, StopIteration):
        lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) * 1024 / MIB
    return rss_mb(process)


class Cpu:
    """CPU seconds by process since its making: each function's Service by its name, and all together as ``functions``."""

    def __init__(self, plane: ControlPlane, up: Up | None = None, function: str = FUNCTION) -> None:
        self._processes = {name: [psutil.Process(pid)] for name, pid in plane_pids(plane).items()}
        self._processes["bench"] = [psutil.Process()]
        if up is not None:
            ours = {name: up.processes_of(name) for name in up.served()}
            every = [process for processes in ours.values() for process in processes]
            self._processes |= {"up": [up.process], **ours, "function": ours[function], "functions": every}
        self._before = self._now()

    def used(self) -> dict[str, float]:
        return {name: round(now - self._before[name], 2) for name, now in self._now().items()}

    def _now(self) -> dict[str, float]:
        return {name: sum(map(cpu_s, processes)) for name, processes in self._processes.items()}


async def idle(plane: ControlPlane, for_s: float = 1.5, within: float = 60.0) -> None:
    """Wait until the API server has nothing to do by itself, such as to compile policies: less than a tenth of a core."""
    server = psutil.Process(plane_pids(plane)["kube-apiserver"])

    async def used() -> float:
        return cpu_s(server)

    await _stays(used, lambda now, before: now - before > 0.05, for_s, within, "the API server", pause_s=0.5)


def plane_pids(plane: ControlPlane) -> dict[str, int]:
    found: dict[str, int] = {}
    for process in psutil.process_iter(["name", "cwd", "pid"]):
        name = str(process.info["name"] or "")
        if name in ("etcd", "kube-apiserver") or name.startswith("kube-controller"):
            with contextlib.suppress(OSError):
                if process.info["cwd"] and Path(process.info["cwd"]).samefile(plane.data_dir):
                    found[name] = process.pid
    return found


@contextlib.asynccontextmanager
async def function_identity(plane: ControlPlane) -> AsyncIterator[Path]:
    """The kubeconfig of the function's ServiceAccount with its least rights."""
    with tempfile.TemporaryDirectory(prefix="tenantry-bench-") as folder:
        async with await Api.connect(field_manager=INSTALL_MANAGER, kubeconfig=plane.kubeconfig) as api:
            await install(api, [FUNCTION], CONFIG, lambda _: None)
            identity = Identity(api, FUNCTION, Path(folder), plane.kubeconfig, lambda _: None)
            await identity.open()
            try:
                yield identity.kubeconfig
            finally:
                await identity.close()


class Function:
    """One function alone, as ``tenantry serve`` runs it; its log goes nowhere."""

    def __init__(self, kubeconfig: Path, port: int, cpus: list[int] | None = None) -> None:
        self.url = f"http://127.0.0.1:{port}/"
        self.port = port
        command = [sys.executable, "-m", "tenantry.cli", "serve", FUNCTION, "--port", str(port), "--kubeconfig", str(kubeconfig)]
        self._popen = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=without_configuration()
        )
        self.process = psutil.Process(self._popen.pid)
        if cpus is not None and hasattr(self.process, "cpu_affinity"):
            self.process.cpu_affinity(cpus)

    async def __aenter__(self) -> Function:
        while True:
            if self._popen.poll() is not None:
                raise RuntimeError("the function did not start")
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", self.port)
                writer.close()
                return self
            await asyncio.sleep(0.002)

    async def __aexit__(self, *_: object) -> None:
        self._popen.terminate()
        await asyncio.to_thread(self._popen.wait, 40)


async def swept(wire: Wire, function: str) -> int:
    """Ask a function for a sweep; the status of its answer."""
    ping = {"type": "dev.knative.sources.ping", "resync": function}
    return await wire.raw(event_request(ping, {"resync": "all"}))


def event_request(attributes: Mapping[str, str], data: Any) -> bytes:
    """One CloudEvent in binary mode as a whole HTTP request."""
    body = json.dumps(data).encode()
    given = {"specversion": "1.0", "id": f"bench-{time.monotonic_ns()}", "source": "https://127.0.0.1", **attributes}
    headers = "".join(f"ce-{name}: {value}\r\n" for name, value in given.items())
    head = f"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n{headers}Content-Length: {len(body)}\r\n\r\n"
    return head.encode() + body
