"""Which rights a NamespaceScope gives in its members: two projections, one bound (3.4, 3.5, N-7 to N-10).

``managed``: one Role and RoleBinding ``namespacescope-managed-role-from-<scope>`` in each member, for all accounts.
``own-roles``: for each account a copy of each of its own Roles.  Both are cut down to the consent of the member; where
there is none, nothing is given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from scope_binding.namespace_scopes.accounts import Source, accounts_of, sources_of
from scope_binding.namespace_scopes.declared import Scope
from scope_binding.namespace_scopes.names import (
    ACCOUNT_LABEL,
    FUNCTION,
    label_value,
    managed_role_name,
    own_role_name,
    ownership_labels,
    runtime_role_name,
)
from scope_binding.namespace_scopes.rules import Answers, Given, Known
from scope_binding.namespace_scopes.seen import Place, Seen
from tenantry.model.config import NamespaceScopeSettings
from tenantry.model.consent import AGENT, NOBODY, consent_name, is_given_to
from tenantry.model.kinds import ROLE, ROLE_BINDING, Object
from tenantry.model.names import SYSTEM_NAMESPACE

Flavour = Literal["managed", "own", "runtime"]


@dataclass(frozen=True, slots=True)
class Grant:
    """A Role that is wanted in a member, and the accounts that are bound to it; none: no binding."""

    member: str
    name: str
    flavour: Flavour
    given: Given
    accounts: tuple[str, ...]
    labels: dict[str, str]
    scope: Scope
    from_namespace: str
    source: str = ""

    @property
    def place(self) -> Place:
        """Member and name."""
        return self.member, self.name

    def role(self) -> Object:
        """The Role."""
        metadata = {"name": self.name, "namespace": self.member, "labels": self.labels}
        return {"apiVersion": ROLE.api_version, "kind": ROLE.kind, "metadata": metadata, "rules": list(self.given.rules)}

    def binding(self) -> Object:
        """The RoleBinding."""
        metadata = {"name": self.name, "namespace": self.member, "labels": self.labels}
        return {
            "apiVersion": ROLE_BINDING.api_version,
            "kind": ROLE_BINDING.kind,
            "metadata": metadata,
            "roleRef": {"apiGroup": ROLE.group, "kind": ROLE.kind, "name": self.name},
            "subjects": self.subjects(),
        }

    def subjects(self) -> list[Object]:
        """Who is bound to the Role."""
        return [{"kind": "ServiceAccount", "name": account, "namespace": self.from_namespace} for account in self.accounts]


@dataclass(slots=True)
class Projection:
    """All grants by place, and by NamespaceScope what could not be given."""

    grants: dict[Place, Grant] = field(default_factory=dict)
    unauthorized: dict[str, list[str]] = field(default_factory=dict)
    """Members without consent."""
    outdated: dict[str, list[str]] = field(default_factory=dict)
    """Members whose consent is not for this from namespace, but for an earlier one of its name."""
    unprojected: dict[str, set[str]] = field(default_factory=dict)
    """What ``status.unprojectedRoles`` says."""


@dataclass(frozen=True, slots=True)
class Observed:
    """What one run sees, and what follows from it for rights in members."""

    seen: Seen
    made: Projection


def consented(seen: Seen, member: str, settings: NamespaceScopeSettings) -> tuple[Object, ...] | None:
    """The rules that a member consents to; None without consent (N-10).

    A consent is a Role and a RoleBinding of its name to an agreed account, both live.  Whether it is for this from namespace
    is another question: `is_outdated`.
    """
    role, binding = seen.consents.get(member, (None, None))
    if role is None or binding is None:
        return None
    name = consent_name(seen.name)
    reference = binding.get("roleRef") or {}
    if (reference.get("kind"), reference.get("name")) != (ROLE.kind, name):
        return None
    agreed = {NOBODY, (seen.name, AGENT), (SYSTEM_NAMESPACE, FUNCTION), *settings.agreed_accounts}
    bound = {
        (subject.get("namespace") or member, subject.get("name"))
        for subject in binding.get("subjects") or ()
        if subject.get("kind") == "ServiceAccount"
    }
    return tuple(role.get("rules") or ()) if bound & agreed else None


def is_outdated(seen: Seen, member: str) -> bool:
    """Whether a member's consent was given to an earlier namespace of the from namespace's name (a-37)."""
    _, binding = seen.consents.get(member, (None, None))
    return binding is not None and (seen.home is None or not is_given_to(binding, seen.home))


def projected(seen: Seen, settings: NamespaceScopeSettings) -> Projection:
    """Every grant that the NamespaceScopes of a namespace want, the oldest's first."""
    made, answers = Projection(), Answers()
    sources = _sources(seen, answers)
    for scope in seen.live:
        if scope.manual:
            continue
        accounts = accounts_of(scope, seen)
        notes = made.unprojected.setdefault(scope.uid, set())
        for member in seen.validated(scope):
            if member == seen.name:
                continue
            consent = consented(seen, member, settings)
            outdated = consent is not None and is_outdated(seen, member)
            if consent is None or outdated:
                (made.outdated if outdated else made.unauthorized).setdefault(scope.uid, []).append(member)
                notes.add(f"{member}: not authorized")
            elif scope.projection == "managed":
                _managed(made, scope, seen, member, accounts, answers.managed(answers.known(consent)))
            else:
                known = answers.known(consent)
                for account in accounts:
                    for source, rules in sources.get(account, ()):
                        _own(made, scope, seen, member, account, source, answers.own(rules, known))
    _add_totals(made, seen, answers)
    return made


