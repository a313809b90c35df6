"""The wiring of jobs: which HelmChart an event concerns, and what a sweep looks at.

Owners are ``chart/<system namespace>/<name>``, and ``rights/<namespace>/<name>`` for a binding of Helm's account that no run for
its HelmChart would find; ``-`` stands for a ClusterRoleBinding.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from release_provisioning.descriptor import HELM_JOBS
from release_provisioning.jobs import manifest, observe, plan, report, rights
from release_provisioning.jobs.plan import upgrades_to
from release_provisioning.jobs.rights import StrayBinding
from release_provisioning.jobs.seen import ObservedHelmChart
from release_provisioning.kept import SweptHelmCharts, digests_of
from tenantry.engine.reader import Reader
from tenantry.engine.snapshot import Prefetch
from tenantry.engine.unit import Handler, Owner, Stages, Unit
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
from tenantry.model.plan import Plan, Refusal

_digests = partial(digests_of, part="data")
CHART, RIGHTS = "chart", "rights"
_EVERYWHERE = "-"
_JOB_PREFIXES = (manifest.install_name(""), manifest.delete_name(""))


class ChartHandler(Handler[ObservedHelmChart]):
    """HelmCharts.  None pauses: where values change one after the other, the look waits until they no longer do."""

    def __init__(self, config: Config) -> None:
        self.plain: bool | None = None
        """Whether the CRD knows no ``observedGeneration``; None until somebody has asked."""
        self._config = config
        self._namespace = config.helm_project_operator.system_namespace
        self._enabled = config.helm_project_operator.helm_controller.enabled

    def accepts(self, owner: Owner) -> bool:
        """Whether it is a HelmChart of the system namespace."""
        return owner.namespace == self._namespace and is_dns_subdomain(owner.name)

    async def observe(self, owner: Owner, reader: Reader) -> ObservedHelmChart:
        """Read what the plan of a HelmChart needs."""
        plain = self.plain
        if plain is None and self._enabled:
            plain = self.plain = await observe.has_plain_status(reader)
        return replace(await observe.observe_chart(owner.namespace, owner.name, self._config, reader), plain=bool(plain))

    def plan(self, observed: ObservedHelmChart) -> Plan:
        """The Job and what it needs, or the end of them."""
        return plan.plan_chart(observed, self._config)

    def doubtful(self, observed: ObservedHelmChart, plan: Plan) -> frozenset[Hashable]:
        """The state that Helm is to be run for, too: ten namespaces that join a project are one upgrade."""
        return super().doubtful(observed, plan) | {upgrades_to(observed)} - {""}

    def second_look_after_s(self, observed: ObservedHelmChart) -> float:
        """Before an upgrade, chart and values are the same for a while.  Nothing is remembered, and no clocks are compared."""
        return self._config.helm_project_operator.helm_controller.quiet_seconds if upgrades_to(observed) else 0.0

    def report(self, observed: ObservedHelmChart, refusals: Sequence[Refusal]) -> Plan:
        """The status of the HelmChart, and what is said of what it left."""
        return report.report_chart(observed, refusals, self._config)


class StrayHandler(Handler[StrayBinding]):
    """Bindings of Helm's accounts that no run for their HelmChart would find."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._namespace = config.helm_project_operator.system_namespace

    def accepts(self, owner: Owner) -> bool:
        """Whether it is ``rights/<namespace>/<name>``."""
        return (owner.namespace == _EVERYWHERE or is_dns_label(owner.namespace)) and is_dns_subdomain(owner.name)

    async def observe(self, owner: Owner, reader: Reader) -> StrayBinding:
        """Read the binding, and what may still need it."""
        place = "" if owner.namespace == _EVERYWHERE else owner.namespace
        return await observe.observe_stray(place, self._namespace, owner.name, self._config, reader)

    def plan(self, observed: StrayBinding) -> Plan:
        """Its deletion, where nothing needs it."""
        return rights.plan_stray(observed, self._config)

    def report(self, observed: StrayBinding, refusals: Sequence[Refusal]) -> Plan:
        """What is said on a binding that may not be deleted."""
        return report_leftovers(observed.leftovers, refusals, HELM_JOBS, "jobs")


class Jobs(Unit):
    """The unit ``jobs`` of release-provisioning."""

    name = "jobs"
    kinds = frozenset({HELM_CHART, HELM_CHART_CONFIG, JOB})

    def __init__(self, config: Config) -> None:
        self._config = config
        self._namespace = config.helm_project_operator.system_namespace
        self._enabled = config.helm_project_operator.helm_controller.enabled
        self._charts, self._strays = ChartHandler(config), StrayHandler(config)
        self.handlers = {CHART: self._charts, RIGHTS: self._strays}

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
        """Every HelmChart, and every one that is gone and of which an account, its binding or a Job is left."""
        charts = {chart["metadata"]["name"]: chart for chart in await reader.list(HELM_CHART, self._namespace)}
        bindings = [*await reader.list(CLUSTER_ROLE_BINDING, labels={CHART_LABEL: ""})]
        bindings += await reader.list(ROLE_BINDING, labels={CHART_LABEL: ""})
        owners = {self._owner(name) for name in charts}
        for each in bindings:
            owners |= self._minding(each, charts)
        for kind in (SERVICE_ACCOUNT, JOB) if self._enabled else ():
            for obj in await reader.list(kind, self._namespace, labels={CHART_LABEL: ""}):
                name = labels_of(obj)[CHART_LABEL]
                if obj["metadata"]["name"] in manifest.left_names(self._namespace, name):
                    owners.add(self._owner(name))
        # Whoever manages the CRD may have changed it.
        self._charts.plain = await observe.has_plain_status(reader) if self._enabled and owners else None
        return sorted(owners)

    def _minding(self, binding: Object, charts: Mapping[str, Object]) -> set[Owner]:
        """Who looks at a binding that bears our label: the run for its HelmChart, or one of its own."""
        name, place = labels_of(binding)[CHART_LABEL], binding["metadata"].get("namespace", "")
        if binding["metadata"]["name"] != manifest.binding_name(self._namespace, name):
            return set()
        if rights.is_minded(charts.get(name), place, self._config):
            return set()
        if name not in charts and not place and self._enabled:
            return {self._owner(name)}
        owner = Owner(RIGHTS, name, place or _EVERYWHERE)
        return {owner} if self.accepts(owner) else set()
