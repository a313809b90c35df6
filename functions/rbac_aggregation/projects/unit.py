"""The wiring of releases: which kinds concern them, which owners an event leads to, and what a sweep reads.

Names say which release a namespace or a ProjectHelmChart is about, so an event needs no memory: a deleted Role or RoleBinding
concerns the release of its namespace, and in a registration namespace every release that is asked for there.  A
ClusterRoleBinding concerns all releases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from rbac_aggregation.projects import observe, plan
from rbac_aggregation.projects.claims import ReleaseKey, configured_release, possible_releases
from rbac_aggregation.projects.levels import kept_binding, level_roles
from rbac_aggregation.projects.seen import ObservedRights, is_ours, release_of
from tenantry.engine.last_runs import State
from tenantry.engine.reader import Reader
from tenantry.engine.snapshot import Prefetch
from tenantry.engine.unit import EVERY, Handler, Owner, Stages, Unit, stage
from tenantry.model.config import Config
from tenantry.model.identifiers import is_dns_label, is_dns_subdomain
from tenantry.model.kinds import CLUSTER_ROLE_BINDING, NAMESPACE, PROJECT_HELM_CHART, ROLE, ROLE_BINDING, Key, Kind
from tenantry.model.names import ROLE_OF
from tenantry.model.projects import may_be_home
from tenantry.model.releases import claimants
from tenantry.serving import Settings

RELEASE = "release"


class ReleaseRights(Unit):
    """The unit ``projects`` of rbac-aggregation."""

    name = "projects"
    kinds = frozenset({PROJECT_HELM_CHART, ROLE, ROLE_BINDING, CLUSTER_ROLE_BINDING})
    states: Mapping[Kind, State] = MappingProxyType({PROJECT_HELM_CHART: plan.state_of_chart})
    readable = frozenset({PROJECT_HELM_CHART})

    def __init__(self, config: Config) -> None:
        self._config = config
        self.handlers = {
            RELEASE: Handler[ObservedRights](
                observe=lambda owner, reader: observe.observe_release(ReleaseKey(owner.namespace, owner.name), config, reader),
                plan=lambda release: plan.plan_release(release, config),
                report=lambda release, refusals: plan.report_release(release, refusals, config),
                accepts=lambda owner: is_dns_label(owner.namespace) and is_dns_subdomain(owner.name),
                rests_on_reads=True,
                pause_s=0.25,  # an installation makes several Roles, and changes the status of its chart
            )
        }

    async def owners(self, key: Key, hint: Mapping[str, str], reader: Reader) -> Stages:
        """The releases that a key concerns; our own RoleBindings only when somebody else has touched them."""
        del hint
        if key.kind == CLUSTER_ROLE_BINDING.kind:
            return EVERY if level_roles(self._config) else []
        if key.kind == PROJECT_HELM_CHART.kind:
            releases = await self._asked_for_by(key, reader)
        else:
            releases = [*await self._installed_in(key, reader), *await self._asked_for_in(key.namespace, reader)]
        return stage(map(_owner, releases))

    async def _asked_for_by(self, key: Key, reader: Reader) -> list[ReleaseKey]:
        """The releases that a ProjectHelmChart asks for, or asked for before it was changed."""
        releases = possible_releases(key.namespace, key.name, self._config)
        live = await reader.get(PROJECT_HELM_CHART, key.name, key.namespace) if len(releases) > 1 else None
        now = configured_release(live, self._config) if live is not None else None
        if live is None or now is None:
            return releases
        before = (live.get("status") or {}).get("releaseName")
        return [release for release in releases if release == now or release.name == before]

    async def _installed_in(self, key: Key, reader: Reader) -> list[ReleaseKey]:
        """The release of a dedicated release namespace, by its name."""
        release = ReleaseKey(key.namespace, key.namespace)
        if not self._config.dedicated or not claimants(release.name, self._config):
            return []
        if key.kind == ROLE_BINDING.kind:
            live = await reader.get(ROLE_BINDING, key.name, key.namespace)
            if live is not None and plan.is_untouched(live):
                return []  # the echo of our own write
        return [release]

    async def _asked_for_in(self, namespace: str, reader: Reader) -> list[ReleaseKey]:
        if not may_be_home(namespace, self._config):
            return []
        charts = await reader.list_shared(PROJECT_HELM_CHART, namespace)
        return [release for chart in charts for release in possible_releases(namespace, chart["metadata"]["name"], self._config)]

    def prefetch(self) -> Sequence[Prefetch]:
        """Everything that names people, asks for a release, or is in its namespace."""
        return [
            Prefetch(PROJECT_HELM_CHART),
            Prefetch(NAMESPACE),
            Prefetch(ROLE, ((ROLE_OF, ""),)),
            Prefetch(ROLE_BINDING, keep=kept_binding(self._config)),
            Prefetch(CLUSTER_ROLE_BINDING),
        ]

    async def sweep(self, reader: Reader) -> Sequence[Owner]:
        """Every release that is asked for, and every one that has a binding of ours."""
        owners: list[Owner] = []
        for chart in await reader.list(PROJECT_HELM_CHART):
            possible = possible_releases(chart["metadata"]["namespace"], chart["metadata"]["name"], self._config)
            release = configured_release(chart, self._config)
            owners += map(_owner, [release] if release in possible else possible)
        for binding in await reader.list(ROLE_BINDING):
            name = release_of(binding, self._config) if is_ours(binding) else ""
            owner = _owner(ReleaseKey(binding["metadata"]["namespace"], name))
            if name and self.accepts(owner):
                owners.append(owner)
        return list(dict.fromkeys(owners))


def _owner(release: ReleaseKey) -> Owner:
    return Owner(RELEASE, release.name, release.namespace)


def made(settings: Settings) -> ReleaseRights:
    """The unit of a process."""
    return ReleaseRights(settings.config)
