"""The wiring of projects: which kinds concern it, whom an event touches, and what a sweep looks at.

A namespace that changes its project concerns the project that it was in, remembered in its own label
``helm.cattle.io/projectId``, before everything else: the memory is overwritten only after the old project
has been put right, so a crash in between loses nothing.  A namespace that remembers the project that it is
in needs no look at that project, if this process has put it right before: such are the echoes of our own
labels, half of all events.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from namespace_registration.projects import observe, plan
from namespace_registration.projects.plan import Member, Project, SystemNamespace
from tenantry.engine.reader import Prefetch, Reader
from tenantry.model import limits
from tenantry.model.config import Config
from tenantry.model.difference import owns
from tenantry.model.identifiers import is_dns_label
from tenantry.model.kinds import (
    CONFIG_MAP,
    NAMESPACE,
    NETWORK_POLICY,
    SERVICE_ACCOUNT,
    Key,
    Object,
    is_terminating,
    labels_of,
)
from tenantry.model.names import DEFAULT_SERVICE_ACCOUNT, HARDENING_POLICY, OPERATED, PROJECT_ID
from tenantry.model.plan import Plan, Refusal
from tenantry.model.projects import (
    REGISTRATION_MANAGER,
    ChartFiles,
    is_made_for_release,
    place_of,
    project_id_problem,
    project_of_registration_name,
)

PROJECT_PAUSE_S = 0.25

Seen = Project | Member | SystemNamespace


class Projects:
    """The unit ``projects`` of namespace-registration."""

    name = "projects"
    kinds = frozenset({NAMESPACE, CONFIG_MAP, SERVICE_ACCOUNT, NETWORK_POLICY})

    def __init__(self, config: Config, charts: tuple[ChartFiles, ...]) -> None:
        self._config = config
        self._charts = charts
        self._witness: dict[str, str] = {}
        self._served: set[str] = set()
        self._inside = {
            CONFIG_MAP.kind: frozenset(chart.config_map_name for chart in charts),
            SERVICE_ACCOUNT.kind: frozenset({DEFAULT_SERVICE_ACCOUNT}),
            NETWORK_POLICY.kind: frozenset({HARDENING_POLICY}),
        }

    async def owners(self, key: Key, hint: Mapping[str, str], reader: Reader) -> Sequence[Sequence[str]]:
        """The projects and the namespace that a key concerns; the project that was left comes first."""
        if not self._config.project_label:
            return self._single_namespace_owners(key)
        if key.kind == NAMESPACE.kind:
            return self._namespace_owners(key.name, await reader.get(NAMESPACE, key.name), hint, self._served)
        project = project_of_registration_name(key.namespace)
        return [[f"project/{project}"]] if project and key.name in self._inside[key.kind] else []

    def _single_namespace_owners(self, key: Key) -> Sequence[Sequence[str]]:
        system = self._config.helm_project_operator.system_namespace
        if key.kind == NAMESPACE.kind:
            concerned = key.name == system
        else:
            concerned = key.namespace == system and key.name in self._inside[CONFIG_MAP.kind]
        return [[f"system/{system}"]] if concerned else []

    def _namespace_owners(
        self, name: str, namespace: Object | None, hint: Mapping[str, str], served: Container[str]
    ) -> Sequence[Sequence[str]]:
        labels = hint if namespace is None else labels_of(namespace)
        named = project_of_registration_name(name)
        remembered, current = labels.get(PROJECT_ID, ""), labels.get(self._config.project_label, "")
        if namespace is not None:
            place = place_of(namespace, self._config)
            if place.is_a == "registration":
                return [[f"project/{named}"]]
            current = place.project if place.is_a == "ordinary" else ""
            if is_made_for_release(namespace) and not _we_remembered(namespace):
                remembered = ""  # whose release it is, and no memory
        left = [remembered] if remembered != current else []
        joined = [current, named]
        stages = [self._projects(left), self._projects(joined)]
        if namespace is not None and not is_terminating(namespace):
            if current in served and remembered == current and not named and _we_remembered(namespace):
                stages[1] = []  # nothing of the project changed with it
            stages[1] = [*stages[1], f"namespace/{name}"]
        return [stage for stage in stages if stage]

    def _projects(self, ids: Sequence[str]) -> list[str]:
        return [f"project/{project}" for project in dict.fromkeys(ids) if project and not project_id_problem(project)]

    def accepts(self, owner: str) -> bool:
        """Whether the owner is one of ours: ``project/<id>``, ``namespace/<name>`` or ``system/<name>``."""
        kind, _, name = owner.partition("/")
        if not self._config.project_label:
            return owner == f"system/{self._config.helm_project_operator.system_namespace}"
        if kind == "project":
            return not project_id_problem(name)
        return kind == "namespace" and is_dns_label(name)

    def pause_s(self, owner: str) -> float:
        """A project pauses after a run: its own writes come back as half a dozen events."""
        return PROJECT_PAUSE_S if owner.startswith("project/") else 0.0

    async def observe(self, owner: str, reader: Reader) -> Seen:
        """Read what the owner's plan needs."""
        kind, _, name = owner.partition("/")
        if kind == "project":
            seen = await observe.observe_project(name, self._charts, self._witness.get(name, ""), self._config, reader)
            self._remember_witness(seen)
            return seen
        if kind == "system":
            return await observe.observe_system(name, self._charts, reader)
        return await observe.observe_member(name, reader)

    def ended(self, owner: str, succeeded: bool) -> None:
        """Keep in mind which projects this process has put right."""
        kind, _, name = owner.partition("/")
        if kind == "project" and succeeded:
            if len(self._served) > limits.REMEMBERED:
                self._served.clear()
            self._served.add(name)
        elif kind == "project":
            self._served.discard(name)

    def _remember_witness(self, seen: Project) -> None:
        """Keep the name of one member: a hint where to look next time, and nothing that decides."""
        if len(self._witness) > limits.REMEMBERED:
            self._witness.clear()
        if seen.members:
            self._witness[seen.id] = seen.members[0]["metadata"]["name"]

    def plan(self, observed: Seen) -> Plan:
        """The writes that make it as declared."""
        match observed:
            case Project():
                return plan.plan_project(observed, self._charts, self._config)
            case SystemNamespace():
                return plan.plan_system(observed, self._charts)
            case Member():
                return plan.plan_member(observed, self._config)

    def report(self, observed: Seen, refusals: Sequence[Refusal]) -> Plan:
        """Conditions and Events for what could not be done."""
        match observed:
            case Project():
                return plan.report_project(observed, refusals, self._config)
            case SystemNamespace():
                return plan.report_system(observed, refusals)
            case Member():
                return plan.report_member(observed, refusals, self._config)

    def prefetch(self) -> Sequence[Prefetch]:
        """All namespaces, and our objects in registration namespaces by name."""
        if not self._config.project_label:
            return []
        ours = ((OPERATED, "true"),)
        lists = [Prefetch(NAMESPACE)]
        lists += [Prefetch(CONFIG_MAP, ours, chart.config_map_name) for chart in self._charts]
        if self._config.helm_project_operator.hardened_namespaces.enabled:
            lists.append(Prefetch(SERVICE_ACCOUNT, ours, DEFAULT_SERVICE_ACCOUNT))
            lists.append(Prefetch(NETWORK_POLICY, ours, HARDENING_POLICY))
        return lists

    async def sweep(self, reader: Reader) -> Sequence[str]:
        """Every project that has, had or remembers a namespace, then every namespace."""
        if not self._config.project_label:
            return [f"system/{self._config.helm_project_operator.system_namespace}"]
        owners: dict[str, None] = {}
        members: dict[str, None] = {}
        for namespace in await reader.list(NAMESPACE):
            name = namespace["metadata"]["name"]
            for stage in self._namespace_owners(name, namespace, {}, served=()):
                for owner in stage:
                    (owners if owner.startswith("project/") else members)[owner] = None
        return [*owners, *members]


def _we_remembered(namespace: Object) -> bool:
    """Whether the memory is ours: one that a backup or a person brought says nothing about the project."""
    return owns(namespace, REGISTRATION_MANAGER, "metadata", "labels", PROJECT_ID)
