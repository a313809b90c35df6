"""Row 3: what a converged cluster costs when nothing happens, and one sweep of it."""

from __future__ import annotations

import asyncio
import time

from tests.bench import stack
from tests.bench.tracker import Tracker
from tests.bench.wire import Wire

from tenantry.local.control_plane import ControlPlane

_PING = {"type": "dev.knative.sources.ping", "resync": stack.FUNCTION}


async def at_rest(plane: ControlPlane, seconds: float) -> tuple[float, int]:
    """Write requests and watch events of our kinds within the time, by anybody."""
    async with stack.admin(plane, 1) as wire, stack.admin(plane, 1) as watching:
        await stack.quiet(wire)
        tracker = Tracker()
        await tracker.start(watching)
        before = await stack.request_counts(wire)
        await asyncio.sleep(seconds)
        counts = stack.difference(await stack.request_counts(wire), before)
    return stack.all_writes(counts), tracker.changes


async def sweep(plane: ControlPlane, up: stack.Up) -> tuple[float, float, float, float]:
    """One sweep, asked for at the function's entry: seconds, its CPU seconds, read requests, write requests."""
    async with stack.admin(plane, 1) as wire, Wire(up.function_url, None, "", 1) as function:
        await stack.quiet(wire)
        before = await stack.request_counts(wire)
        cpu = stack.cpu_s(up.function)
        began = time.perf_counter()
        status = await function.raw(stack.event_request(_PING, {"resync": "all"}))
        seconds = time.perf_counter() - began
        used = stack.cpu_s(up.function) - cpu
        if status != 204:
            raise RuntimeError(f"the sweep answered {status}")
        counts = stack.difference(await stack.request_counts(wire), before)
    return seconds, used, stack.reads(counts), stack.all_writes(counts)
