"""Locks: a cold sweep over many releases, one repair, and what status updates cost.

Releases are copies of records in Helm's own form, so that the bench needs no Helm.  The system runs as `Knative` in this process
with the function beside it; requests are counted by the API server (nobody else reads these kinds while it is measured).
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from tests.bench import stack

from lock_enforcement.helm import Mark, marked
from tenantry.api import Api
from tenantry.api.errors import ConflictError
from tenantry.local.control_plane import ControlPlane
from tenantry.local.knative import Knative
from tenantry.model.kinds import CLUSTER_ROLE, CONFIG_MAP, HELM_RELEASE, NAMESPACE, SECRET, SERVICE_ACCOUNT, Kind, Object
from tenantry.testing.helm import lockable, record
from tenantry.testing.objects import obj

FUNCTION, SYSTEM = "lock-enforcement", "cattle-helm-system"
SERVICE, DEPLOYMENT = Kind("v1", "Service", "services"), Kind("apps/v1", "Deployment", "deployments")
KINDS = (CONFIG_MAP, SECRET, SERVICE, SERVICE_ACCOUNT)
COUNTED = {kind.plural for kind in (*KINDS, DEPLOYMENT, HELM_RELEASE, NAMESPACE)}


@dataclass
class Figures:
    releases: int
    objects: int
    cold_s: float = 0.0
    cold_requests: float = 0.0
    warm_s: float = 0.0
    warm_requests: float = 0.0
    sweep_writes: float = 0.0
    memory_mb: float = 0.0
    repairs_ms: list[float] = field(default_factory=list)
    floor_ms: list[float] = field(default_factory=list)
    status_updates: int = 0
    status_s: float = 0.0
    status_writes: float = 0.0

    @property
    def per_release_and_kind(self) -> float:
        return self.cold_requests / self.releases / len(KINDS)


def _object(kind: Kind, name: str, number: int) -> Object:
    body = obj(kind, name, labels={"bench": str(number)})
    match kind.kind:
        case "ConfigMap":
            body["data"] = {"a": "1", "text": "x" * 500}
        case "Secret":
            body["stringData"] = {"a": "1", "text": "x" * 500}
        case "Service":
            body["spec"] = {"clusterIP": "None", "selector": {"app": name}, "ports": [{"port": 80, "targetPort": 8080}]}
        case "Deployment":
            pod = {"containers": [{"name": "web", "image": "web"}]}
            labels = {"app": name}
            template = {"metadata": {"labels": labels}, "spec": pod}
            body["spec"] = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    return body


async def _release(api: Api, name: str, objects: list[Object]) -> None:
    await api.create(NAMESPACE, obj(NAMESPACE, name))
    kinds = {kind.kind: kind for kind in (*KINDS, DEPLOYMENT)}
    for each in objects:
        made = marked(each, Mark(name, name))
        await api.create(kinds[each["kind"]], {**made, "metadata": {**made["metadata"], "namespace": name}})
    await api.create(SECRET, record(name, name, 1, "deployed", *objects))
    await api.create(HELM_RELEASE, obj(HELM_RELEASE, name, SYSTEM, spec={"release": {"name": name, "namespace": name}}))


async def _counts(plane: ControlPlane) -> tuple[float, float]:
    """Reads and writes of the kinds that are counted, by anybody but watches."""
    async with stack.admin(plane, 1) as wire:
        samples = await stack.samples(wire)
    reads = writes = 0.0
    for labels, value in samples:
        if labels["resource"] in COUNTED and labels.get("dry_run") == "" and labels["subresource"] in ("", "status"):
            reads += value if labels["verb"] in ("GET", "LIST") else 0
            writes += value if labels["verb"] in ("APPLY", "PATCH", "DELETE", "POST") else 0
    return reads, writes


async def measure(plane: ControlPlane, folder: Path, *, releases: int, each: int, repairs: int, updates: int) -> Figures:
    """All figures, on a control plane of their own."""
    found = Figures(releases, each * len(KINDS))
    async with await Api.connect(field_manager="bench", kubeconfig=plane.kubeconfig) as api:
        async with Knative(plane.kubeconfig, folder / "first", functions=[FUNCTION], watch=False):
            pass  # installs
        for role in lockable("bench", *KINDS, DEPLOYMENT):
            await api.create(CLUSTER_ROLE, role)
        stack.say(f"locks: making {releases} releases of {found.objects} objects")

        async def make(number: int) -> None:
            objects = [_object(kind, f"{kind.kind.lower()}-{index}", number) for kind in KINDS for index in range(each)]
            objects += [_object(DEPLOYMENT, "web", number)] if number == 0 else []
            await _release(api, f"bench-{number}", objects)

        await stack.in_flight(make, range(releases), 8)
        stack.say("locks: HelmReleases are claimed")
        async with Knative(plane.kubeconfig, folder / "claim", functions=[FUNCTION], watch=False) as claiming:
            await claiming.broker.drain()
            await claiming.sweep(FUNCTION)
        stack.say("locks: a cold sweep")
        await asyncio.sleep(3)  # the controller manager is done with what was made
        before, began = await _counts(plane), time.perf_counter()
        async with Knative(plane.kubeconfig, folder / "cold", functions=[FUNCTION], watch=False) as cold:
            began = time.perf_counter()
            await cold.broker.drain()  # the sweep at start
            found.cold_s = time.perf_counter() - began
            after = await _counts(plane)
            found.cold_requests, found.sweep_writes = after[0] - before[0], after[1] - before[1]
            began = time.perf_counter()
            await cold.sweep(FUNCTION)
            found.warm_s = time.perf_counter() - began
            found.warm_requests = (await _counts(plane))[0] - after[0]
            found.memory_mb = _memory_mb()
        stack.say("locks: the sources start")
        async with Knative(plane.kubeconfig, folder / "live", functions=[FUNCTION]) as live:
            await live.drain()
            stack.say(f"locks: {repairs} repairs")
            await _repairs(api, found, repairs)
            await live.drain()
            stack.say(f"locks: {updates} status updates")
            await _status_updates(plane, api, live, found, updates)
            found.memory_mb = max(found.memory_mb, _memory_mb())
    return found


def _memory_mb() -> float:
    sizes = [0.0]
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if FUNCTION in " ".join(process.cmdline()):
                sizes.append(process.memory_info().rss / stack.MIB)
    return max(sizes)


async def _repairs(api: Api, found: Figures, repairs: int) -> None:
    for number in range(repairs):
        name = f"bench-{number % found.releases}"
        live = await api.get(CONFIG_MAP, "configmap-0", name)
        assert live is not None
        seen = asyncio.create_task(_put_back(api, name, live["metadata"]["resourceVersion"]))
        await asyncio.sleep(0.3)
        await api.json_patch(CONFIG_MAP, "configmap-0", name, [{"op": "replace", "path": "/data/a", "value": "drift"}])
        began = time.perf_counter()
        found.repairs_ms.append((await seen - began) * 1000)
        began = time.perf_counter()
        stored = await api.get(CONFIG_MAP, "configmap-0", name)
        assert stored is not None
        await api.apply(CONFIG_MAP, obj(CONFIG_MAP, "configmap-0", name, annotations={"bench": str(number)}))
        entries = [{"op": "add", "path": "/metadata/labels/floor", "value": str(number)}]
        await api.json_patch(CONFIG_MAP, "configmap-0", name, entries)
        found.floor_ms.append((time.perf_counter() - began) * 1000)


async def _put_back(api: Api, namespace: str, version: str) -> float:
    """When the watch shows the ConfigMap as the manifest has it, after it was not."""
    drifted = False
    async for _, found in api.watch(CONFIG_MAP, namespace, resource_version=version):
        if found["metadata"]["name"] == "configmap-0":
            is_right = (found.get("data") or {}).get("a") == "1"
            if drifted and is_right:
                return time.perf_counter()
            drifted = drifted or not is_right
    raise RuntimeError("the watch ended")


async def _status_updates(plane: ControlPlane, api: Api, live: Knative, found: Figures, updates: int) -> None:
    before, began = await _counts(plane), time.perf_counter()
    path = DEPLOYMENT.path("bench-0", "web") + "/status"
    while found.status_updates < updates:
        current = await api.request("GET", path)
        condition = {"type": "Bench", "status": "True", "reason": f"R{found.status_updates}", "message": ""}
        current["status"] = {**(current.get("status") or {}), "conditions": [condition]}
        with suppress(ConflictError):
            await api.request("PUT", path, None, current)
            found.status_updates += 1
    await live.drain()
    found.status_s = time.perf_counter() - began
    found.status_writes = (await _counts(plane))[1] - before[1]
