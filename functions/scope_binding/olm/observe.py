"""Reads for OLM: a ClusterServiceVersion, the OperatorGroups beside it, and what was generated from them.

A cluster without OLM serves neither kind: then there is nothing to read, and what was generated goes.  That a kind is not
served is believed when the API server's discovery says so too.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from scope_binding.olm.plan import (
    MANAGER,
    PARTS,
    CsvSeen,
    event_name,
    is_copy,
    is_generated,
    pair_name,
    plan_csv,
    possible_complaints,
)
from tenantry.api.errors import KindNotServed
from tenantry.engine.leftovers import observe_leftovers
from tenantry.engine.notices import now_micro
from tenantry.engine.reader import Reader
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


async def listed(kind: Kind, reader: Reader, namespace: str = "") -> list[Object]:
    """The objects of a kind that OLM brings; none where it is not installed."""
    try:
        return await reader.list(kind, namespace)
    except KindNotServed:
        if await reader.serves(kind):
            raise
        return []


async def observe_csv(namespace: str, name: str, reader: Reader, *, enabled: bool) -> CsvSeen:
    """Read one ClusterServiceVersion and what belongs to it; when switched off only what was generated.

    Before rights are given or taken, the declarations are read once more: those of an older state would do what was due then.
    """
    seen = await _observe(namespace, name, reader, enabled=enabled)
    if plan_csv(seen, enabled=enabled).changes(MANAGER):
        csv, groups = await _declared(namespace, name, reader, enabled=enabled, again=True)
        if _versions(csv, *groups) != _versions(seen.csv, *seen.groups):
            reader.forget()
            seen = await _observe(namespace, name, reader, enabled=enabled)
    return seen


def _versions(*found: Object | None) -> list[tuple[str, str]]:
    return [("", "") if each is None else (each["metadata"]["uid"], each["metadata"]["resourceVersion"]) for each in found]


async def _declared(
    namespace: str, name: str, reader: Reader, *, enabled: bool, again: bool = False
) -> tuple[Object | None, tuple[Object, ...]]:
    """A ClusterServiceVersion and the OperatorGroups beside it."""
    csv: Object | None = None
    groups: list[Object] = []
    if enabled:
        try:
            csv = await reader.get(CLUSTER_SERVICE_VERSION, name, namespace, again=again)
        except KindNotServed:
            if await reader.serves(CLUSTER_SERVICE_VERSION):
                raise
    if csv is not None and not is_copy(csv):
        groups = [group for group in await listed(OPERATOR_GROUP, reader, namespace) if not is_terminating(group)]
    return csv, tuple(groups)


async def _observe(namespace: str, name: str, reader: Reader, *, enabled: bool) -> CsvSeen:
    csv, groups = await _declared(namespace, name, reader, enabled=enabled)
    names = [pair_name(part, namespace, name) for part in PARTS]
    templates, instances = await asyncio.gather(
        asyncio.gather(*(reader.get(SCOPE_TEMPLATE, each) for each in names)),
        asyncio.gather(*(reader.get(SCOPE_INSTANCE, each) for each in names)),
    )
    seen = CsvSeen(
        namespace,
        name,
        csv,
        groups,
        dict(zip(PARTS, templates, strict=True)),
        dict(zip(PARTS, instances, strict=True)),
    )
    if csv is None:
        made = [each for each in (*templates, *instances) if each is not None and is_generated(each)]
        return replace(seen, leftovers=await observe_leftovers(made, reader))
    told = possible_complaints(seen, enabled=enabled)
    called = [event_name(csv, complaint) for complaint in told]
    events = await asyncio.gather(*(reader.get(EVENT, each, namespace) for each in called))
    return replace(seen, events=dict(zip(called, events, strict=True)), now=now_micro())
