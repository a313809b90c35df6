"""A pod that reaches a function, and nothing else: large events and forged sweeps cost others nothing.

The function runs as in a cluster, under its own identity; the sender has no right in the API.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

import psutil
import pytest
import pytest_asyncio
from forgery import JSON, Served, Wire, forget_peak, large_bodies, limit_mib, look_at, peak_mib, sweep
from people import C1, FUNCTION, People, look, post, swept, token
from times import LEFT_TO_MAKE_WHOLE, SERVED_MEANWHILE_S

from tenantry.local.knative import Knative
from tenantry.model import limits
from tenantry.model.kinds import NAMESPACE
from tenantry.testing import eventually
from tenantry.testing.fault import Forward
from tenantry.testing.proxy import FaultProxy
from tenantry.testing.wire import Request, Response

pytestmark = LEFT_TO_MAKE_WHOLE

AT_ONCE = 50
SWEEPS = 1000


class Gate:
    """A fault that holds lists of all namespaces, which are a sweep's, until it is opened; and counts how many come at once."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.open.set()
        self.most = self._now = 0

    async def meet(self, request: Request, forward: Forward) -> Response | None:
        """Hold a sweep's first request."""
        if (request.verb, request.resource) != ("list", "namespaces") or "labelSelector" in request.query:
            return None
        self._now += 1
        self.most = max(self.most, self._now)
        await self.open.wait()
        try:
            return await forward()
        finally:
            self._now -= 1


@pytest.fixture(scope="module")
def sweeps() -> list[str]:
    """What the function says of sweeps that ended."""
    return []


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(proxy: FaultProxy, knative: Callable[..., Awaitable[Knative]], sweeps: list[str]) -> AsyncIterator[Knative]:
    """One function behind a proxy, fed by the real source and broker."""

    def heard(_: str, line: Mapping[str, str]) -> None:
        if line.get("message", "").startswith("sweep: "):
            sweeps.append(line["message"])

    running = await knative(C1, functions=[FUNCTION], through=proxy, on_log=heard)
    await running.drain()
    yield running


@pytest_asyncio.fixture(loop_scope="session")
async def victim(system: Knative, people: People) -> str:
    """A registered project of somebody else; its namespace has the name of the project."""
    project = f"p-{token()}"
    await people.namespace(project, project)
    await people.registered(project)
    await system.drain()
    return project


async def still_served(system: Knative, people: People, victim: str) -> None:
    """What the victim had still works: a sweep completes, and a further namespace joins within the time for events."""
    assert (await swept(system, FUNCTION))[0] == 204
    await people.namespace(f"more-{victim}", victim)
    await people.until(NAMESPACE, f"more-{victim}", "", lambda found: "helm.cattle.io/projectId" in found["metadata"]["labels"])


@pytest.mark.check("a-22", without="shared-sweeps")
async def test_forged_sweeps_share_one(
    system: Knative, people: People, victim: str, proxy: FaultProxy, sweeps: list[str]
) -> None:
    """A thousand forged sweep requests are one sweep that runs and one that waits; others' events are answered meanwhile."""
    function, gate, before = system.functions[FUNCTION], Gate(), len(sweeps)
    proxy.faults.append(gate)
    gate.open.clear()
    forget_peak(function.pid)

    async def arrived() -> bool:
        """Each request has a connection that the function has taken, and a sweep has begun."""
        taken = [each for each in psutil.Process(function.pid).net_connections("tcp") if each.laddr.port == function.port]
        return sum(each.status == "ESTABLISHED" for each in taken) >= SWEEPS and gate.most > 0

    async with Wire() as wire, asyncio.TaskGroup() as group:
        attack = group.create_task(wire.at_once(function.url, [sweep(FUNCTION) for _ in range(SWEEPS)]))
        await eventually(arrived, within=30.0, what=f"{SWEEPS} requests have arrived")
        served = Served()
        await people.namespace(f"late-{victim}", victim)
        for name in (victim, f"late-{victim}"):
            assert (await served.time(post(function.url, *look(NAMESPACE, name))))[0] == 204
        await people.until(
            NAMESPACE, f"late-{victim}", "", lambda found: found["metadata"]["labels"].get("helm.cattle.io/projectId") == victim
        )
        waiting = not attack.done()
        gate.open.set()
        statuses = await attack
    proxy.faults.remove(gate)

    assert waiting
    assert statuses == {204: SWEEPS}
    assert max(served.seconds) < SERVED_MEANWHILE_S
    assert gate.most == 1
    assert len(sweeps) - before == 2, sweeps[before:]
    assert peak_mib(function.pid) < limit_mib(FUNCTION)
    await still_served(system, people, victim)


@pytest.mark.check("a-12", without="budgets")
async def test_large_events_cost_others_nothing(system: Knative, people: People, victim: str) -> None:
    """Events of the largest size made of lists, of depth, of keys, 50 at once: the pod's memory suffices, and others' events are
    answered meanwhile within 2 s."""
    function = system.functions[FUNCTION]
    url, pid = function.url, function.pid
    headers = {**look_at(NAMESPACE, victim), "Content-Type": JSON}
    async with Wire() as wire:
        for shape, body in large_bodies(limits.EVENT_BYTES).items():
            forget_peak(pid)
            served = Served()
            attack = asyncio.create_task(wire.at_once(url, [(headers, body)] * AT_ONCE))
            while not served.seconds or not attack.done():
                assert (await served.time(post(url, *look(NAMESPACE, victim))))[0] == 204
            statuses = await attack
            cost = f"{shape}: {max(served.seconds):.1f} s, {peak_mib(pid):.0f} MiB, {dict(statuses)}"
            assert function.pid == pid, f"{shape} ended the function"
            assert set(statuses) <= {204, 400, 408, 413, 429}, cost
            assert max(served.seconds) < SERVED_MEANWHILE_S, cost
            assert peak_mib(pid) < limit_mib(FUNCTION), cost
    await still_served(system, people, victim)
