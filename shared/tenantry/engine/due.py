"""Which owners a sweep has to run: those that whole lists show not to be as declared."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Container, Sequence

from tenantry.api import Api
from tenantry.engine.snapshot import Lists, Snapshot
from tenantry.engine.tasks import PARALLEL
from tenantry.engine.unit import Owner, Unit

log = logging.getLogger("tenantry")


LEADS = 3
"""So often in one sweep those that lead may be all that is looked at: what they do may be needed again by then."""


async def due(
    unit: Unit, api: Api, lists: Lists | None, busy: Container[str], stuck: Container[Owner], *, leads: bool, every: bool
) -> list[Owner]:
    """The owners that a snapshot shows not to be as declared, and those that ran when it was begun, but for the stuck ones.

    ``busy`` has these as they are called among those of all units, ``<unit>:<owner>``.  ``leads``: where any of those that lead
    are due, they are all.  ``every``: not only those that events concern.

    Raises:
        ApiError: a list could not be read.
    """
    snapshot = await Snapshot.take(api, unit.prefetch(), lists)
    owners = await (unit.sweep if every else unit.concerned)(snapshot)
    leading = [each for each in owners if leads and each not in stuck and each in unit.leading]
    found = await _due_of(leading, unit, snapshot, api, busy)
    if not found:
        found = await _due_of([each for each in owners if each not in leading], unit, snapshot, api, busy)
    log.debug("sweep of %s: %d of %d owners are due", unit.name, len(found), len(owners))
    return [each for each in found if each not in stuck]


async def _due_of(owners: Sequence[Owner], unit: Unit, snapshot: Snapshot, api: Api, busy: Container[str]) -> list[Owner]:
    found: list[Owner] = []
    for start in range(0, len(owners), PARALLEL):
        some = owners[start : start + PARALLEL]
        await asyncio.sleep(0)  # planning from a snapshot mostly never waits: let events through
        planned = await asyncio.gather(*(_is_due(unit, each, snapshot, api.field_manager) for each in some))
        found += [owner for owner, is_due in zip(some, planned, strict=True) if is_due or f"{unit.name}:{owner}" in busy]
    return found


async def _is_due(unit: Unit, owner: Owner, snapshot: Snapshot, field_manager: str) -> bool:
    """Whether an owner is not as declared; one that cannot be read or planned is due, and its own run tells why."""
    try:
        handler = unit.handlers[owner.type]
        observed = await handler.observe(owner, snapshot)
        plans = (handler.plan(observed), handler.report(observed, ()))
        if any(plan.changes(field_manager) for plan in plans):
            return True
        handler.at_rest(owner, observed)
        return False
    except Exception:  # a bug with one owner must not end the sweep of all
        return True
