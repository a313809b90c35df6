"""Row 2: one change at a time on a cluster that is full and at rest."""

from __future__ import annotations

import time
from secrets import token_hex

from tests.bench import objects, stack
from tests.bench.tracker import Tracker

from tenantry.local.control_plane import ControlPlane
from tenantry.model.kinds import NAMESPACE
from tenantry.model.names import REGISTRATION_PREFIX


async def latency(plane: ControlPlane, projects: int, joins: int) -> tuple[list[float], list[float]]:
    """Milliseconds from sending the creation to the arrival of the watch event that completes it.

    First new projects, one after the other; then further namespaces for them, in turn.
    """
    new: list[float] = []
    joined: list[float] = []
    async with stack.admin(plane, 1) as wire, stack.admin(plane, 1) as watching:
        tracker = Tracker()
        await tracker.start(watching)
        await stack.quiet(wire)  # the sources have announced what was there, and the first sweep is done
        ids = [f"p-{token_hex(4)}" for _ in range(projects)]
        for project in ids:
            tracker.expect_project(project)
            tracker.expect_member(f"first-{project}")
            began = time.perf_counter()
            await wire.do("POST", NAMESPACE.path(), objects.namespace(f"first-{project}", project))
            new.append((await tracker.wait_for(REGISTRATION_PREFIX + project) - began) * 1000)
            await stack.quiet(wire, 0.1)
        for index in range(joins):
            project = ids[index % projects]
            name = f"join-{index}-{project}"
            tracker.expect_member(name)
            began = time.perf_counter()
            await wire.do("POST", NAMESPACE.path(), objects.namespace(name, project))
            joined.append((await tracker.wait_for(name) - began) * 1000)
            await stack.quiet(wire, 0.1)
    return new, joined


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(share * (len(ordered) - 1)))]
