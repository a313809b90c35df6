"""Reads for what stands although whoever declared it is gone: the Warnings on it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from tenantry.engine.reader import Reader
from tenantry.engine.recorder import now_micro
from tenantry.model.kinds import EVENT, Object, key_of
from tenantry.model.leftovers import Leftovers, warning_of
from tenantry.model.standing import event_namespace

FEW = 16
"""Of so many objects of one owner it is reported, at most."""


async def observe_leftovers(found: Iterable[Object], reader: Reader) -> Leftovers:
    """Read the Warnings on what has to go; of many the first few."""
    named = {key_of(obj): obj for obj in found}
    objects = {key: named[key] for key in sorted(named)[:FEW]}
    read = await asyncio.gather(*(reader.get(EVENT, warning_of(obj), event_namespace(obj)) for obj in objects.values()))
    return Leftovers(objects, dict(zip(objects, read, strict=True)), now_micro())
