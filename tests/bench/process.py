"""Row 4: one function process: start, memory, events without work, events that read and apply once."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Any

import psutil
from tests.bench import objects, stack
from tests.bench.wire import Wire

from tenantry.local.control_plane import ControlPlane
from tenantry.local.processes import free_port
from tenantry.model.kinds import NAMESPACE

CONNECTIONS = 16
_PAD = {f"example.com/annotation-{n}": "x" * 60 for n in range(18)}  # an object of about 2 KB


@dataclass
class Figures:
    start_cpu_s: float = 0.0
    start_wall_s: float = 0.0
    first_mb: float = 0.0
    loaded_mb: float = 0.0
    idle_mb: float = 0.0
    peak_mb: float = 0.0
    noop_s: float = 0.0
    noop_cpu_s: float = 0.0
    once_s: float = 0.0
    once_cpu_s: float = 0.0
    join_s: float = 0.0
    join_cpu_s: float = 0.0
    starts: list[float] = field(default_factory=list)


def _look(kind: str, name: str, metadata: dict[str, Any] | None = None) -> bytes:
    data = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, **(metadata or {})}}
    attributes = {"type": "dev.knative.apiserver.resource.add", "subject": f"/apis/v1/namespaces//{kind.lower()}s/{name}"}
    return stack.event_request(attributes, data)


def _requested(owner: str) -> bytes:
    attributes = {
        "type": "dev.tenantry.reconcile.requested",
        "function": stack.FUNCTION,
        "unit": "projects",
        "owner": owner,
        "partitionkey": owner,
    }
    return stack.event_request(attributes, {})


async def load(port: int, requests: Sequence[bytes], seconds: float, cpus: list[int] | None) -> dict[str, Any]:
    """Send the requests from a process of its own, on other cores than the server's."""
    generator = Path(__file__).with_name("generator.py")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", str(generator), "127.0.0.1", str(port), str(CONNECTIONS), str(seconds),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    if cpus is not None:
        psutil.Process(process.pid).cpu_affinity(cpus)
    out, _ = await process.communicate(json.dumps([base64.b64encode(each).decode() for each in requests]).encode())
    result: dict[str, Any] = json.loads(out)
    if set(result["statuses"]) != {"204"}:
        raise RuntimeError(f"the function answered {result['statuses']}")
    return result


async def measure(plane: ControlPlane, *, starts: int, noop_s: float, events: int) -> Figures:
    figures = Figures()
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    server_cpus = cores[:1] if len(cores) > 1 else None
    other_cpus = cores[1:] if len(cores) > 1 else None
    async with stack.function_identity(plane) as kubeconfig, stack.admin(plane) as wire:
        project = f"p-{token_hex(3)}"
        await _make_namespaces(wire, [f"start-{project}-{n}" for n in range(starts)], project)
        await _starts(figures, kubeconfig, [f"start-{project}-{n}" for n in range(starts)])
        names = [f"once-{project}-{n}" for n in range(events)]
        joining = [f"join-{project}-{n}" for n in range(events // 2)]
        await _make_namespaces(wire, names + joining, project)
        await stack.quiet(wire)
        async with stack.Function(kubeconfig, free_port(), server_cpus) as function:
            await load(function.port, [_look("Namespace", f"start-{project}-0")], 0, other_cpus)
            unknown = _look("Pod", "nobody", {"annotations": _PAD})
            await load(function.port, [unknown], 0.5, other_cpus)
            figures.noop_s, figures.noop_cpu_s = await _rate(function, [unknown], noop_s, other_cpus)
            once = [_requested(f"namespace/{name}") for name in names]
            figures.once_s, figures.once_cpu_s = await _rate(function, once, 0, other_cpus)
            looks = [_look("Namespace", name) for name in joining]
            figures.join_s, figures.join_cpu_s = await _rate(function, looks, 0, other_cpus)
            figures.loaded_mb, figures.peak_mb = stack.rss_mb(function.process), stack.peak_mb(function.process)
            await asyncio.sleep(5)
            figures.idle_mb = stack.rss_mb(function.process)
        await _labels_are_there(wire, project, len(names) + len(joining))
    return figures


async def _make_namespaces(wire: Wire, names: Sequence[str], project: str) -> None:
    await stack.create(wire, [(NAMESPACE, objects.namespace(name, project)) for name in names])


async def _labels_are_there(wire: Wire, project: str, at_least: int) -> None:
    found = await wire.json("GET", f"{NAMESPACE.path()}?labelSelector=helm.cattle.io%2FprojectId%3D{project}")
    if len(found["items"]) < at_least:
        raise RuntimeError(f"only {len(found['items'])} of {at_least} namespaces have their label: the load did no work")


async def _starts(figures: Figures, kubeconfig: Path, names: Sequence[str]) -> None:
    """Each start handles one event with real work: the first one registers a project, each applies a label."""
    cpus, walls, sizes = [], [], []
    for name in names:
        began = time.perf_counter()
        async with stack.Function(kubeconfig, free_port()) as function:
            async with Wire(function.url, None, "", 1) as wire:
                status = await wire.raw(_look("Namespace", name))
            walls.append(time.perf_counter() - began)
            cpus.append(stack.cpu_s(function.process))
            sizes.append(stack.rss_mb(function.process))
            if status != 204:
                raise RuntimeError(f"the first event was answered with {status}")
    figures.starts = cpus
    figures.start_cpu_s, figures.start_wall_s = statistics.median(cpus), statistics.median(walls)
    figures.first_mb = statistics.median(sizes)


async def _rate(
    function: stack.Function, requests: Sequence[bytes], seconds: float, cpus: list[int] | None
) -> tuple[float, float]:
    """Events per second, and per CPU second of the function."""
    before = stack.cpu_s(function.process)
    result = await load(function.port, requests, seconds, cpus)
    used = stack.cpu_s(function.process) - before
    return result["answers"] / result["seconds"], result["answers"] / max(used, 0.01)
