"""The wiring of registration namespaces: which kinds concern them, which owners an event leads to, and what a sweep reads.

A namespace that changes its project concerns the project that it was in, remembered in its label ``helm.cattle.io/projectId``,
before everything else: the memory is overwritten only after the old project has been put right, so a crash in between loses
nothing.  A namespace that remembers the project that it is in needs no run of that project, if this process has put it right
before: such are the echoes of our own labels, half of all events.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from namespace_registration.projects import observe, plan
from namespace_registration.projects.plan import Member, Project, SystemNamespace
from tenantry.engine.projects import hardening_lists
from tenantry.engine.reader import Reader
from tenantry.engine.snapshot import Prefetch
from tenantry.engine.unit import Handler, Owner, Stages, Unit
from tenantry.model import limits
from tenantry.model.config import Config
from tenantry.model.difference import owns
from tenantry.model.hardening import HARDENED_BY
from tenantry.model.identifiers import is_dns_label
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, NETWORK_POLICY, SERVICE_ACCOUNT, Key, Object, is_terminating, labels_of
from tenantry.model.names import OPERATED, PROJECT_ID
from tenantry.model.projects import (
    REGISTRATION_MANAGER,
    ChartFiles,
    is_made_for_release,
    place_of,
    project_id_problem,
    project_of_registration_name,
)
from tenantry.serving import Settings
from tenantry.serving.charts import chart_files

PROJECT, MEMBER, SYSTEM = "project", "namespace", "system"
"""Types of owners: a project with its registration namespace, the project label of one ordinary namespace, and the registration
namespace of single-namespace mode."""
NEW = "new projects"
"""The party of all projects that this process has not put right yet: however many come at once, a namespace that joins one of the
others, which takes one write where a new one takes ten, does not wait for them."""


class Projects(Unit):
    """The unit ``projects`` of namespace-registration."""

    name = "projects"
    kinds = readable = frozenset({NAMESPACE, CONFIG_MAP, SERVICE_ACCOUNT, NETWORK_POLICY})

    def __init__(self, config: Config, charts: tuple[ChartFiles, ...]) -> None:
        self._config = config
        self._charts = charts
        # Hints that save reads, and decide nothing: the projects that this process has put right, and a member of each.
        self._served = set[str]()
        self._members = dict[str, str]()
        single = "" if config.project_label else config.helm_project_operator.system_namespace
        self.handlers = {
            PROJECT: Handler[Project](
                observe=self._observe_project,
                plan=lambda project: plan.plan_project(project, charts, config),
                report=lambda project, refusals: plan.report_project(project, refusals, config),
                accepts=lambda owner: not single and not owner.namespace and not project_id_problem(owner.name),
                rests_on_reads=True,
                pause_s=0.25,  # its own writes come back as half a dozen events
                party=lambda owner: "" if owner.name in self._served else NEW,
                ended=self._ended,
            ),
            MEMBER: Handler[Member](
                observe=lambda owner, reader: observe.observe_member(owner.name, config, reader),
                plan=lambda member: plan.plan_member(member.namespace, config, member.registration),
                report=lambda member, refusals: plan.report_member(member.namespace, refusals, config),
                accepts=lambda owner: not single and not owner.namespace and is_dns_label(owner.name),
                rests_on_reads=True,
            ),
            SYSTEM: Handler[SystemNamespace](
                observe=lambda owner, reader: observe.observe_system(owner.name, charts, reader),
                plan=lambda system: plan.plan_system(system, charts),
                report=plan.report_system,
                accepts=lambda owner: owner == Owner(SYSTEM, single),
                rests_on_reads=True,
            ),
        }
        self._inside = {
            CONFIG_MAP.kind: frozenset(chart.config_map_name for chart in charts),
            **{kind.kind: frozenset({name}) for kind, name in HARDENED_BY.items()},
        }

    async def _observe_project(self, owner: Owner, reader: Reader) -> Project:
        member = self._members.get(owner.name, "")
        project = await observe.observe_project(owner.name, self._charts, member, self._config, reader)
        if len(self._members) > limits.REMEMBERED:
            self._members.clear()
        if project.members:
            self._members[project.id] = project.members[0]["metadata"]["name"]
        return project

    def _ended(self, owner: Owner, succeeded: bool) -> None:
        if len(self._served) > limits.REMEMBERED:
            self._served.clear()
        if succeeded:
            self._served.add(owner.name)
        else:
            self._served.discard(owner.name)

    async def owners(self, key: Key, hint: Mapping[str, str], reader: Reader) -> Stages:
        """The projects and the namespace that a key concerns; the project that was left comes first."""
        if not self._config.project_label:
            return self._single_namespace_owners(key)
        if key.kind == NAMESPACE.kind:
            return self._namespace_owners(key.name, await reader.get(NAMESPACE, key.name), hint, self._served)
        project = project_of_registration_name(key.namespace)
        return [[Owner(PROJECT, project)]] if project and key.name in self._inside[key.kind] else []

    def _single_namespace_owners(self, key: Key) -> Stages:
        system = self._config.helm_project_operator.system_namespace
        if key.kind == NAMESPACE.kind:
            concerned = key.name == system
        else:
            concerned = key.namespace == system and key.name in self._inside[CONFIG_MAP.kind]
        return [[Owner(SYSTEM, system)]] if concerned else []

    def _namespace_owners(self, name: str, namespace: Object | None, hint: Mapping[str, str], served: Container[str]) -> Stages:
        labels = hint if namespace is None else labels_of(namespace)
        named = project_of_registration_name(name)
        remembered, current = labels.get(PROJECT_ID, ""), labels.get(self._config.project_label, "")
        if namespace is not None:
            place = place_of(namespace, self._config)
            if place.is_a == "registration":
                return [[Owner(PROJECT, named)]]
            current = place.project if place.is_a == "ordinary" else ""
            if is_made_for_release(namespace) and not _we_remembered(namespace):
                remembered = ""  # whose release it is, and no memory
        left = [remembered] if remembered != current else []
        joined = [current, named]
        stages = [_projects(left), _projects(joined)]
        if namespace is not None and not is_terminating(namespace):
            if current in served and remembered == current and not named and _we_remembered(namespace):
                stages[1] = []  # nothing of the project changed with it
            stages[1] = [*stages[1], Owner(MEMBER, name)]
        return [each for each in stages if each]

    def prefetch(self) -> Sequence[Prefetch]:
        """All namespaces, and our objects in registration namespaces by name."""
        if not self._config.project_label:
            return []
        config_maps = (Prefetch(CONFIG_MAP, ((OPERATED, "true"),), chart.config_map_name) for chart in self._charts)
        return [Prefetch(NAMESPACE), *config_maps, *hardening_lists(self._config)]

    async def sweep(self, reader: Reader) -> Sequence[Owner]:
        """Every project that has, had or remembers a namespace, then every namespace."""
        if not self._config.project_label:
            return [Owner(SYSTEM, self._config.helm_project_operator.system_namespace)]
        found: dict[Owner, None] = {}
        for namespace in await reader.list(NAMESPACE):
            for owners in self._namespace_owners(namespace["metadata"]["name"], namespace, {}, served=()):
                found |= dict.fromkeys(owners)
        return sorted(found, key=lambda owner: owner.type != PROJECT)


def _projects(ids: Sequence[str]) -> list[Owner]:
    return [Owner(PROJECT, project) for project in dict.fromkeys(ids) if project and not project_id_problem(project)]


def _we_remembered(namespace: Object) -> bool:
    """Whether the memory is ours: one that a backup or a person brought says nothing about the project."""
    return owns(namespace, REGISTRATION_MANAGER, "metadata", "labels", PROJECT_ID)


def made(settings: Settings) -> Projects:
    """The unit of a process.

    Raises:
        ConfigError: a chart cannot be read.
    """
    return Projects(settings.config, chart_files(settings.config))
