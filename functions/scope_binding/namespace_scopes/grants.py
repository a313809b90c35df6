"""The rights that are wanted in members: a Role each, who is bound to it, and what cannot be given."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from scope_binding.namespace_scopes.declared import Scope
from scope_binding.namespace_scopes.names import ACCOUNT_LABEL, label_value, ownership_labels
from scope_binding.namespace_scopes.rules import Given
from scope_binding.objects import account_subject, binding_of
from tenantry.model.kinds import ROLE, ROLE_BINDING, Object, object_of

RolePlace = tuple[str, str]
"""Namespace and name of a Role, and of the RoleBinding to it."""

Flavour = Literal["managed", "own", "runtime"]


@dataclass(frozen=True, slots=True)
class Grant:
    """A Role that is wanted in a member, and the accounts that are bound to it; none: no binding.

    ``source`` is the role at home that it is a copy of.
    """

    member: str
    name: str
    flavour: Flavour
    given: Given
    accounts: tuple[str, ...]
    scope: Scope
    source: str = ""

    @property
    def place(self) -> RolePlace:
        """Member and name."""
        return self.member, self.name

    @property
    def labels(self) -> dict[str, str]:
        """The labels of the Role and the RoleBinding; a copy's say whose it is."""
        account = {ACCOUNT_LABEL: label_value(self.accounts[0])} if self.flavour == "own" else {}
        return {**ownership_labels(self.scope.config_map, self.scope.namespace), **account}

    def role(self) -> Object:
        """The Role."""
        return object_of(ROLE, self._metadata, rules=list(self.given.rules))

    def binding(self) -> Object:
        """The RoleBinding."""
        return binding_of(ROLE_BINDING, self._metadata, (ROLE, self.name), self.subjects())

    @property
    def _metadata(self) -> Object:
        return {"name": self.name, "namespace": self.member, "labels": self.labels}

    def subjects(self) -> list[Object]:
        """Who is bound to the Role."""
        return [account_subject(self.scope.namespace, account) for account in self.accounts]


@dataclass(slots=True)
class ProjectedRights:
    """All grants by place, and by NamespaceScope (its uid) what could not be given."""

    grants: dict[RolePlace, Grant] = field(default_factory=dict)
    unauthorized: dict[str, list[str]] = field(default_factory=dict)
    """Members without consent."""
    outdated: dict[str, list[str]] = field(default_factory=dict)
    """Members whose consent is not for this from namespace, but for an earlier one of its name."""
    unprojected: dict[str, set[str]] = field(default_factory=dict)
    """What ``status.unprojectedRoles`` says."""
    untouched: set[str] = field(default_factory=set)
    """Members whose consent is over a limit: nothing is given there, and what is there stays as it is."""
    unsummed: set[RolePlace] = field(default_factory=set)
    """Where the sum of what was given would be over a limit."""
