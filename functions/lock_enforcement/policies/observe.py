"""Reads of the policies that are there, and of what the API server serves."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from lock_enforcement.policies.report import policy_warning
from lock_enforcement.policies.seen import PoliciesSeen
from tenantry.engine.reader import Reader
from tenantry.engine.reads import if_served
from tenantry.engine.recorder import now_micro
from tenantry.model.flux.names import DEFAULT, TENANCY_PROFILE
from tenantry.model.flux.policies import GENERATED, Served
from tenantry.model.flux.policies.parts import LABELS
from tenantry.model.kinds import EVENT, Kind, Object
from tenantry.model.standing import event_namespace


async def observe_policies(reader: Reader) -> PoliciesSeen:
    """Read the profile, and where there is one what it is compared with."""
    profile = await if_served(TENANCY_PROFILE, reader, reader.get(TENANCY_PROFILE, DEFAULT))
    if profile is None:
        return PoliciesSeen(None)
    served, lists = await asyncio.gather(reader.groups(), asyncio.gather(*(_ours(kind, reader) for kind in GENERATED)))
    there = {(each["kind"], each["metadata"]["name"]): each for found in lists for each in found}
    seen = PoliciesSeen(profile, Served.of(served), there, now=now_micro())
    name = policy_warning(seen)
    told = await reader.get(EVENT, name, event_namespace(profile)) if name else None
    return replace(seen, told=frozenset({name} if told is not None else ()))


async def _ours(kind: Kind, reader: Reader) -> list[Object]:
    return await if_served(kind, reader, reader.list(kind, labels=LABELS)) or []
