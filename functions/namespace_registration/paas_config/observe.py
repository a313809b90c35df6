"""Reads for PaasConfigs and shared quotas: all PaasConfigs, all Paas of a clusterwide capability, and the quota itself."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from dataclasses import replace

from namespace_registration.paas_config.report import foreign_event
from namespace_registration.paas_config.seen import ConfigSeen, QuotaSeen, quota_name
from tenantry.engine.reader import Reader
from tenantry.engine.reads import if_served
from tenantry.engine.recorder import now_micro
from tenantry.model.kinds import CLUSTER_ROLE, EVENT, Object
from tenantry.model.paas.config import active_of, config_of
from tenantry.model.paas.declared import Paas, paas_of
from tenantry.model.paas.names import CLUSTER_RESOURCE_QUOTA, OUR_KINDS, PAAS, PAAS_CONFIG
from tenantry.model.standing import event_namespace


async def configs_in(reader: Reader) -> list[Object]:
    """All PaasConfigs: there is one, or a few by mistake."""

    async def read() -> list[Object]:
        found = await reader.all_shared(PAAS_CONFIG)
        return found if found is not None else await reader.list_shared(PAAS_CONFIG)

    return await if_served(PAAS_CONFIG, reader, read()) or []


async def foreign_kinds(reader: Reader) -> tuple[str, ...]:
    """The plurals of the kinds of ours that are served by CRDs of another system."""
    return tuple(sorted([kind.plural for kind in OUR_KINDS if await reader.is_foreign(kind)]))


async def quotas_are_served(reader: Reader) -> bool:
    """Whether there are quotas of the cluster."""
    kind = CLUSTER_RESOURCE_QUOTA
    return await reader.served(kind.api_version, kind.kind) is not None


def _identity(config: Object | None) -> Hashable:
    return (config["metadata"]["uid"], config["metadata"].get("generation")) if config is not None else None


async def _in_use(reader: Reader) -> Object | None:
    """The PaasConfig that counts, as an input of the decision."""
    found = active_of(await configs_in(reader))

    async def now(fresh: Reader) -> Hashable:
        return _identity(active_of(await configs_in(fresh)))

    reader.depends_on(now, _identity(found))
    return found


# -- a PaasConfig ----------------------------------------------------------------------------------------------------


async def observe_config(name: str, reader: Reader) -> ConfigSeen:
    """Read a PaasConfig, whether it counts, and which of the ClusterRoles that it names are missing.

    While the CRDs are another system's only what stands about that is read.
    """
    in_use = await _in_use(reader)
    live = await if_served(PAAS_CONFIG, reader, reader.get(PAAS_CONFIG, name))
    active = in_use["metadata"]["name"] if in_use is not None else ""
    if live is not None and (foreign := await foreign_kinds(reader)):
        event = await reader.get(EVENT, foreign_event(live), event_namespace(live))
        return ConfigSeen(name, live, active, foreign=foreign, event=event, now=now_micro())
    if live is None or name != active:
        return ConfigSeen(name, live, active)
    served, missing = await asyncio.gather(quotas_are_served(reader), _missing_roles(live, reader))
    return ConfigSeen(name, live, active, served, missing)


async def _missing_roles(live: Object, reader: Reader) -> tuple[str, ...]:
    config = config_of(live)
    wanted = {role for roles in config.role_mappings.values() for role in roles}
    for capability in config.capabilities.values():
        for accounts in (capability.default_permissions, capability.extra_permissions):
            wanted |= {role for roles in accounts.values() for role in roles}
    if not wanted:
        return ()
    there = {each["metadata"]["name"] for each in await reader.headers(CLUSTER_ROLE, labels={}, keep=_name_only)}
    return tuple(sorted(wanted - there))


def _name_only(item: Object) -> Object:
    return {"metadata": {part: item["metadata"].get(part) for part in ("name", "uid", "resourceVersion")}}


# -- a shared quota --------------------------------------------------------------------------------------------------


async def observe_quota(capability: str, reader: Reader) -> QuotaSeen:
    """Read the quota of a clusterwide capability, the configuration, and the Paas that share it."""
    if not await quotas_are_served(reader) or await foreign_kinds(reader):
        return QuotaSeen(capability, served=False)
    kind, name = CLUSTER_RESOURCE_QUOTA, quota_name(capability)
    live, in_use = await asyncio.gather(if_served(kind, reader, reader.get(kind, name)), _in_use(reader))
    config = config_of(in_use) if in_use is not None else None
    seen = QuotaSeen(capability, served=True, config=config, config_live=in_use, live=live)
    if seen.known is None and live is None:
        return seen
    every = await _all_paas(reader)
    seen = replace(seen, paas=_sharing(capability, every), uids=frozenset(each.uid for each in every))

    async def amounts(fresh: Reader) -> Hashable:
        return _amounts(replace(seen, paas=_sharing(capability, await _all_paas(fresh))))

    reader.depends_on(amounts, _amounts(seen))  # who of the Paas says what does not matter where it comes to the same
    return seen


async def _all_paas(reader: Reader) -> list[Paas]:
    return [paas_of(each) for each in await if_served(PAAS, reader, reader.list_shared(PAAS)) or []]


def _sharing(capability: str, every: list[Paas]) -> tuple[Paas, ...]:
    return tuple(each for each in every if not each.deleted and capability in each.enabled)


def _amounts(seen: QuotaSeen) -> Hashable:
    found = seen.amounts
    return tuple(sorted(found.items())) if found is not None else None
