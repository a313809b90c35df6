"""The wiring of jobs: which HelmChart an event concerns, and what a sweep looks at.

Owners are ``chart/<system namespace>/<name>``, and ``rights/<namespace>/<name>`` for a binding of Helm's account that no run for
its HelmChart would find; ``-`` stands for a ClusterRoleBinding.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from release_provisioning.jobs import manifest, observe, plan, report, rights
from release_provisioning.jobs.descriptor import HELM_JOBS
from release_provisioning.jobs.plan import upgrades_to
from release_provisioning.jobs.rights import StrayBinding
from release_provisioning.jobs.seen import ObservedHelmChart
from release_provisioning.kept import SweptHelmCharts, digests_of
from tenantry.engine.reader import Reader
from tenantry.engine.snapshot import Prefetch
from tenantry.engine.unit import Handler, Owner, Stages, Unit, taken_away
from tenantry.model.config import Config
from tenantry.model.identifiers import is_dns_label, is_dns_subdomain
from tenantry.model.kinds import (
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    HELM_CHART,
    HELM_CHART_CONFIG,
    JOB,
    ROLE_BINDING,
    SECRET,
    SERVICE_ACCOUNT,
    Key,
    Object,
    labels_of,
)
from tenantry.model.leftovers import report_leftovers
from tenantry.model.names import CHART_LABEL
from tenantry.serving import Settings

log = logging.getLogger("tenantry")
_digests = partial(digests_of, part="data")
CHART, RIGHTS = "chart", "rights"
_EVERYWHERE = "-"
_JOB_PREFIXES = (manifest.Names("", "").install, manifest.Names("", "").delete)


class Jobs(Unit):
    """The unit ``jobs`` of release-provisioning."""

    name = "jobs"
    kinds = frozenset({HELM_CHART, HELM_CHART_CONFIG, JOB})

    def __init__(self, config: Config) -> None:
        self._config = config
        self._namespace = config.helm_project_operator.system_namespace
        self._enabled = config.helm_project_operator.helm_controller.enabled
        self._plain: bool | None = None
        """Whether the CRD knows no ``observedGeneration``; None until somebody has asked."""
        quiet_s = config.helm_project_operator.helm_controller.quiet_seconds
        self.handlers = {
            CHART: Handler[ObservedHelmChart](
                observe=self._observe_chart,
                plan=lambda chart: plan.plan_chart(chart, config),
                report=lambda chart, refusals: report.report_chart(chart, refusals, config),
                accepts=lambda owner: owner.namespace == self._namespace and is_dns_subdomain(owner.name),
                # The state that Helm is to be run for, too: ten namespaces that join a project are one upgrade.
                doubtful=lambda chart, made: taken_away(chart, made) | {upgrades_to(chart)} - {""},
                # Before an upgrade, chart and values are the same for a while.  Nothing is remembered, no clocks are compared.
                second_look_after_s=lambda chart: quiet_s if upgrades_to(chart) else 0.0,
            ),
            RIGHTS: Handler[StrayBinding](
                observe=self._observe_stray,
                plan=lambda stray: rights.plan_stray(stray, config),
                report=lambda stray, refusals: report_leftovers(stray.leftovers, refusals, HELM_JOBS, "jobs"),
                accepts=lambda owner: (
                    is_dns_subdomain(owner.name) and (owner.namespace == _EVERYWHERE or is_dns_label(owner.namespace))
                ),
            ),
        }

    async def _observe_chart(self, owner: Owner, reader: Reader) -> ObservedHelmChart:
        plain = self._plain
        if plain is None and self._enabled:
            plain = self._plain = await observe.has_plain_status(reader)
        return replace(await observe.observe_chart(owner.namespace, owner.name, self._config, reader), plain=bool(plain))

    async def _observe_stray(self, owner: Owner, reader: Reader) -> StrayBinding:
        place = "" if owner.namespace == _EVERYWHERE else owner.namespace
        return await observe.observe_stray(place, self._namespace, owner.name, self._config, reader)

    async def owners(self, key: Key, hint: Mapping[str, str], reader: Reader) -> Stages:
        """The HelmChart that a key is, or that its HelmChartConfig or Job is for."""
        del hint, reader
        if key.namespace != self._namespace:
            return []
        if key.kind != JOB.kind:
            return [[self._owner(key.name)]]
        named = next((key.name.removeprefix(prefix) for prefix in _JOB_PREFIXES if key.name.startswith(prefix)), "")
        return [[self._owner(named)]] if named and self._enabled else []

    def _owner(self, name: str) -> Owner:
        return Owner(CHART, name, self._namespace)

    def prefetch(self) -> Sequence[Prefetch]:
        """The HelmCharts, and what is kept for them; a ClusterRoleBinding by its name, whoever labelled it."""
        ours = ((CHART_LABEL, ""),)
        lists = [
            Prefetch(HELM_CHART, namespace=self._namespace, keep=SweptHelmCharts()),
            Prefetch(ROLE_BINDING, ours),
            Prefetch(CLUSTER_ROLE_BINDING),
        ]
        if self._enabled:
            lists += [Prefetch(kind, namespace=self._namespace) for kind in (HELM_CHART_CONFIG, JOB)]
            lists += [Prefetch(kind, ours, namespace=self._namespace, keep=_digests) for kind in (SECRET, CONFIG_MAP)]
            lists.append(Prefetch(SERVICE_ACCOUNT, ours, namespace=self._namespace))
        return lists

    async def sweep(self, reader: Reader) -> Sequence[Owner]:
        """Every HelmChart, and every deleted one of which an account, its binding or a Job is left."""
        charts = {chart["metadata"]["name"]: chart for chart in await reader.list(HELM_CHART, self._namespace)}
        bindings = [*await reader.list(CLUSTER_ROLE_BINDING, labels={CHART_LABEL: ""})]
        bindings += await reader.list(ROLE_BINDING, labels={CHART_LABEL: ""})
        owners = {self._owner(name) for name in charts}
        for each in bindings:
            owners |= self._minding(each, charts)
        for kind in (SERVICE_ACCOUNT, JOB) if self._enabled else ():
            for obj in await reader.list(kind, self._namespace, labels={CHART_LABEL: ""}):
                name = labels_of(obj)[CHART_LABEL]
                if obj["metadata"]["name"] in manifest.Names(self._namespace, name).left:
                    owners.add(self._owner(name))
        # Whoever manages the CRD may have changed it.
        self._plain = await observe.has_plain_status(reader) if self._enabled and owners else None
        return sorted(owners)

    def _minding(self, binding: Object, charts: Mapping[str, Object]) -> set[Owner]:
        """Who looks at a binding that bears our label: the run for its HelmChart, or one of its own."""
        name, place = labels_of(binding)[CHART_LABEL], binding["metadata"].get("namespace", "")
        if binding["metadata"]["name"] != manifest.Names(self._namespace, name).binding:
            return set()
        if rights.is_minded(charts.get(name), place, self._config):
            return set()
        if name not in charts and not place and self._enabled:
            return {self._owner(name)}
        owner = Owner(RIGHTS, name, place or _EVERYWHERE)
        return {owner} if self.accepts(owner) else set()


def made(settings: Settings) -> Jobs:
    """The unit of a process.  The log says what it means where Helm is made cluster-admin."""
    config = settings.config
    for setting in config.cluster_admins if config.helm_project_operator.helm_controller.enabled else ():
        log.warning("%s is cluster-admin: Helm's Jobs have all rights in all namespaces while they run", setting)
    return Jobs(config)
