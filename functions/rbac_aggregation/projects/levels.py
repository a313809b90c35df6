"""Who has a level: the ClusterRole that it is taken from, and the people whom bindings name for it.

Which ClusterRole that is stands in one line of the configuration.  A mistake there names nobody, and would take a level from
all projects; so where nobody of a project has the other ClusterRole, what is bound stays until that is accepted (decision 30).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rbac_aggregation.projects.seen import MANAGER, RBAC_GROUP, ObservedRights, is_ours, release_of
from tenantry.model import limits
from tenantry.model.config import Config
from tenantry.model.difference import owns
from tenantry.model.identifiers import digest
from tenantry.model.kinds import CLUSTER_ROLE, Object, annotations_of, labels_of
from tenantry.model.names import AGGREGATE_FROM, LEVEL_TAKEN_FROM, WITHDRAWAL_ACCEPTED
from tenantry.model.projects import may_be_home

ADMIN = "admin"
PEOPLE = frozenset({"User", "Group"})

Subjects = tuple[tuple[str, str], ...]
"""Kind and name of each subject, sorted."""


@dataclass(frozen=True, slots=True)
class Level:
    """The people of a level, and the ClusterRole that they are taken from; ``waiting``: another that the configuration names."""

    cluster_role: str
    people: Subjects
    waiting: str = ""


def level_roles(config: Config) -> Mapping[str, str]:
    """The levels that are on, and the ClusterRole of each."""
    settings = config.helm_project_operator.release_role_bindings
    if not settings.aggregate:
        return {}
    refs = settings.cluster_role_refs
    return {level: name for level, name in ((ADMIN, refs.admin), ("edit", refs.edit), ("view", refs.view)) if name}


def levels_in_use(roles: Sequence[Object], config: Config) -> frozenset[str]:
    """The levels that are on and that some Role asks for."""
    return frozenset(labels_of(role).get(AGGREGATE_FROM, "") for role in roles) & level_roles(config).keys()


def people_of(cluster_role: str, sources: Sequence[Object]) -> Subjects:
    """The Users and Groups that bindings name for a ClusterRole, each once, by kind and name (hpo-60, hpo-65, D2, D5)."""
    found = set()
    for binding in sources:
        reference = binding.get("roleRef") or {}
        if (reference.get("kind"), reference.get("name")) != (CLUSTER_ROLE.kind, cluster_role):
            continue
        if reference.get("apiGroup") != RBAC_GROUP:
            continue
        for subject in binding.get("subjects") or ():
            if subject.get("kind") in PEOPLE and subject.get("apiGroup") == RBAC_GROUP:
                found.add((subject["kind"], subject["name"]))
    return tuple(sorted(found))


def kept_binding(config: Config) -> Callable[[Object], Object]:
    """What of a RoleBinding is kept: whom it binds only where that can count, and no more people than can be bound (a-19)."""
    counted = frozenset(level_roles(config).values())

    def kept(binding: Object) -> Object:
        reference, subjects = binding.get("roleRef") or {}, binding.get("subjects") or ()
        if is_ours(binding) or len(subjects) == 0:
            return binding
        named = reference.get("kind") == CLUSTER_ROLE.kind
        if not named or not (reference["name"] in counted or may_be_home(binding["metadata"]["namespace"], config)):
            return {**binding, "metadata": {**binding["metadata"], "managedFields": []}, "subjects": []}
        if len(subjects) <= limits.PEOPLE:
            return binding
        people = people_of(reference["name"], [binding])[: limits.PEOPLE + 1]
        return {**binding, "subjects": [{"kind": kind, "name": name, "apiGroup": RBAC_GROUP} for kind, name in people]}

    return kept


def levels_of(seen: ObservedRights, config: Config) -> dict[str, Level]:
    """The levels that Roles of a release ask for, with the ClusterRole and the people of each."""
    named = level_roles(config)
    return {level: _level(level, named[level], seen, config) for level in levels_in_use(seen.roles, config)}


def _level(level: str, configured: str, seen: ObservedRights, config: Config) -> Level:
    """A level by the configuration, or by what is bound where nobody has the ClusterRole that the configuration names now.

    That one does not exist, or the project would be left without an administrator.
    """
    people = people_of(configured, seen.sources)
    if people or seen.claim is None or (level != ADMIN and configured not in seen.missing):
        return Level(configured, people)
    earlier = sorted(_bound_from(level, seen, config))
    if not earlier or configured in earlier or is_accepted(seen.claim.chart, config):
        return Level(configured, people)
    kept = people_of(earlier[0], seen.sources)
    return Level(earlier[0], kept, configured) if kept else Level(configured, people)


def _bound_from(level: str, seen: ObservedRights, config: Config) -> Iterator[str]:
    """The ClusterRoles whose people the RoleBindings of a level have."""
    for binding in seen.bindings:
        found, cluster_role = taken_from(binding)
        if cluster_role and found == level and release_of(binding, config) == seen.release.name:
            yield cluster_role


def taken_from(binding: Object) -> tuple[str, str]:
    """The level of a RoleBinding of ours and the ClusterRole that it was taken from; empty where we did not write so."""
    if not owns(binding, MANAGER, "metadata", "annotations", LEVEL_TAKEN_FROM):
        return "", ""
    level, _, cluster_role = annotations_of(binding).get(LEVEL_TAKEN_FROM, "").partition("=")
    return level, cluster_role


def is_accepted(chart: Object, config: Config) -> bool:
    """Whether somebody accepts on a ProjectHelmChart that the levels go by the ClusterRoles of this configuration."""
    return annotations_of(chart).get(WITHDRAWAL_ACCEPTED) == change_digest(chart, config)


def change_digest(chart: Object, config: Config) -> str:
    """What is accepted: that the levels of this ProjectHelmChart go by these ClusterRoles, and by no later ones."""
    return digest(chart["metadata"]["uid"], dict(level_roles(config)), length=10)
