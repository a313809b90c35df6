"""Reads for release-provisioning: who claims a release name, and what there is of the release."""

from __future__ import annotations

import asyncio

from release_provisioning.projects.plan import Contender, Release, held_by
from tenantry.engine.reader import Reader
from tenantry.model.config import Config
from tenantry.model.kinds import (
    CONFIG_MAP,
    HELM_CHART,
    HELM_RELEASE,
    NAMESPACE,
    PROJECT_HELM_CHART,
    Object,
)
from tenantry.model.names import DASHBOARD_VALUES
from tenantry.model.projects import is_registration, project_of_registration_name
from tenantry.model.releases import ChartKey, by_age, candidates, chart_for, release_name


async def observe_release(name: str, config: Config, installation: str, reader: Reader) -> Release:
    """Read everything that decides about one release name."""
    system = config.helm_project_operator.system_namespace
    claimants, helm_chart, helm_release = await asyncio.gather(
        _claimants(name, config, reader),
        reader.get(HELM_CHART, name, system),
        reader.get(HELM_RELEASE, name, system),
    )
    contenders = await asyncio.gather(*(_contender(each, config, reader) for each in by_age(claimants)))
    seen = Release(name, tuple(contenders), helm_chart, helm_release, installation=installation)
    holder_is_gone = await _holder_is_gone(seen, reader)
    holder = seen.holder
    dedicated = bool(config.release_project_id)
    namespace, namespaces, dashboards = await asyncio.gather(
        reader.get(NAMESPACE, name) if dedicated else _nothing(),
        _namespaces(holder, config, reader) if holder is not None else _no_objects(),
        _dashboards(holder, name, dedicated, reader) if holder is not None else _no_objects(),
    )
    return Release(
        name,
        tuple(contenders),
        helm_chart,
        helm_release,
        holder_is_gone,
        namespace,
        tuple(namespaces),
        tuple(dashboards),
        installation,
    )


async def _nothing() -> None:
    return None


async def _no_objects() -> list[Object]:
    return []


async def _claimants(name: str, config: Config, reader: Reader) -> list[Object]:
    """ProjectHelmCharts that claim the name now, and those whose status says that they had it."""
    lists = await asyncio.gather(
        *(
            reader.list(PROJECT_HELM_CHART, namespace, name=own_name)
            for _, namespace, own_name in candidates(name, config)
        )
    )
    found: dict[ChartKey, Object] = {}
    for each in (item for items in lists for item in items):
        key = ChartKey(each["metadata"]["namespace"], each["metadata"]["name"])
        chart = chart_for(each, config)
        claims = chart is not None and release_name(key, chart) == name
        held = (each.get("status") or {}).get("releaseName") == name
        if claims or held:
            found[key] = each
    return list(found.values())


async def _contender(obj: Object, config: Config, reader: Reader) -> Contender:
    namespace = obj["metadata"]["namespace"]
    chart = chart_for(obj, config)
    if not config.project_label:
        served = namespace == config.helm_project_operator.system_namespace
        return Contender(obj, chart, obj["metadata"]["name"] if served else "")
    project = project_of_registration_name(namespace)
    if not project:
        return Contender(obj, chart, "")
    registration = await reader.get(NAMESPACE, namespace)
    if registration is None or not is_registration(registration, config):
        return Contender(obj, chart, "")
    return Contender(obj, chart, project, denied=project in config.denied_project_ids)


async def _holder_is_gone(seen: Release, reader: Reader) -> bool:
    """Whether the ProjectHelmChart that the HelmChart or HelmRelease names exists no more: read live, by name."""
    marked = held_by(seen.helm_chart) or held_by(seen.helm_release)
    namespace, _, name = marked.partition("/")
    if not name or any(str(contender.key) == marked for contender in seen.contenders):
        return False
    return await reader.get(PROJECT_HELM_CHART, name, namespace) is None


async def _namespaces(holder: Contender, config: Config, reader: Reader) -> list[Object]:
    if not config.project_label:
        return await reader.list(NAMESPACE)
    return await reader.list(NAMESPACE, labels={config.project_label: holder.project})


async def _dashboards(holder: Contender, name: str, dedicated: bool, reader: Reader) -> list[Object]:
    namespace = name if dedicated else holder.key.namespace
    return await reader.list(CONFIG_MAP, namespace, labels={DASHBOARD_VALUES: name})
