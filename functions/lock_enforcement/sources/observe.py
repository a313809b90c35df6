"""Reads for the sources: what is locked, and the two sources as they are."""

from __future__ import annotations

import asyncio

from lock_enforcement.index import Index
from lock_enforcement.sources.plan import Watched
from tenantry.api.errors import KindNotServed
from tenantry.engine.reader import Reader
from tenantry.model.kinds import API_SERVER_SOURCE
from tenantry.model.names import LOCKED_CLUSTER_SOURCE, LOCKED_SOURCE, SYSTEM_NAMESPACE


async def observe_sources(index: Index, reader: Reader) -> Watched:
    """The kinds and namespaces of locked objects, and the sources."""
    try:
        namespaced, cluster_wide = await asyncio.gather(
            *(reader.get(API_SERVER_SOURCE, name, SYSTEM_NAMESPACE) for name in (LOCKED_SOURCE, LOCKED_CLUSTER_SOURCE))
        )
    except KindNotServed:
        return Watched(served=False)
    locked = await index.fresh(reader)
    return Watched(locked.kinds, locked.namespaces, True, namespaced, cluster_wide)
