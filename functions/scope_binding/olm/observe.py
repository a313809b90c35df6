"""Reads for OLM: a ClusterServiceVersion, the OperatorGroups beside it, and what was generated from them.

A cluster without OLM serves neither kind: then there is nothing to read, and what was generated is deleted.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from scope_binding.olm.plan import PARTS, CsvSeen, Part, event_name, is_copy, is_generated, pair_name, possible_complaints
from scope_binding.reads import listed
from tenantry.engine.leftovers import observe_leftovers
from tenantry.engine.reader import Reader
from tenantry.engine.reads import by_name, if_served
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


async def observe_csv(namespace: str, name: str, reader: Reader, *, enabled: bool) -> CsvSeen:
    """Read one ClusterServiceVersion and what belongs to it; when switched off only what was generated."""
    csv: Object | None = None
    groups: list[Object] = []
    if enabled:
        csv = await if_served(CLUSTER_SERVICE_VERSION, reader, reader.get(CLUSTER_SERVICE_VERSION, name, namespace))
    if csv is not None and not is_copy(csv):
        groups = [group for group in await listed(OPERATOR_GROUP, reader, namespace) if not is_terminating(group)]

    async def pairs(kind: Kind) -> dict[Part, Object | None]:
        found = await by_name(kind, (pair_name(part, namespace, name) for part in PARTS), reader)
        return dict(zip(PARTS, found.values(), strict=True))

    templates, instances = await asyncio.gather(pairs(SCOPE_TEMPLATE), pairs(SCOPE_INSTANCE))
    seen = CsvSeen(namespace, name, csv, tuple(groups), templates, instances)
    if csv is None:
        made = [each for each in (*templates.values(), *instances.values()) if each is not None and is_generated(each)]
        return replace(seen, leftovers=await observe_leftovers(made, reader))
    called = (event_name(csv, complaint) for complaint in possible_complaints(seen))
    return replace(seen, events=await by_name(EVENT, called, reader, namespace), now=now_micro())
