"""What holds of the system in every module, whatever is done to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.testing.settling import settle

Calm = Callable[[Knative], Awaitable[None]]
"""Waits until everything is handled and swept: see the fixture ``calm``."""


def calming(admin: Api) -> Calm:
    """``await calming(admin)(knative)``: what holds after it stays, as long as nobody acts."""

    async def calm_down(knative: Knative) -> None:
        await settle(knative, admin)
        for function in knative.names:
            await knative.sweep(function)
        await settle(knative, admin)

    return calm_down


@asynccontextmanager
async def flawless(running: Knative) -> AsyncIterator[Knative]:
    """Until it ends no answer is 500, which would be a bug, and no event is a dead letter, which nobody reflected."""
    statuses: Counter[int] = Counter()
    running.on_delivery.append(lambda _, __, status, *___: statuses.update([status]))
    yield running
    await running.drain()
    assert statuses[500] == 0, f"answers by status: {dict(statuses)}"
    assert not running.dead_letters.exists(), running.dead_letters.read_text()
