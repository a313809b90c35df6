"""The wiring of PaasConfigs: owners are ``config/<name>``, and ``quota/<capability>`` for each quota that Paas share.

A PaasConfig concerns all PaasConfigs, because another one may count now, and all shared quotas.  Those that do not count are
looked at first: at no moment do two say that they are in use.  A Paas concerns every shared quota: it does not say which it has
left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from namespace_registration.paas_config.observe import (
    configs_in,
    foreign_kinds,
    observe_config,
    observe_quota,
    quotas_are_served,
)
from namespace_registration.paas_config.plan import plan_config, plan_quota
from namespace_registration.paas_config.report import report_config, report_quota
from namespace_registration.paas_config.seen import QUOTA_PREFIX, SHARED_QUOTA, ConfigSeen, QuotaSeen
from tenantry.engine.last_runs import State
from tenantry.engine.reader import Reader
from tenantry.engine.reads import if_served
from tenantry.engine.snapshot import Prefetch
from tenantry.engine.unit import Handler, Owner, Stages, Unit, stage
from tenantry.model.kinds import Key, Kind, Object, annotations_of, declared
from tenantry.model.paas.config import active_of, config_of
from tenantry.model.paas.names import CLUSTER_RESOURCE_QUOTA, PAAS, PAAS_CONFIG, SHARED
from tenantry.serving import Settings

CONFIG, QUOTA = "config", "quota"
"""Types of owners."""


class PaasConfigs(Unit):
    """The unit ``paas_config`` of namespace-registration."""

    name = "paas_config"
    kinds = frozenset({PAAS, PAAS_CONFIG, CLUSTER_RESOURCE_QUOTA})
    readable = kinds
    # What others say in the status of a Paas or a quota makes no other quota.
    states: Mapping[Kind, State] = MappingProxyType({PAAS: declared, CLUSTER_RESOURCE_QUOTA: declared})
    handlers: Mapping[str, Handler[Any]] = MappingProxyType(
        {
            CONFIG: Handler[ConfigSeen](
                observe=lambda owner, reader: observe_config(owner.name, reader),
                plan=plan_config,
                report=report_config,
                rests_on_reads=True,
            ),
            QUOTA: Handler[QuotaSeen](
                observe=lambda owner, reader: observe_quota(owner.name, reader),
                plan=plan_quota,
                report=report_quota,
                rests_on_reads=True,
                pause_s=0.25,  # of two hundred Paas that change at once each would be a run over all of them
            ),
        }
    )

    async def owners(self, key: Key, hint: Mapping[str, str], reader: Reader) -> Stages:
        """The PaasConfigs and shared quotas that a key concerns."""
        del hint
        if await foreign_kinds(reader):
            return [[Owner(CONFIG, key.name)]] if key.kind == PAAS_CONFIG.kind else []
        if key.kind == PAAS_CONFIG.kind:
            return await self._all_of(reader, also=[Owner(CONFIG, key.name)])
        if not await quotas_are_served(reader):
            return []
        if key.kind == PAAS.kind:
            found = await _quotas(reader)
            if found:  # read once for all of them, and not by each
                await if_served(PAAS, reader, reader.get(PAAS, key.name))
            return stage(found)
        return await self._of_quota(key.name, reader)

    async def _all_of(self, reader: Reader, also: Iterable[Owner]) -> Stages:
        configs = await configs_in(reader)
        active = active_of(configs)
        named = [Owner(CONFIG, each["metadata"]["name"]) for each in configs if each is not active]
        in_use = [Owner(CONFIG, active["metadata"]["name"])] if active is not None else []
        before = [each for each in (*named, *also) if each not in in_use]
        shared = await _quotas(reader) if await quotas_are_served(reader) else []
        return [each for each in (*stage(before), *stage([*in_use, *shared])) if each]

    async def _of_quota(self, name: str, reader: Reader) -> Stages:
        if not name.startswith(QUOTA_PREFIX):
            return []
        owner = Owner(QUOTA, name.removeprefix(QUOTA_PREFIX))
        if owner in _clusterwide(await configs_in(reader)):
            return [[owner]]
        kind = CLUSTER_RESOURCE_QUOTA
        return [[owner]] if _is_shared(await if_served(kind, reader, reader.get(kind, name))) else []

    def prefetch(self) -> Sequence[Prefetch]:
        """All PaasConfigs and quotas of the cluster, where they are served.

        Paas are read when there is a shared quota: nobody may convert them while their CRD is another system's.
        """
        return [Prefetch(kind, optional=True) for kind in (PAAS_CONFIG, CLUSTER_RESOURCE_QUOTA)]

    async def sweep(self, reader: Reader) -> Sequence[Owner]:
        """Every PaasConfig, every clusterwide capability, and every shared quota that nothing configures any more."""
        if await foreign_kinds(reader):
            return [Owner(CONFIG, each["metadata"]["name"]) for each in await configs_in(reader)]
        stages = await self._all_of(reader, also=())
        left = [] if not await quotas_are_served(reader) else await _left(reader)
        return list(dict.fromkeys([*(owner for each in stages for owner in each), *left]))


async def _quotas(reader: Reader) -> list[Owner]:
    """The quotas that Paas share: those configured; without a configuration, or with a changed one, those there are too."""
    configs = await configs_in(reader)
    found = _clusterwide(configs)
    changed = any(cause.kind == PAAS_CONFIG.kind for cause in reader.causes)
    if changed or active_of(configs) is None:
        found += await _left(reader)
    return list(dict.fromkeys(found))


def _clusterwide(configs: Iterable[Object]) -> list[Owner]:
    active = active_of(configs)
    if active is None:
        return []
    return [Owner(QUOTA, name) for name, each in config_of(active).capabilities.items() if each.clusterwide and not each.external]


async def _left(reader: Reader) -> list[Owner]:
    """The shared quotas that there are."""
    kind = CLUSTER_RESOURCE_QUOTA
    found = await if_served(kind, reader, reader.list_shared(kind)) or []
    names = (each["metadata"]["name"] for each in found if _is_shared(each))
    return [Owner(QUOTA, name.removeprefix(QUOTA_PREFIX)) for name in names if name.startswith(QUOTA_PREFIX)]


def _is_shared(quota: Object | None) -> bool:
    return annotations_of(quota).get(SHARED) == SHARED_QUOTA


def made(_: Settings) -> PaasConfigs:
    """The unit of a process."""
    return PaasConfigs()
