"""Reads for one release: which ProjectHelmCharts claim its name, and which of its objects exist."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import TypeVar

from release_provisioning.projects.dashboards import Dashboards, KeptDashboards, dashboards_of
from release_provisioning.projects.seen import Contender, ObservedRelease
from release_provisioning.projects.texts import Texts
from release_provisioning.projects.unserved import Asked, is_unserved, name_of
from tenantry.engine.projects import read_claimants, read_hardening
from tenantry.engine.reader import Reader
from tenantry.engine.reads import by_name
from tenantry.engine.recorder import now_micro
from tenantry.model.config import Config
from tenantry.model.hardening import Hardening
from tenantry.model.kinds import (
    CONFIG_MAP,
    EVENT,
    HELM_CHART,
    HELM_RELEASE,
    NAMESPACE,
    PROJECT_HELM_CHART,
    SERVICE_ACCOUNT,
    Object,
    is_terminating,
    labels_of,
)
from tenantry.model.names import CLEANUP, DASHBOARD_VALUES, SYSTEM_NAMESPACE
from tenantry.model.projects import RELEASE_FUNCTION, is_member, project_of_registration_name
from tenantry.model.releases import ChartKey, by_age, chart_for, held_by, project_of

T = TypeVar("T")


async def observe_release(name: str, config: Config, reader: Reader, texts: Texts) -> ObservedRelease:
    """Read everything that decides about one release name.

    Raises:
        OutdatedError: large values changed while they were read.
    """
    system = config.helm_project_operator.system_namespace
    dedicated = config.dedicated
    found, helm_chart, helm_release, namespace = await asyncio.gather(
        read_claimants(name, config, reader),
        reader.get(HELM_CHART, name, system),
        reader.get(HELM_RELEASE, name, system),
        reader.get(NAMESPACE, name) if dedicated else _unread(None),
    )
    leaves = namespace is None or is_terminating(namespace)
    if dedicated and leaves == (helm_chart is not None or helm_release is not None):
        # The namespace is made first: that it was deleted only shows when it is not there after the others were. What a single
        # read says of it takes no release away, and makes none in a namespace of before.
        namespace = await reader.get(NAMESPACE, name, again=True)
    claimed = _fingerprint(found)
    gone = frozenset(await _named(found, (helm_chart, helm_release, namespace), reader))
    contenders = await _contenders(by_age(found.values()), config, reader)
    seen = ObservedRelease(name, contenders, helm_chart, helm_release, namespace, gone=gone)
    holder = seen.holder
    if holder is None:
        return replace(seen, hardening=await read_hardening(name, config, reader)) if seen.has_home(config) else seen
    where = name if dedicated else holder.key.namespace
    members, dashboards, installation, hardening = await asyncio.gather(
        _namespaces(holder, config, reader),
        _dashboards(where, name, reader) if namespace is not None or not dedicated else _unread(Dashboards({})),
        _installation(reader) if CLEANUP in labels_of(holder.object) else _unread(""),
        read_hardening(name, config, reader) if namespace is not None else _unread(Hardening()),
    )
    _depend_on(name, claimed, holder, members, config, reader)
    seen = replace(seen, members=members, dashboards=dashboards, installation=installation, hardening=hardening)
    return replace(seen, values=await texts.of(seen, config, reader))


async def observe_unserved(key: ChartKey, config: Config, reader: Reader) -> Asked:
    """Read a ProjectHelmChart, whether its project is served, and the Event that it may have."""
    chart = await reader.get(PROJECT_HELM_CHART, key.name, key.namespace)
    if chart is None or not is_unserved(chart, config):
        return Asked(chart)
    (contender,) = await _contenders([chart], config, reader)
    if not contender.project or contender.denied:
        return Asked(chart)
    return Asked(chart, True, await reader.get(EVENT, name_of(chart), key.namespace), now_micro())


async def _unread(value: T) -> T:
    """In the place of a read that is not needed."""
    return value


def _fingerprint(found: dict[ChartKey, Object]) -> Hashable:
    return tuple(sorted((key, each["metadata"]["uid"], is_terminating(each)) for key, each in found.items()))


async def _named(found: dict[ChartKey, Object], objects: tuple[Object | None, ...], reader: Reader) -> list[str]:
    """Add the ProjectHelmCharts that our objects were made for; returns those that exist no more, read by name."""
    gone: list[str] = []
    for marked in dict.fromkeys(held_by(each) for each in objects):
        namespace, _, name = marked.partition("/")
        if not name or ChartKey(namespace, name) in found:
            continue
        # Read now: whoever made the objects may have come after what is known of ProjectHelmCharts was read.
        if (holder := await reader.get(PROJECT_HELM_CHART, name, namespace, again=True)) is None:
            gone.append(marked)
        else:
            found[ChartKey(namespace, name)] = holder
    return gone


async def _contenders(found: Sequence[Object], config: Config, reader: Reader) -> tuple[Contender, ...]:
    """Each with its project, by its namespace, which is read once for all that are in it: they may be thousands (a-19)."""
    names = sorted({each["metadata"]["namespace"] for each in found}) if config.project_label else []
    homes = await by_name(NAMESPACE, filter(project_of_registration_name, names), reader)
    living = ((each, homes.get(each["metadata"]["namespace"])) for each in found)
    placed = ((each, home, project_of(each, home, config)) for each, home in living)
    denied = config.denied_project_ids if config.project_label else ()
    return tuple(Contender(each, chart_for(each, config), project, project in denied, home) for each, home, project in placed)


async def _namespaces(holder: Contender, config: Config, reader: Reader) -> Sequence[Object]:
    return await reader.list(NAMESPACE, labels={config.project_label: holder.project} if config.project_label else {})


async def _dashboards(namespace: str, name: str, reader: Reader) -> Dashboards:
    """What a chart has left for dashboards; read in a thread, since it may be megabytes of JSON, and other releases go on."""
    labels = {DASHBOARD_VALUES: name}
    found = await reader.list(CONFIG_MAP, namespace, labels=labels) if not reader.live else None
    if found is None or any(each["data"] is None for each in found):
        found = await _read_dashboards(namespace, labels, reader)
    return await asyncio.to_thread(dashboards_of, found) if found else Dashboards({})


async def _read_dashboards(namespace: str, labels: dict[str, str], reader: Reader) -> list[Object]:
    """As many ConfigMaps as can be used, in the order of their names; the others are not even read."""
    keep, found = KeptDashboards(), list[Object]()

    def kept(item: Object) -> Object:
        if keep.has_enough(namespace, labels[DASHBOARD_VALUES]):
            raise _EnoughError
        found.append(keep(item))
        return found[-1]

    try:
        return await reader.fetch_list(CONFIG_MAP, namespace, labels=labels, keep=kept)
    except _EnoughError:
        return found


class _EnoughError(Exception):
    """What else a list has is of no use."""


async def _installation(reader: Reader) -> str:
    """What tells this installation from an earlier one: the uid of our ServiceAccount, made anew with each (hpo-50)."""
    account = await reader.get(SERVICE_ACCOUNT, RELEASE_FUNCTION, SYSTEM_NAMESPACE)
    return account["metadata"]["uid"] if account is not None else ""


def _depend_on(
    name: str, claimed: Hashable, holder: Contender, members: Sequence[Object], config: Config, reader: Reader
) -> None:
    """Who claims the name, and who is in the project, must still be so when everything is written."""

    async def claims(fresh: Reader) -> Hashable:
        return _fingerprint(await read_claimants(name, config, fresh, headers=True))

    def names(found: Sequence[Object]) -> Hashable:
        if not config.project_label:
            return tuple(sorted((each["metadata"]["name"], is_terminating(each)) for each in found))
        return tuple(sorted(each["metadata"]["name"] for each in found if is_member(each, holder.project, config)))

    async def targets(fresh: Reader) -> Hashable:
        return names(await _namespaces(holder, config, fresh))

    reader.depends_on(claims, claimed)
    reader.depends_on(targets, names(members))
