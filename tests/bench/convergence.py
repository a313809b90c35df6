"""Row 1: from the first creation until everything is as declared, and the floor of the same work."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Any

from pydantic_core import from_json
from tests.bench import objects, stack
from tests.bench.tracker import Tracker
from tests.bench.wire import Wire

from tenantry.local.control_plane import ControlPlane
from tenantry.model.kinds import EVENT, NAMESPACE


@dataclass
class Round:
    seconds: float
    floor: float = 0.0
    reads: float = 0.0
    writes: float = 0.0
    cpu: dict[str, float] = field(default_factory=dict)
    floor_cpu: dict[str, float] = field(default_factory=dict)


def names(projects: int, members: int) -> dict[str, list[str]]:
    run = token_hex(2)
    return {f"p-{run}-{p}": [f"team-{run}-{p}-{m}" for m in range(members)] for p in range(projects)}


def tracker_of(wanted: Mapping[str, Sequence[str]]) -> Tracker:
    """What waits for these projects and their namespaces."""
    tracker = Tracker()
    for project, namespaces in wanted.items():
        tracker.expect_project(project)
        for name in namespaces:
            tracker.expect_member(name)
    return tracker


async def create(wire: Wire, wanted: Mapping[str, Sequence[str]]) -> None:
    """Make these namespaces of projects, 16 at a time, project by project."""
    bodies = [objects.namespace(name, project) for project, namespaces in wanted.items() for name in namespaces]
    await stack.create(wire, [(NAMESPACE, body) for body in bodies])


async def converge(plane: ControlPlane, up: stack.Up, projects: int, members: int) -> Round:
    """Create all namespaces, 16 in flight, project by project, and wait until the watches have shown everything."""
    async with stack.admin(plane) as wire, stack.admin(plane, 1) as watching:
        wanted = names(projects, members)
        tracker = tracker_of(wanted)
        await tracker.start(watching)
        await stack.quiet(wire)  # the sources have announced what was there, and the first sweep is done
        before = await stack.request_counts(wire)
        cpu = stack.Cpu(plane, up)
        began = time.perf_counter()
        await create(wire, wanted)
        seconds = await tracker.wait() - began
        used = cpu.used()
        await stack.quiet(wire)
        counts = stack.difference(await stack.request_counts(wire), before)
    made = projects * members
    return Round(seconds, 0.0, stack.reads(counts), stack.writes(counts) - made, used)


async def floor(plane: ControlPlane, projects: int, members: int) -> tuple[float, dict[str, float]]:
    """The same creations, reads and writes straight to the API server: no watch, no event, no function.

    All namespaces are created in the same order; each creation is followed by one read and one apply of its label, the
    first of a project by: one read and the creation of the registration namespace, three applies and an Event.
    """
    async with stack.admin(plane) as wire:
        todo: deque[Coroutine[Any, Any, Any]] = deque()
        wanted = names(projects, members)
        for project, namespaces in wanted.items():
            for index, name in enumerate(namespaces):
                todo.append(_create(wire, name, project, todo, first=index == 0))
        busy = 0
        cpu = stack.Cpu(plane)
        began = time.perf_counter()

        async def work() -> None:
            nonlocal busy
            while todo or busy:
                if not todo:
                    await asyncio.sleep(0.001)
                    continue
                busy += 1
                await todo.popleft()
                busy -= 1

        await asyncio.gather(*(work() for _ in range(stack.IN_FLIGHT)))
        seconds = time.perf_counter() - began
        used = cpu.used()
        await stack.quiet(wire)
    return seconds, used


async def _create(wire: Wire, name: str, project: str, todo: deque[Coroutine[Any, Any, Any]], *, first: bool) -> None:
    await wire.do("POST", NAMESPACE.path(), objects.foreign(objects.namespace(name, project)))
    if first:
        todo.append(_register(wire, project, todo))
    todo.append(_label(wire, name, project))


async def _label(wire: Wire, name: str, project: str) -> None:
    from_json(await wire.do("GET", NAMESPACE.path(name=name)))
    await wire.apply(NAMESPACE.path(name=name), objects.foreign(objects.member_label(name, project)))


async def _register(wire: Wire, project: str, todo: deque[Coroutine[Any, Any, Any]]) -> None:
    namespace, inside = objects.registration(project)
    made = objects.foreign(namespace)
    name = made["metadata"]["name"]
    await wire.do("GET", NAMESPACE.path(name=name), but=(404,))
    stored = from_json(await wire.do("POST", f"{NAMESPACE.path()}?fieldManager=bench-floor", made))
    for kind, obj in inside:
        body = objects.foreign(obj)
        todo.append(wire.apply(kind.path(name, body["metadata"]["name"]), body))
    todo.append(wire.do("POST", f"{EVENT.path('default')}?fieldManager=bench-floor", objects.event(stored, project)))
