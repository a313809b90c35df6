"""Reads of the ConfigMaps that list the members."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Mapping
from functools import partial

from scope_binding.namespace_scopes import kept
from scope_binding.namespace_scopes.config_map import sharing
from scope_binding.namespace_scopes.names import LIST_LABEL, PENDING
from scope_binding.namespace_scopes.seen import ObservedHome
from tenantry.engine.reader import Reader
from tenantry.model.kinds import CONFIG_MAP, Object, annotations_of

LARGE_AT_ONCE = 4
"""ConfigMaps that one run reads at a time: each may have a megabyte of others' data."""


async def observe_config_maps(seen: ObservedHome, reader: Reader) -> Mapping[str, Object]:
    """Those with our label, and those that the NamespaceScopes name.

    A run reads the metadata of the labelled ones, and one by one those that a NamespaceScope names or that we wrote: what others
    put beside them is read by nobody.
    """
    labels, named = {LIST_LABEL: "true"}, set(sharing(seen))
    if not reader.live:
        labelled = await reader.list(CONFIG_MAP, seen.name, labels=labels, keep=kept.config_map)
        found = {each["metadata"]["name"]: each for each in labelled}
        missing = sorted(name for name in named if kept.FOREIGN in found.get(name, {kept.FOREIGN: True}))
    else:
        labelled = await reader.headers(CONFIG_MAP, seen.name, labels=labels, keep=kept.config_map)
        found = {each["metadata"]["name"]: each for each in labelled}
        missing = sorted(named | {name for name, each in found.items() if kept.FOREIGN not in each})
    gate = asyncio.Semaphore(LARGE_AT_ONCE)

    async def read(name: str) -> Object | None:
        async with gate:
            live = await reader.fetch(CONFIG_MAP, name, seen.name)
            return None if live is None else kept.named_config_map(live)

    for name, live in zip(missing, await asyncio.gather(*map(read, missing)), strict=True):
        found.pop(name, None)
        if live is not None:
            found[name] = live
    for name in named:
        reader.depends_on(partial(_pending, name, seen.name), annotations_of(found.get(name)).get(PENDING))
    return found


async def _pending(name: str, namespace: str, fresh: Reader) -> Hashable:
    """Whether a restart is pending: one that our own write has begun has to be carried out in the same run."""
    return annotations_of(await fresh.fetch(CONFIG_MAP, name, namespace)).get(PENDING)
