"""The wiring of jobs: which HelmChart an event concerns, and what a sweep looks at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from release_provisioning.jobs import manifest, observe, plan, report
from release_provisioning.jobs.plan import Seen
from tenantry.engine.reader import Prefetch, Reader
from tenantry.model.config import DNS_SUBDOMAIN, Config
from tenantry.model.kinds import (
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    HELM_CHART,
    HELM_CHART_CONFIG,
    JOB,
    SECRET,
    SERVICE_ACCOUNT,
    Key,
    labels_of,
)
from tenantry.model.names import CHART_LABEL
from tenantry.model.plan import Plan, Refusal

_JOB_PREFIXES = (manifest.install_name(""), manifest.delete_name(""))


class Jobs:
    """The unit ``jobs`` of release-provisioning."""

    name = "jobs"
    kinds = frozenset({HELM_CHART, HELM_CHART_CONFIG, JOB})

    def __init__(self, config: Config) -> None:
        self._config = config
        self._namespace = config.helm_project_operator.system_namespace
        self._enabled = config.helm_project_operator.helm_controller.enabled
        self._plain: bool | None = None

    async def owners(self, key: Key, hint: Mapping[str, str], reader: Reader) -> Sequence[Sequence[str]]:
        """The HelmChart that a key is, or that its HelmChartConfig or Job is for."""
        del hint, reader
        if key.namespace != self._namespace:
            return []
        if key.kind != JOB.kind:
            return [[self._owner(key.name)]]
        named = next((key.name.removeprefix(prefix) for prefix in _JOB_PREFIXES if key.name.startswith(prefix)), "")
        return [[self._owner(named)]] if named and self._enabled else []

    def _owner(self, name: str) -> str:
        return f"chart/{self._namespace}/{name}"

    def accepts(self, owner: str) -> bool:
        """Whether the owner is a HelmChart of the system namespace."""
        kind, _, rest = owner.partition("/")
        namespace, _, name = rest.partition("/")
        return kind == "chart" and namespace == self._namespace and DNS_SUBDOMAIN.fullmatch(name) is not None

    def pause_s(self, owner: str) -> float:
        """No pause: where values change one after the other, the look waits until they no longer do."""
        del owner
        return 0.0

    def ended(self, owner: str, succeeded: bool) -> None:
        """Nothing is kept."""
        del owner, succeeded

    async def observe(self, owner: str, reader: Reader) -> Seen:
        """Read what the plan of a HelmChart needs."""
        _, namespace, name = owner.split("/")
        plain = self._plain
        if plain is None and self._enabled:
            plain = self._plain = await observe.has_plain_status(reader)
        return replace(await observe.observe_still(namespace, name, self._config, reader), plain=bool(plain))

    def plan(self, observed: Seen) -> Plan:
        """The Job and what it needs, or the end of them."""
        return plan.plan_chart(observed, self._config)

    def report(self, observed: Seen, refusals: Sequence[Refusal]) -> Plan:
        """The status of the HelmChart."""
        return report.report_chart(observed, refusals, self._config)

    def prefetch(self) -> Sequence[Prefetch]:
        """The HelmCharts, and what is kept for them."""
        lists = [Prefetch(HELM_CHART, namespace=self._namespace)]
        if self._enabled:
            ours = ((CHART_LABEL, ""),)
            lists += [Prefetch(kind, namespace=self._namespace) for kind in (HELM_CHART_CONFIG, JOB)]
            lists += [Prefetch(kind, ours, namespace=self._namespace) for kind in (SECRET, CONFIG_MAP, SERVICE_ACCOUNT)]
            lists.append(Prefetch(CLUSTER_ROLE_BINDING, ours))
        return lists

    async def sweep(self, reader: Reader) -> Sequence[str]:
        """Every HelmChart, and every one that is gone and of which an account, its binding or a Job is left."""
        names = {chart["metadata"]["name"] for chart in await reader.list(HELM_CHART, self._namespace)}
        if self._enabled:
            left = [*await reader.list(CLUSTER_ROLE_BINDING, labels={CHART_LABEL: ""})]
            for kind in (SERVICE_ACCOUNT, JOB):
                left += await reader.list(kind, self._namespace, labels={CHART_LABEL: ""})
            for obj in left:
                name = labels_of(obj)[CHART_LABEL]
                if obj["metadata"]["name"] in manifest.left_names(self._namespace, name):
                    names.add(name)
        # Whoever manages the CRD may have changed it.
        self._plain = await observe.has_plain_status(reader) if self._enabled and names else None
        return [self._owner(name) for name in sorted(names)]
