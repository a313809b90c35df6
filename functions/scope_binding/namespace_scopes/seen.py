"""What one run observes: everything around the NamespaceScopes of one namespace, as a frozen value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scope_binding.namespace_scopes.declared import Scope, age_of
from scope_binding.namespace_scopes.grants import ProjectedRights, RolePlace
from scope_binding.namespace_scopes.names import FROM_LABEL, MANAGER, OWNERSHIP_LABEL, may_be_ours
from tenantry.model.difference import entries_of
from tenantry.model.kinds import Object, is_terminating, labels_of

Consents = Mapping[str, tuple[Object | None, Object | None]]
"""The Role and the RoleBinding of a consent, by member."""


@dataclass(frozen=True, slots=True)
class SourceRole:
    """A role that an account has in its own namespace; ``rules`` None: there is no such role.

    ``excess`` is the limit that its rules are over: then there are none here.
    """

    name: str
    rules: tuple[Object, ...] | None
    excess: str = ""


@dataclass(frozen=True, slots=True)
class HomeRoles:
    """The roles at home by account: those that are copied, and the names of those that are too many."""

    copied: Mapping[str, tuple[SourceRole, ...]] = field(default_factory=dict)
    surplus: Mapping[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ObservedHome:
    """The namespace ``name`` with its NamespaceScopes, their members, and what we keep for them.

    ``roles`` and ``bindings`` are those in members that carry our
    label or have a name that is wanted.  ``clashes`` are (scope name, member) for which another namespace has a
    NamespaceScope too.  ``overdue`` are deleted NamespaceScopes whose finalizer must not wait any longer.
    ``denied`` holds by (member, account) what an account with rights made by hand may not do, of what it may at home.
    ``surplus`` are NamespaceScopes that are not served, since there are too many, and whose status does not say so yet.
    ``home`` is the namespace itself.  ``projected`` are the rights that are wanted in members.  ``growing`` are the places
    whose Role is to get more, and ``others`` the RoleBindings of others that name a Role there.  ``kept`` are the rules that
    held Roles keep.  ``before`` are the rules that a Role had before it was filled, where others were bound to it before that.
    """

    name: str
    scopes: tuple[Scope, ...] = ()
    namespaces: Mapping[str, Object | None] = field(default_factory=dict)
    consents: Consents = field(default_factory=dict)
    config_maps: Mapping[str, Object] = field(default_factory=dict)
    pods: tuple[Object, ...] = ()
    workloads: tuple[Object, ...] = ()
    accounts: frozenset[str] = frozenset()
    home_roles: HomeRoles = field(default_factory=HomeRoles)
    roles: Mapping[RolePlace, Object] = field(default_factory=dict)
    bindings: Mapping[RolePlace, Object] = field(default_factory=dict)
    denied: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    clashes: frozenset[tuple[str, str]] = frozenset()
    overdue: frozenset[str] = frozenset()
    csvs: tuple[Object, ...] = ()
    webhooks: tuple[Object, ...] = ()
    home: Object | None = None
    growing: frozenset[RolePlace] = frozenset()
    others: Mapping[RolePlace, tuple[str, ...]] = field(default_factory=dict)
    before: Mapping[RolePlace, tuple[Object, ...]] = field(default_factory=dict)
    surplus: tuple[Object, ...] = ()
    kept: Mapping[RolePlace, list[Object]] = field(default_factory=dict)
    projected: ProjectedRights = field(default_factory=ProjectedRights)

    @property
    def live(self) -> tuple[Scope, ...]:
        """The NamespaceScopes that are there to stay, the oldest first."""
        return tuple(sorted((scope for scope in self.scopes if not scope.leaving), key=lambda scope: age_of(scope.live)))

    def is_member(self, name: str) -> bool:
        """Whether a namespace can be a member: it exists and is not on its way out (N-5)."""
        found = self.namespaces.get(name)
        return found is not None and not is_terminating(found)

    def validated(self, scope: Scope) -> tuple[str, ...]:
        """The members of a NamespaceScope, its own namespace included (N-4), sorted."""
        return tuple(sorted({self.name, *(name for name in scope.members if self.is_member(name))}))

    def served(self, scope: Scope) -> list[str]:
        """The members of a NamespaceScope without its own namespace, sorted."""
        return [member for member in self.validated(scope) if member != self.name]

    def is_ours(self, obj: Object) -> bool:
        """Whether a Role or RoleBinding was made by us for this namespace; a label alone proves nothing (N-13).

        What came back from a backup has lost its field owners: there the label and a name that only we give say it.
        """
        if labels_of(obj).get(FROM_LABEL) != self.name:
            return False
        return bool(entries_of(obj, MANAGER)) or (OWNERSHIP_LABEL in labels_of(obj) and may_be_ours(obj["metadata"]["name"]))
