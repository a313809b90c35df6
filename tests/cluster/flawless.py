"""What holds of the system in every module, whatever is done to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from tenantry.local.knative import Knative

Calm = Callable[[Knative], Awaitable[None]]
"""Waits until everything is handled and swept: see the fixture ``calm``."""


@asynccontextmanager
async def flawless(running: Knative) -> AsyncIterator[Knative]:
    """Until it ends no answer is 500, which would be a bug, and no event is a dead letter, which nobody reflected."""
    statuses: Counter[int] = Counter()
    running.on_delivery.append(lambda _, __, status, *___: statuses.update([status]))
    yield running
    await running.drain()
    assert statuses[500] == 0, f"answers by status: {dict(statuses)}"
    assert not running.dead_letters.exists(), running.dead_letters.read_text()
