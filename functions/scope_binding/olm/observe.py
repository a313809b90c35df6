"""Reads for OLM: a ClusterServiceVersion, the OperatorGroups beside it, and what was generated from them.

A cluster without OLM serves neither kind: then there is nothing to read, and what was generated is deleted.  That a kind is not
served is believed when the API server's discovery says so too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import replace
from typing import TypeVar

from scope_binding.olm.plan import PARTS, CsvSeen, Part, event_name, is_copy, is_generated, pair_name, possible_complaints
from tenantry.api.errors import KindNotServed
from tenantry.engine.leftovers import observe_leftovers
from tenantry.engine.reader import Reader
from tenantry.engine.recorder import now_micro
from tenantry.model.kinds import (
    CLUSTER_SERVICE_VERSION,
    EVENT,
    OPERATOR_GROUP,
    SCOPE_INSTANCE,
    SCOPE_TEMPLATE,
    Kind,
    Object,
    is_terminating,
)

T = TypeVar("T")


async def _if_served(kind: Kind, reader: Reader, read: Awaitable[T]) -> T | None:
    try:
        return await read
    except KindNotServed:
        if await reader.serves(kind):
            raise
        return None


async def listed(kind: Kind, reader: Reader, namespace: str = "") -> list[Object]:
    """The objects of a kind that OLM brings; none where it is not installed."""
    return await _if_served(kind, reader, reader.list(kind, namespace)) or []


async def observe_csv(namespace: str, name: str, reader: Reader, *, enabled: bool) -> CsvSeen:
    """Read one ClusterServiceVersion and what belongs to it; when switched off only what was generated."""
    csv: Object | None = None
    groups: list[Object] = []
    if enabled:
        csv = await _if_served(CLUSTER_SERVICE_VERSION, reader, reader.get(CLUSTER_SERVICE_VERSION, name, namespace))
    if csv is not None and not is_copy(csv):
        groups = [group for group in await listed(OPERATOR_GROUP, reader, namespace) if not is_terminating(group)]

    async def pairs(kind: Kind) -> dict[Part, Object | None]:
        found = await asyncio.gather(*(reader.get(kind, pair_name(part, namespace, name)) for part in PARTS))
        return dict(zip(PARTS, found, strict=True))

    templates, instances = await asyncio.gather(pairs(SCOPE_TEMPLATE), pairs(SCOPE_INSTANCE))
    seen = CsvSeen(namespace, name, csv, tuple(groups), templates, instances)
    if csv is None:
        made = [each for each in (*templates.values(), *instances.values()) if each is not None and is_generated(each)]
        return replace(seen, leftovers=await observe_leftovers(made, reader))
    called = [event_name(csv, complaint) for complaint in possible_complaints(seen)]
    events = await asyncio.gather(*(reader.get(EVENT, each, namespace) for each in called))
    return replace(seen, events=dict(zip(called, events, strict=True)), now=now_micro())
