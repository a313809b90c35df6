"""What is known of the rights of a Paas, and what follows from it alone: who is bound to what, in which of its namespaces."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rbac_aggregation import NAME
from rbac_aggregation.paas.claims import Claim
from tenantry.model.conditions import find_condition
from tenantry.model.difference import entries_of
from tenantry.model.kinds import ROLE_BINDING, Key, Object, declared, finalizers_of, is_terminating, key_in
from tenantry.model.names import field_manager
from tenantry.model.paas.config import PaasConfig
from tenantry.model.paas.declared import Paas, PaasNs
from tenantry.model.paas.groups import SYSTEM_PREFIX, cluster_roles, name_problem
from tenantry.model.paas.names import (
    ACCOUNT_BINDING_PREFIX,
    NAMESPACES_PART,
    RIGHTS_FINALIZER,
    RIGHTS_PART,
    WARNINGS,
    binding_name,
)
from tenantry.model.paas.ours import is_ours
from tenantry.model.paas.places import PaasPlace
from tenantry.model.paas.status import as_told

MANAGER = f"{field_manager(NAME)}-paas"
"""The field manager: it is not that of rights in releases, which write RoleBindings too."""
RBAC = "rbac.authorization.k8s.io"


class WantedBinding(NamedTuple):
    """A RoleBinding as it is to be; ``subjects`` sorted, each once (p-71)."""

    role: str
    subjects: tuple[Object, ...]


class Policy(NamedTuple):
    """Where the policy of a Paas' Argo CD is: the object of Argo CD's operator, or a ConfigMap where that is not served."""

    namespace: str
    operated: bool
    live: Object | None


@dataclass(frozen=True, slots=True)
class Seen:
    """One Paas as observed, or what of it lies in one namespace (``part``); without ``paas`` only ``orphans``.

    ``wanted`` are the namespaces that its spec asks for, ``held`` those that are its own, and ``places`` what those are wanted
    for: one that nothing wants is not in there.  ``bindings`` are those that are its own, anywhere, and ``foreign`` the keys of
    others that have a name of ours in a namespace of the Paas.
    """

    name: str
    paas: Paas | None
    config: PaasConfig | None = None
    wanted: Mapping[str, PaasPlace] = field(default_factory=dict)
    held: Mapping[str, Object] = field(default_factory=dict)
    places: Mapping[str, PaasPlace] = field(default_factory=dict)
    asked: Mapping[str, PaasNs] = field(default_factory=dict)
    claims: Mapping[str, Claim] = field(default_factory=dict)
    groups: Mapping[str, Object | None] = field(default_factory=dict)
    served: bool = False
    bindings: tuple[Object, ...] = ()
    foreign: frozenset[Key] = frozenset()
    missing: frozenset[str] = frozenset()
    """ClusterRoles that are bound and do not exist."""
    policy: Policy | None = None
    orphans: tuple[Object, ...] = ()
    """RoleBindings and Groups with the name of the Paas that are marked for one that exists no more (2.12)."""
    part: str = ""
    odd: frozenset[str] = frozenset()
    """Namespaces with bindings that lack our label, or others' that have a name of ours, or with conditions to be taken back."""


def rights_of(seen: Seen) -> dict[Key, WantedBinding]:
    """The RoleBindings that the declarations ask for, by key, in the namespaces that were looked at (2.4, 2.5)."""
    if seen.paas is None or seen.paas.deleted or seen.config is None:
        return {}
    found: dict[Key, dict[tuple[str, str], Object]] = {}
    roles: dict[Key, str] = {}
    for place in seen.places.values():
        for name in keys_in(place, seen.paas):
            for role in cluster_roles(seen.paas.groups[name], seen.config):
                key = key_in(ROLE_BINDING, binding_name(role), place.name)
                roles[key] = role
                found.setdefault(key, {}).update(subjects_of(seen, name))
    return {
        key: WantedBinding(roles[key], tuple(subjects[each] for each in sorted(subjects)))
        for key, subjects in found.items()
        if subjects
    }


def keys_in(place: PaasPlace, paas: Paas) -> Sequence[str]:
    """The keys of groups that apply in a namespace: those that it is restricted to and that the Paas has, or all."""
    return [key for key in paas.groups if place.groups is None or key in place.groups]


