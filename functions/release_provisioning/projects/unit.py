"""The wiring of releases: whom an event touches, and what a sweep looks at.

The owner is ``release/<name>``.  A namespace touches every release of the project that it is in, or was in:
the function that keeps the memory of the last project tells us when a namespace has left one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from release_provisioning.projects.observe import observe_release
from release_provisioning.projects.plan import Release, held_by, plan_release
from release_provisioning.projects.report import report_release
from tenantry.engine.reader import Prefetch, Reader
from tenantry.model.config import DNS_LABEL, Config
from tenantry.model.kinds import (
    CONFIG_MAP,
    HELM_CHART,
    HELM_RELEASE,
    NAMESPACE,
    PROJECT_HELM_CHART,
    Key,
    Object,
    labels_of,
)
from tenantry.model.names import DASHBOARD_VALUES, OPERATED, PROJECT_ID
from tenantry.model.plan import Plan, Refusal
from tenantry.model.projects import (
    ChartFiles,
    place_of,
    project_id_problem,
    project_of_registration_name,
    registration_name,
)
from tenantry.model.releases import ChartKey, chart_for, release_name

RELEASE_PAUSE_S = 0.1


class Releases:
    """The unit ``projects`` of release-provisioning."""

    name = "projects"
    kinds = frozenset({PROJECT_HELM_CHART, NAMESPACE, HELM_CHART, HELM_RELEASE, CONFIG_MAP})

    def __init__(self, config: Config, charts: tuple[ChartFiles, ...], installation: Callable[[], str]) -> None:
        self._config = config
        self._charts = charts
        self._installation = installation

    async def owners(self, key: Key, hint: Mapping[str, str], reader: Reader) -> Sequence[Sequence[str]]:
        """The releases that a key concerns."""
        system = self._config.helm_project_operator.system_namespace
        if key.kind == PROJECT_HELM_CHART.kind:
            found = await reader.get(PROJECT_HELM_CHART, key.name, key.namespace)
            return _stage(self._names_for(ChartKey(key.namespace, key.name), found))
        if key.kind in (HELM_CHART.kind, HELM_RELEASE.kind):
            return _stage([key.name]) if key.namespace == system else []
        if key.kind == CONFIG_MAP.kind:
            return await self._dashboard_owners(key, reader)
        return _stage(await self._namespace_owners(key.name, hint, reader))

    def _names_for(self, key: ChartKey, found: Object | None) -> list[str]:
        """The names that a ProjectHelmChart claims, held, or (when it is gone) may have held."""
        charts = self._config.helm_project_operator.charts
        if found is None:
            return [release_name(key, chart) for chart in charts]
        chart = chart_for(found, self._config)
        names = [release_name(key, chart)] if chart is not None else []
        held = (found.get("status") or {}).get("releaseName")
        return [*names, *([held] if held else [])]

    async def _dashboard_owners(self, key: Key, reader: Reader) -> Sequence[Sequence[str]]:
        if self._config.release_project_id:
            # The dedicated namespace has the release's name: no need to read the ConfigMap.
            return _stage([key.namespace])
        found = await reader.get(CONFIG_MAP, key.name, key.namespace)
        release = labels_of(found).get(DASHBOARD_VALUES, "")
        if release:
            return _stage([release])
        return _stage(await self._releases_in(key.namespace, reader)) if found is None else []

    async def _namespace_owners(self, name: str, hint: Mapping[str, str], reader: Reader) -> list[str]:
        if not self._config.project_label:
            return await self._releases_in(self._config.helm_project_operator.system_namespace, reader)
        namespace = await reader.get(NAMESPACE, name)
        labels = hint if namespace is None else labels_of(namespace)
        names = [name] if OPERATED in labels else []
        if project_of_registration_name(name):
            return [*names, *await self._releases_in(name, reader)]
        projects = [labels.get(PROJECT_ID, ""), labels.get(self._config.project_label, "")]
        if namespace is not None and place_of(namespace, self._config).is_a == "release":
            return names
        for project in dict.fromkeys(projects):
            if project and not project_id_problem(project):
                names += await self._releases_in(registration_name(project), reader)
        return names

    async def _releases_in(self, namespace: str, reader: Reader) -> list[str]:
        charts = await reader.list(PROJECT_HELM_CHART, namespace)
        return [
            release
            for found in charts
            for release in self._names_for(ChartKey(namespace, found["metadata"]["name"]), found)
        ]

    def accepts(self, owner: str) -> bool:
        """Whether the owner is ``release/<DNS label>``."""
        kind, _, name = owner.partition("/")
        return kind == "release" and DNS_LABEL.fullmatch(name) is not None

    def pause_s(self, owner: str) -> float:
        """Releases pause after a run: HelmChart, HelmRelease, namespace and status come back as events."""
        del owner
        return RELEASE_PAUSE_S

    async def observe(self, owner: str, reader: Reader) -> Release:
        """Read what decides about the release."""
        return await observe_release(owner.partition("/")[2], self._config, self._installation(), reader)

    def plan(self, observed: Release) -> Plan:
        """The writes that make it as declared."""
        return plan_release(observed, self._charts, self._config)

    def report(self, observed: Release, refusals: Sequence[Refusal]) -> Plan:
        """The status of the ProjectHelmCharts concerned."""
        return report_release(observed, refusals, self._config)

    def prefetch(self) -> Sequence[Prefetch]:
        """All ProjectHelmCharts, namespaces, HelmCharts, HelmReleases, and dashboards by label."""
        return [
            Prefetch(PROJECT_HELM_CHART),
            Prefetch(NAMESPACE),
            Prefetch(HELM_CHART, namespace=self._config.helm_project_operator.system_namespace),
            Prefetch(HELM_RELEASE, namespace=self._config.helm_project_operator.system_namespace),
            Prefetch(CONFIG_MAP, ((DASHBOARD_VALUES, ""),)),
        ]

    async def sweep(self, reader: Reader) -> Sequence[str]:
        """Every name that is claimed or held, and every HelmChart and HelmRelease of ours."""
        system = self._config.helm_project_operator.system_namespace
        names: dict[str, None] = {}
        for found in await reader.list(PROJECT_HELM_CHART):
            key = ChartKey(found["metadata"]["namespace"], found["metadata"]["name"])
            names |= dict.fromkeys(self._names_for(key, found))
        for kind in (HELM_CHART, HELM_RELEASE):
            for found in await reader.list(kind, system):
                if held_by(found):
                    names[found["metadata"]["name"]] = None
        return [f"release/{name}" for name in names]


def _stage(names: Sequence[str]) -> Sequence[Sequence[str]]:
    owners = [f"release/{name}" for name in dict.fromkeys(names) if DNS_LABEL.fullmatch(name) or len(name) > 63]
    return [owners] if owners else []
