"""Reads for projects that several functions make: who could claim a release, and what hardens a namespace."""

from __future__ import annotations

import asyncio

from tenantry.engine.reader import Reader
from tenantry.engine.reads import joined
from tenantry.engine.snapshot import Prefetch
from tenantry.model.config import Config
from tenantry.model.hardening import HARDENED_BY, Hardening
from tenantry.model.kinds import PROJECT_HELM_CHART, Object
from tenantry.model.names import OPERATED
from tenantry.model.releases import ChartKey, chart_key, claimants


async def read_claimants(name: str, config: Config, reader: Reader, *, headers: bool = False) -> dict[ChartKey, Object]:
    """The ProjectHelmCharts whose name or namespace fits the release name, whatever chart they ask for.

    With ``headers`` only their metadata may be there.
    """
    found = await joined(
        reader.list(PROJECT_HELM_CHART, namespace, name=own)
        if namespace
        else reader.named(PROJECT_HELM_CHART, own, headers=headers)
        for namespace, own in claimants(name, config)
    )
    return {chart_key(each): each for each in found}


async def read_hardening(namespace: str, config: Config, reader: Reader) -> Hardening:
    """What hardens a namespace; nothing is read where hardening is off."""
    if not config.helm_project_operator.hardened_namespaces.enabled:
        return Hardening()
    return Hardening(*await asyncio.gather(*(reader.get(kind, name, namespace) for kind, name in HARDENED_BY.items())))


def hardening_lists(config: Config) -> list[Prefetch]:
    """What hardens any namespace, for a sweep."""
    enabled = config.helm_project_operator.hardened_namespaces.enabled
    return [Prefetch(kind, ((OPERATED, "true"),), name) for kind, name in HARDENED_BY.items() if enabled]