def bound_roles(seen: Seen) -> frozenset[str]:
    """The ClusterRoles that are to be bound somewhere."""
    return frozenset(wanted.role for wanted in rights_of(seen).values())


def unknown_keys(groups: Iterable[str] | None, paas: Paas) -> tuple[str, ...]:
    """The keys that a namespace is restricted to and that the Paas does not have (p-40, p-41)."""
    return tuple(sorted({key for key in groups or () if key not in paas.groups}))


def subjects_of(seen: Seen, key: str) -> dict[tuple[str, str], Object]:
    """The subjects that stand for a group; none while nothing may name it."""
    claim = seen.claims.get(key)
    if claim is None or not claim.bound or seen.paas is None:
        return {}
    users = seen.paas.groups[key].users if by_users(seen) and claim.generated else ()
    names = [("User", user) for user in users if not name_problem(user)] if users else [("Group", claim.name)]
    return {(kind, name): {"apiGroup": RBAC, "kind": kind, "name": name} for kind, name in names}


def by_users(seen: Seen) -> bool:
    """Whether users are bound in place of groups that nobody would know (2.3)."""
    return not seen.served and seen.config is not None and seen.config.group_fallback == "Users"


def user_problem(user: str, *, bound: bool) -> str:
    """Why a user is left out of a group, or of bindings where users are bound themselves."""
    return name_problem(user if bound else user.removeprefix(SYSTEM_PREFIX) or user)


def members_of(seen: Seen, key: str) -> list[str]:
    """The users that a Group object has, in the order in which they are declared."""
    users = seen.paas.groups[key].users if seen.paas is not None else ()
    return [user for user in users if not user_problem(user, bound=False)]


def ours_among(bindings: Iterable[Object], paas: Paas) -> tuple[Object, ...]:
    """Those for groups that are proven to be made for the Paas, whether they are on their way out or not."""
    return tuple(each for each in bindings if is_ours(each, paas.name, paas.uid) and not is_for_accounts(each))


def is_for_accounts(binding: Object) -> bool:
    """Whether a RoleBinding is one of those for service accounts, which scope-binding makes (2.7)."""
    return bool(binding["metadata"]["name"] == ACCOUNT_BINDING_PREFIX + binding.get("roleRef", {}).get("name", ""))


def is_left(seen: Seen, asked: PaasNs) -> bool:
    """Whether a PaasNS has a condition of ours although no namespace is there for it."""
    used = any(place.asked_by == asked.key for place in seen.places.values())
    return not used and bool(entries_of(asked.live, MANAGER, "status"))


def is_pending(seen: Seen) -> bool:
    """Whether Groups are still to be made, so that the run goes on after that, and says nothing before."""
    return any(claim.wants_object and not claim.bound for claim in seen.claims.values())


def waits(seen: Seen) -> bool:
    """Whether namespaces of the spec are not there, and namespace-registration has not said anything about this generation yet.

    Then nothing is reported: a part that speaks first would say that all is done.
    """
    if seen.paas is None or all(name in seen.held for name in seen.wanted):
        return False
    told = find_condition(seen.paas.live, NAMESPACES_PART) or {}
    return told.get("observedGeneration") != seen.paas.generation


def is_well(live: Object) -> bool:
    """Whether all rights of a Paas are there, by its condition: then a run of a part is enough."""
    told = find_condition(live, RIGHTS_PART) or {}
    return told.get("status") == "True" and told.get("observedGeneration") == live["metadata"].get("generation")


def version_of(live: Object | None) -> Hashable:
    """What of a declaration decides: which one it is, its spec, its labels, and whether its deletion was asked for."""
    return live is not None and declared(live)


def state_of(live: Object) -> Hashable:
    """What of a Paas or a PaasNS the decisions rest on: what it declares, our finalizer, and what was told."""
    told = as_told(live, (NAMESPACES_PART, RIGHTS_PART, f"{RIGHTS_PART}{WARNINGS}"))
    return declared(live), RIGHTS_FINALIZER in finalizers_of(live), is_terminating(live), told
