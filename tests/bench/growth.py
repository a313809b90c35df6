"""How the cost of a project grows with the cluster: everything at work, from a few projects to a thousand, each with a chart.

For each size a control plane of its own: projects of five namespaces are registered, each gets a chart, and then namespaces join
one after the other, first while nothing else happens and then while other people's projects come.  A bare client's time for the
same writes stands beside both bursts, measured on the same control plane afterwards.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from tests.bench import convergence, objects, releases, stack
from tests.bench.wire import Wire

from tenantry.local.control_plane import ControlPlane
from tenantry.model.kinds import NAMESPACE, PROJECT_HELM_CHART

MEMBERS = 5
AFTER_S = 10.0
"""Seconds after a burst in which requests are counted: what comes of its echoes."""
BURST = 200
"""Projects of others that come while namespaces join."""
WITHIN_S = 900.0
KINDS = frozenset(
    (
        *stack.OUR_RESOURCES,
        *("projecthelmcharts", "helmcharts", "helmreleases", "roles", "rolebindings", "secrets"),
        *("namespacescopes", "scopeinstances", "scopetemplates"),
    )
)


@dataclass
class Burst:
    """Seconds until all was done and of the bare client, requests in the ten seconds after it, and CPU seconds by process."""

    seconds: float = 0.0
    floor: float = 0.0
    after: float = 0.0
    cpu: dict[str, float] = field(default_factory=dict)


@dataclass
class Figures:
    projects: int
    registered: Burst = field(default_factory=Burst)
    charts: Burst = field(default_factory=Burst)
    quiet_ms: list[float] = field(default_factory=list)
    busy_ms: list[float] = field(default_factory=list)
    peaks: dict[str, float] = field(default_factory=dict)


async def measure(plane: ControlPlane, folder: Path, projects: int, joins: int) -> Figures:
    """One size."""
    figures, config = Figures(projects), folder / "growth.yaml"
    config.write_text(yaml.safe_dump(releases.CONFIGURATION))
    async with stack.Up(plane, folder, config) as up, stack.admin(plane) as wire:
        await stack.quiet(wire)
        wanted = convergence.names(projects, MEMBERS)
        stack.say(f"{projects} x {MEMBERS} namespaces")
        async with _counted(plane, up, wire, figures.registered):
            figures.registered.seconds = await _register(plane, wire, wanted)
        stack.say(f"{projects} charts")
        async with stack.admin(plane, 1) as watching:
            seen = releases.Releases()
            for project in wanted:
                seen.expect(_release(project))
            await seen.start(watching)
            async with _counted(plane, up, wire, figures.charts):
                began = time.perf_counter()
                asked = [(PROJECT_HELM_CHART, releases.asked(project, f"demo-{project}")) for project in wanted]
                await stack.create(wire, asked)
                await seen.until(lambda: len(seen.done_at) == projects, WITHIN_S)
                figures.charts.seconds = max(seen.done_at.values()) - began
            stack.say(f"{joins} namespaces that join, one after the other")
            homes = list(wanted)
            for number in range(joins):
                figures.quiet_ms.append(await _join(wire, seen, homes[number % projects], f"quiet-{number}"))
                await stack.quiet(wire, 0.4)
            stack.say(f"the same while {BURST} projects of others come")
            async with stack.admin(plane) as others:  # so that nobody waits for a connection of theirs
                coming = asyncio.create_task(_register(plane, others, convergence.names(BURST, MEMBERS)))
                while not coming.done():
                    number = len(figures.busy_ms)
                    figures.busy_ms.append(await _join(wire, seen, homes[number % projects], f"busy-{number}"))
                await coming
        await stack.quiet(wire, within=WITHIN_S)
        figures.peaks = {name: stack.peak_mb(up.process_of(name)) for name in up.served()}
    stack.say("the bare client")
    figures.registered.floor, _ = await convergence.floor(plane, projects, MEMBERS)
    figures.charts.floor = await releases.floor(plane, projects)
    return figures


def _release(project: str) -> str:
    return f"demo-{project}-dummy"


async def _register(plane: ControlPlane, wire: Wire, wanted: Mapping[str, Sequence[str]]) -> float:
    """Seconds until all of these projects are registered."""
    async with stack.admin(plane, 1) as watching:
        tracker = convergence.tracker_of(wanted)
        await tracker.start(watching)
        began = time.perf_counter()
        await convergence.create(wire, wanted)
        return await tracker.wait(WITHIN_S) - began


async def _join(wire: Wire, seen: releases.Releases, project: str, name: str) -> float:
    """Milliseconds from the creation of a namespace until it is in the values of the project's chart."""
    name, release = f"{name}-{project}", _release(project)
    began = time.perf_counter()
    await wire.do("POST", NAMESPACE.path(), objects.namespace(name, project))
    ended = await seen.until(lambda: name in seen.content.get(release, ""), WITHIN_S)
    return (ended - began) * 1000


@asynccontextmanager
async def _counted(plane: ControlPlane, up: stack.Up, wire: Wire, burst: Burst) -> AsyncIterator[None]:
    """CPU of what is done inside, and requests in the time after it; ends at rest."""
    cpu = stack.Cpu(plane, up)
    yield
    burst.cpu = cpu.used()
    before = await stack.request_counts(wire, KINDS)
    await asyncio.sleep(AFTER_S)
    counts = stack.difference(await stack.request_counts(wire, KINDS), before)
    burst.after = stack.reads(counts) + stack.all_writes(counts)
    await stack.quiet(wire, within=WITHIN_S)
