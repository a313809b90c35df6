"""What one run decides: it observes and plans, and before anything is taken away it does so once more."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

from tenantry.api import Api
from tenantry.engine.reader import Reader
from tenantry.engine.unit import Handler, Owner, Unit
from tenantry.model.plan import Plan

LOOKS = 4
"""So often, at most, it is looked again until two looks agree on what goes."""


class Decision(NamedTuple):
    """A plan, what was observed for it, and the reader that this came from."""

    plan: Plan
    observed: Any
    reader: Reader


async def stands_aside(unit: Unit, api: Api) -> bool:
    """Whether the CRD of one of the unit's own kinds is another system's, whose status nobody else can write beside it."""
    for kind in unit.ours:
        if await api.is_foreign(kind):
            return True
    return False


async def decide(handler: Handler[Any], owner: Owner, reader: Reader) -> Decision:
    """Observe and plan, until two looks one after the other agree on what is doubtful in the plan.

    A look that follows reads everything anew.  One that leaves out what the look before wanted to make is not believed either:
    maybe that has to stand before anything goes.  Who changes a declaration without end, or is about to change it and does not,
    is waited for some looks, not for ever.

    Raises:
        OutdatedError: what was read belongs to two moments.
    """
    observed = await handler.observe(owner, reader)
    plan = handler.plan(observed)
    doubtful = handler.doubtful(observed, plan)
    for _ in range(LOOKS):
        if not doubtful:
            break
        await asyncio.sleep(handler.second_look_after_s(observed))
        reader, before, made = reader.anew(), doubtful, plan.made()
        observed = await handler.observe(owner, reader)
        plan = handler.plan(observed)
        doubtful = handler.doubtful(observed, plan)
        if doubtful <= before and made <= plan.made() and not handler.unsettled(observed):
            break
    return Decision(plan, observed, reader)
