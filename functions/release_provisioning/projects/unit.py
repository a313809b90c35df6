"""The wiring of releases: whom an event touches, and what a sweep looks at.

The owner is ``release/<name>``, or ``unserved/<namespace>/<name>`` for a ProjectHelmChart that nobody serves.  A namespace
concerns every release of the project that it is in or was in.
The label that remembers the last project is overwritten by another function, maybe before we look: so the
labels in the event count as well as those that are live, and an event without labels asks which releases list
the namespace among their targets.  All of that only adds owners; what they get is decided by live reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from release_provisioning.archives import chart_contents
from release_provisioning.kept import SweptCharts, digests_of
from release_provisioning.projects.dashboards import KeptDashboards
from release_provisioning.projects.observe import observe_release, observe_unserved
from release_provisioning.projects.plan import plan_release
from release_provisioning.projects.report import report_release
from release_provisioning.projects.seen import ObservedRelease, state_of_made, state_of_namespace, was_served
from release_provisioning.projects.texts import Texts
from release_provisioning.projects.unserved import Asked, is_unserved, report_unserved
from tenantry.engine.projects import hardening_lists
from tenantry.engine.reader import Reader
from tenantry.engine.snapshot import Prefetch
from tenantry.engine.unit import Handler, Owner, Stages, Unit, stage
from tenantry.model import limits
from tenantry.model.config import Config
from tenantry.model.difference import owns
from tenantry.model.hardening import HARDENED_BY
from tenantry.model.identifiers import is_dns_label, is_dns_subdomain
from tenantry.model.kinds import (
    CONFIG_MAP,
    HELM_CHART,
    HELM_RELEASE,
    NAMESPACE,
    NETWORK_POLICY,
    PROJECT_HELM_CHART,
    SERVICE_ACCOUNT,
    Key,
    Object,
    annotations_of,
    finalizers_of,
    is_terminating,
    labels_of,
)
from tenantry.model.names import (
    DASHBOARD_VALUES,
    OPERATED,
    PROJECT_CHART,
    PROJECT_ID,
    RELEASE_FINALIZER,
)
from tenantry.model.projects import (
    RELEASE_MANAGER,
    is_registration,
    may_be_home,
    place_of,
    project_id_problem,
    project_of_registration_name,
    registration_name,
)
from tenantry.model.releases import (
    ChartKey,
    chart_for,
    chart_key,
    claimants,
    header_of,
    held_by,
    is_release_name,
    possible_names,
    release_name,
)
from tenantry.serving import Settings
from tenantry.serving.charts import chart_files

RELEASE_PAUSE_S = 0.25
"""Namespace, HelmChart, HelmRelease and status come back as events."""
RELEASE, UNSERVED = "release", "unserved"
"""Types of owners: a release by its name, and a ProjectHelmChart that nobody serves, which only gets a Warning."""
_digests = partial(digests_of, part="spec")


class Releases(Unit):
    """The unit ``projects`` of release-provisioning.

    ``contents`` has the archive of every embedded chart by its helmApiVersion, in base64.
    """

    name = "projects"
    kinds = frozenset({PROJECT_HELM_CHART, NAMESPACE, HELM_CHART, HELM_RELEASE, CONFIG_MAP, SERVICE_ACCOUNT, NETWORK_POLICY})
    readable = frozenset({NAMESPACE, PROJECT_HELM_CHART, HELM_CHART, HELM_RELEASE, SERVICE_ACCOUNT, NETWORK_POLICY})

    def __init__(self, config: Config, contents: Mapping[str, str]) -> None:
        self._config = config
        self.states = {
            NAMESPACE: lambda found: state_of_namespace(found, config),
            HELM_CHART: state_of_made,
            HELM_RELEASE: state_of_made,
        }
        self._system = config.helm_project_operator.system_namespace
        self._dedicated = config.dedicated
        texts = Texts()
        self.handlers = {
            RELEASE: Handler[ObservedRelease](
                observe=lambda owner, reader: observe_release(owner.name, config, reader, texts),
                plan=lambda release: plan_release(release, contents, config),
                report=lambda release, refusals: report_release(release, refusals, config),
                accepts=lambda owner: not owner.namespace and is_release_name(owner.name),
                pause_s=RELEASE_PAUSE_S,
                rests_on_reads=True,
            ),
            UNSERVED: Handler[Asked](
                observe=lambda owner, reader: observe_unserved(ChartKey(owner.namespace, owner.name), config, reader),
                report=lambda asked, _: report_unserved(asked, config),
                accepts=lambda owner: is_dns_label(owner.namespace) and is_dns_subdomain(owner.name),
                pause_s=RELEASE_PAUSE_S,
                rests_on_reads=True,
            ),
        }

    # -- whom an event touches -----------------------------------------------------------------------------

    async def owners(self, key: Key, hint: Mapping[str, str], reader: Reader) -> Stages:
        """The releases that a key concerns."""
        if key.kind == PROJECT_HELM_CHART.kind:
            found = await reader.get(PROJECT_HELM_CHART, key.name, key.namespace)
            asked = ChartKey(key.namespace, key.name)
            stages = _releases(self._names_of(asked, found))
            return [*stages, [_unserved(asked)]] if is_unserved(found, self._config) else stages
        if key.kind in (HELM_CHART.kind, HELM_RELEASE.kind):
            return _releases([key.name]) if key.namespace == self._system else []
        if key.kind == NAMESPACE.kind:
            return _releases(await self._around(key.name, hint, reader))
        concerned = key.kind == CONFIG_MAP.kind or key.name in HARDENED_BY.values()
        if self._dedicated:
            return _releases([key.namespace]) if concerned and claimants(key.namespace, self._config) else []
        return _releases(await self._asked_in(key.namespace, reader)) if key.kind == CONFIG_MAP.kind else []

    def _names_of(self, key: ChartKey, found: Object | None) -> list[str]:
        """The names that a ProjectHelmChart asks for and has; when it is being deleted, or is deleted, all that it may have had.

        None where nobody serves it or ever did: who may have ProjectHelmCharts in some namespace could make thousands (a-19).
        """
        if not may_be_home(key.namespace, self._config) and (found is None or not was_served(found)):
            return []
        chart = chart_for(found, self._config) if found is not None else None
        held = ((found or {}).get("status") or {}).get("releaseName")
        names = [held] if isinstance(held, str) and held else []
        if chart is not None:
            names.append(release_name(key, chart))
        if found is None or is_terminating(found) or (chart is None and RELEASE_FINALIZER in finalizers_of(found)):
            names += possible_names(key, self._config)
        return names

    async def _around(self, name: str, hint: Mapping[str, str], reader: Reader) -> list[str]:
        """The releases of a namespace: one that lives in it, and those of the projects that it is or was in."""
        if not self._config.project_label:
            return await self._asked_in(self._system, reader)
        if await reader.all_shared(PROJECT_HELM_CHART) == []:
            # Nobody asks for anything: only a namespace that was made for a release can concern one; it says so, or is called so.
            plain = bool(hint) and OPERATED not in hint and not claimants(name, self._config)
            if plain or not self._dedicated:
                return []
        namespace = await reader.get(NAMESPACE, name)
        live = labels_of(namespace)
        ours = (OPERATED in live or OPERATED in hint) and (namespace is None or not is_registration(namespace, self._config))
        own = self._dedicated and (ours or bool(claimants(name, self._config)))
        names = [name] if own else []
        if project_of_registration_name(name):
            names += await self._asked_in(name, reader)
        is_a = place_of(namespace, self._config).is_a if namespace is not None else "ordinary"
        if is_a in ("release", "registration") or (namespace is None and OPERATED in hint):
            return names
        projects = [labels.get(label, "") for labels in (hint, live) for label in (PROJECT_ID, self._config.project_label)]
        for project in dict.fromkeys(projects):
            if project and not project_id_problem(project):
                names += await self._asked_in(registration_name(project), reader)
        if not hint:
            # Releases that have the namespace among their targets, by the status of their ProjectHelmCharts.
            asked = await reader.list_shared(PROJECT_HELM_CHART, keep=header_of)
            names += self._names_of_all(
                each for each in asked if name in ((each.get("status") or {}).get("targetNamespaces") or ())
            )
        return names

    async def _asked_in(self, namespace: str, reader: Reader) -> list[str]:
        return self._names_of_all(await reader.list_shared(PROJECT_HELM_CHART, namespace, keep=header_of))

    def _names_of_all(self, found: Iterable[Object]) -> list[str]:
        return [name for each in found for name in self._names_of(chart_key(each), each)]

    # -- the sweep -----------------------------------------------------------------------------------------

    def prefetch(self) -> Sequence[Prefetch]:
        """All ProjectHelmCharts and namespaces, HelmCharts and HelmReleases, dashboards, hardening."""
        return [
            *(hardening_lists(self._config) if self._dedicated else ()),
            Prefetch(PROJECT_HELM_CHART, keep=SweptCharts()),
            Prefetch(NAMESPACE),
            Prefetch(HELM_CHART, namespace=self._system, keep=_digests),
            Prefetch(HELM_RELEASE, namespace=self._system),
            Prefetch(CONFIG_MAP, ((DASHBOARD_VALUES, ""),), keep=KeptDashboards(self._may_show, limits.SWEEP_DASHBOARD_BYTES)),
        ]

    def _may_show(self, namespace: str, release: str) -> bool:
        """Whether a ConfigMap there can be of a release of that name."""
        if self._dedicated:
            return namespace == release and bool(claimants(release, self._config))
        return namespace == self._system or bool(project_of_registration_name(namespace))

    async def sweep(self, reader: Reader) -> Sequence[Owner]:
        """Every name that is asked for or held, and what was made for a ProjectHelmChart, even a deleted one."""
        asked = await reader.list(PROJECT_HELM_CHART)
        names = self._names_of_all(asked)
        unserved = [_unserved(chart_key(found)) for found in asked if is_unserved(found, self._config)]
        for kind in (HELM_CHART, HELM_RELEASE):
            made = await reader.list(kind, self._system)
            names += [found["metadata"]["name"] for found in made if held_by(found) or owns(found, RELEASE_MANAGER, "spec")]
        if self._dedicated:
            namespaces = await reader.list(NAMESPACE)
            names += [found["metadata"]["name"] for found in namespaces if PROJECT_CHART in annotations_of(found)]
        return [*(owner for owners in _releases(names) for owner in owners), *unserved]


def _unserved(key: ChartKey) -> Owner:
    return Owner(UNSERVED, key.name, key.namespace)


def _releases(names: Sequence[str]) -> list[list[Owner]]:
    return stage(Owner(RELEASE, name) for name in names if is_release_name(name))


def made(settings: Settings) -> Releases:
    """The unit of a process.

    Raises:
        ConfigError: a chart cannot be read, or is none: that is said here, before Helm meets it.
    """
    chart_files(settings.config)
    return Releases(settings.config, chart_contents(settings.config))
