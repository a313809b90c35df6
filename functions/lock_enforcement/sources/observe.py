"""Reads for the sources: what is locked, and the two sources as they are."""

from __future__ import annotations

import asyncio

from lock_enforcement.index import Index, Locked
from lock_enforcement.sources.plan import SourcesSeen
from tenantry.api.errors import KindNotServed
from tenantry.engine.reader import Reader
from tenantry.model.kinds import API_SERVER_SOURCE, Kind
from tenantry.model.names import LOCKED_CLUSTER_SOURCE, LOCKED_SOURCE, SYSTEM_NAMESPACE


async def observe_sources(index: Index, reader: Reader) -> tuple[SourcesSeen, Locked]:
    """The kinds and namespaces of locked objects, and the sources; with the index that says so."""
    try:
        namespaced, cluster_wide = await asyncio.gather(
            *(reader.get(API_SERVER_SOURCE, name, SYSTEM_NAMESPACE) for name in (LOCKED_SOURCE, LOCKED_CLUSTER_SOURCE))
        )
    except KindNotServed:
        return SourcesSeen(served=False), Locked()
    locked = await index.fresh(reader)
    if locked.failed is not None:
        raise locked.failed  # what it locks would be watched no more
    holders = locked.holders.values()
    kinds = frozenset[Kind]().union(*(holder.kinds for holder in holders))
    namespaces = frozenset[str]().union(*(holder.namespaces for holder in holders))
    return SourcesSeen(kinds, namespaces, True, namespaced, cluster_wide), locked
