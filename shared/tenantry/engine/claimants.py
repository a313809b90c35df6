"""Reads of the ProjectHelmCharts that could claim a release."""

from __future__ import annotations

import asyncio

from tenantry.engine.reader import Reader
from tenantry.model.config import Config
from tenantry.model.kinds import PROJECT_HELM_CHART, Object
from tenantry.model.releases import ChartKey, chart_key, claimants


async def read_claimants(name: str, config: Config, reader: Reader) -> dict[ChartKey, Object]:
    """The ProjectHelmCharts whose name or namespace fits the release name, whatever chart they ask for."""
    places = claimants(name, config)
    lists = await asyncio.gather(*(reader.list(PROJECT_HELM_CHART, namespace, name=own) for namespace, own in places))
    return {chart_key(each): each for found in lists for each in found}
