"""Whether events tell a run anything that the last run for its owner did not know."""

from __future__ import annotations

import asyncio
from collections.abc import Container, Mapping

from tenantry.engine.flight import Ask
from tenantry.engine.last_runs import LastRuns, ReadStates
from tenantry.engine.reader import Reader
from tenantry.model.kinds import Kind

CAUSES_LOOKED_AT = 8
"""Objects, at most, that are looked at to find out whether a run is needed: more cost as much as the run."""


async def nothing_new(
    last: LastRuns,
    name: str,
    ask: Ask,
    reader: Reader,
    noted: ReadStates,
    kinds: Mapping[tuple[str, str], Kind],
    readable: Container[Kind],
) -> bool:
    """Whether the last run for the owner of this name knew all that the events tell of.

    ``kinds`` are those whose events concern the owner; objects of ``readable`` ones are read for it.
    """
    if not ask.causes or not last.may_know(name, ask.causes):
        return False
    causes = [key for key in ask.causes if not last.knows(name, key, ask.told.get(key))]
    if not causes:
        return True
    if len(causes) > CAUSES_LOOKED_AT:
        return False
    if not all(key in reader.known or kinds[key.gvk] in readable for key in causes):
        return False
    each = [(kinds[key.gvk], key.name, key.namespace) for key in causes]
    if len(each) == 1:  # as almost always, and then no task is needed
        await reader.get(*each[0])
    else:
        await asyncio.gather(*(reader.get(*one) for one in each))
    return last.knew(name, noted)