def _add_totals(made: Projection, seen: Seen, answers: Answers) -> None:
    """For each member the Role that sums up what is given there (N-14)."""
    by_member: dict[str, list[Grant]] = {}
    for grant in made.grants.values():
        by_member.setdefault(grant.member, []).append(grant)
    for member, grants in sorted(by_member.items()):
        total, scope = answers.total(tuple(grant.given for grant in grants)), grants[0].scope
        labels = ownership_labels(scope.config_map, seen.name)
        runtime = Grant(member, runtime_role_name(seen.name), "runtime", total, (), labels, scope, seen.name)
        made.grants[runtime.place] = runtime


def _sources(seen: Seen, answers: Answers) -> dict[str, list[tuple[Source, Known]]]:
    """The roles by account, with their rules."""
    scopes = [scope for scope in seen.live if scope.projection == "own-roles"]
    accounts = {account for scope in scopes for account in accounts_of(scope, seen)}
    return {
        account: [(source, answers.known(source.rules or ())) for source in sources_of(account, seen)] for account in accounts
    }


def _managed(made: Projection, scope: Scope, seen: Seen, member: str, accounts: tuple[str, ...], given: Given) -> None:
    if not given.rules:
        made.unprojected[scope.uid].add(f"{member}: insufficient permissions: the consent allows nothing that can be given")
    elif accounts:
        name = managed_role_name(scope.name, seen.name, shared=(scope.name, member) in seen.clashes)
        labels = ownership_labels(scope.config_map, seen.name)
        grant = Grant(member, name, "managed", given, accounts, labels, scope, seen.name)
        made.grants.setdefault(grant.place, grant)


def _own(made: Projection, scope: Scope, seen: Seen, member: str, account: str, source: Source, given: Given) -> None:
    notes = made.unprojected[scope.uid]
    if source.rules is None:
        notes.add(f"{seen.name}/{source.name}: role not found")
        return
    if not source.rules:
        return  # an empty source Role gives no object and is no error (N-8)
    if given.lacks:
        notes.add(f"{member}/{source.name}: insufficient permissions: the consent lacks {'; '.join(given.lacks)}")
    elif not given.rules:
        notes.add(f"{seen.name}/{source.name}: insufficient permissions")
    if given.rules:
        name = own_role_name(source.name, account, seen.name)
        labels = {**ownership_labels(scope.config_map, seen.name), ACCOUNT_LABEL: label_value(account)}
        grant = Grant(member, name, "own", given, (account,), labels, scope, seen.name, source.name)
        made.grants.setdefault(grant.place, grant)


def stale(seen: Seen, made: Projection) -> Iterator[Object]:
    """Our Roles and RoleBindings that nobody wants any more, except where an administrator manages them (N-17)."""
    kept = {member for scope in seen.live if scope.manual for member in scope.members}
    yield from _unwanted(seen, kept, seen.bindings, {place for place, grant in made.grants.items() if grant.accounts})
    yield from _unwanted(seen, kept, seen.roles, set(made.grants))


def _unwanted(seen: Seen, kept: set[str], found: Mapping[Place, Object], wanted: set[Place]) -> Iterator[Object]:
    for place, obj in sorted(found.items()):
        if place not in wanted and place[0] not in kept and seen.is_ours(obj):
            yield obj
