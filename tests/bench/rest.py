"""Row 3: what a converged cluster costs when nothing happens, and one sweep of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Container

import psutil
from tests.bench import stack
from tests.bench.tracker import Tracker
from tests.bench.wire import Wire

from tenantry.local.control_plane import ControlPlane


async def at_rest(plane: ControlPlane, seconds: float, resources: Container[str] = stack.OUR_RESOURCES) -> tuple[float, int]:
    """Write requests of these kinds, and watch events of a project's, within the time, by anybody."""
    async with stack.admin(plane, 1) as wire, stack.admin(plane, 1) as watching:
        await stack.quiet(wire)
        tracker = Tracker()
        await tracker.start(watching)
        before = await stack.request_counts(wire, resources)
        await asyncio.sleep(seconds)
        counts = stack.difference(await stack.request_counts(wire, resources), before)
    return stack.all_writes(counts), tracker.changes


async def sweep(
    plane: ControlPlane, process: psutil.Process, function: str, resources: Container[str] = stack.OUR_RESOURCES
) -> tuple[float, float, float, float]:
    """One sweep, asked for at the function's entry: seconds, its CPU seconds, read requests, write requests."""
    async with stack.admin(plane, 1) as wire, Wire(stack.url_of(process), None, "", 1) as entry:
        await stack.quiet(wire)
        before = await stack.request_counts(wire, resources)
        cpu = stack.cpu_s(process)
        began = time.perf_counter()
        status = await stack.swept(entry, function)
        seconds = time.perf_counter() - began
        used = stack.cpu_s(process) - cpu
        if status != 204:
            raise RuntimeError(f"the sweep answered {status}")
        counts = stack.difference(await stack.request_counts(wire, resources), before)
    return seconds, used, stack.reads(counts), stack.all_writes(counts)
