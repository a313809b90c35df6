"""Reads a cluster for an audit: in pages, of each object only what is judged, and in the versions that discovery names."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial

from tenantry.api import Api
from tenantry.cli.progress import ReadProgress
from tenantry.cli.served import ServedKinds, served_kinds
from tenantry.model.flux.access import AccessEntries
from tenantry.model.flux.audit.deliveries import default_accounts
from tenantry.model.flux.audit.seen import (
    AuditedConsumer,
    AuditSeen,
    kept_arguments,
    kept_consumer_fields,
    kept_namespace_marks,
)
from tenantry.model.flux.carriers import is_made_for_another
from tenantry.model.flux.consumers import Consumer
from tenantry.model.flux.names import ACCESS_INDEX, DEFAULT, SOURCE_GROUP, TENANCY_PROFILE
from tenantry.model.flux.profile import MULTI_TENANT, Profile
from tenantry.model.kinds import DEPLOYMENT, NAMESPACE, SERVICE_ACCOUNT, Kind, Object, is_terminating

_CHARTS = (SOURCE_GROUP, "helmcharts")


async def read_for_audit(api: Api, progress: ReadProgress) -> AuditSeen:
    """All that an audit judges; what is not served is as if there were none of it."""
    kinds = served_kinds(await api.groups())
    stored, index = await asyncio.gather(_default(api, TENANCY_PROFILE, kinds), _default(api, ACCESS_INDEX, kinds))
    profile = replace(Profile.of(stored), profile=MULTI_TENANT)
    consumers, namespaces, charts, deployments = await asyncio.gather(
        asyncio.gather(*(_consumers(api, row, kinds, progress) for row in profile.all_consumers)),
        api.list(NAMESPACE, keep=progress.counting(kept_namespace_marks)),
        _charts(api, kinds, progress),
        api.list(DEPLOYMENT, keep=progress.counting(kept_arguments)),
    )
    seen = AuditSeen(
        profile,
        AccessEntries.of(index or {}),
        {each["metadata"]["name"]: each for each in namespaces.items},
        tuple(each for found in consumers for each in found),
        tuple(charts),
        tuple(deployments.items),
    )
    wanted = sorted(default_accounts(seen))
    there = await asyncio.gather(*(api.version(SERVICE_ACCOUNT, name, namespace) for namespace, name in wanted))
    return replace(seen, accounts=frozenset(each for each, version in zip(wanted, there, strict=True) if version))


async def _default(api: Api, kind: Kind, kinds: ServedKinds) -> Object | None:
    return await api.get(kind, DEFAULT) if (kind.group, kind.plural) in kinds else None


async def _consumers(api: Api, row: Consumer, kinds: ServedKinds, progress: ReadProgress) -> list[AuditedConsumer]:
    if (kind := kinds.get((row.group, row.resource))) is None:
        return []
    listed = await api.list(kind, keep=progress.counting(partial(kept_consumer_fields, row=row)))
    return [AuditedConsumer(row, each) for each in listed.items if not is_terminating(each)]


async def _charts(api: Api, kinds: ServedKinds, progress: ReadProgress) -> list[Object]:
    if (kind := kinds.get(_CHARTS)) is None:
        return []
    listed = await api.list(kind, metadata_only=True, keep=progress.counting(lambda each: each))
    return [each for each in listed.items if is_made_for_another(each) and not is_terminating(each)]
