"""Which rights a NamespaceScope gives in its members: two projections, one bound (3.4, 3.5, N-7 to N-10).

``managed``: one Role and RoleBinding ``namespacescope-managed-role-from-<scope>`` in each member, for all accounts.
``own-roles``: for each account a copy of each of its own Roles.  Both are cut down to the consent of the member; where
there is none, nothing is given.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from scope_binding.consent import AGENT, NOBODY, consent_name, is_given_to
from scope_binding.namespace_scopes.accounts import Source, accounts_of, bound_roles, chosen, sources
from scope_binding.namespace_scopes.declared import Scope
from scope_binding.namespace_scopes.kept import TOO_LARGE
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
from tenantry.model import limits
from tenantry.model.config import NamespaceScopeSettings
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
    untouched: set[str] = field(default_factory=set)
    """Members whose consent is over a limit: nothing is given there, and what is there stays as it is."""
    unsummed: set[Place] = field(default_factory=set)
    """Where the sum of what was given would be over a limit."""


@dataclass(frozen=True, slots=True)
class Observed:
    """What one run sees, and what follows from it for rights in members."""

    seen: Seen
    made: Projection


def agreed_accounts(home: str, settings: NamespaceScopeSettings) -> frozenset[tuple[str, str]]:
    """The ServiceAccounts, as (namespace, name), any of which a consent may bind."""
    return frozenset({NOBODY, (home, AGENT), (SYSTEM_NAMESPACE, FUNCTION), *settings.agreed_accounts})


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
    agreed = agreed_accounts(seen.name, settings)
    bound = {
        (subject.get("namespace") or member, subject.get("name"))
        for subject in binding.get("subjects") or ()
        if subject.get("kind") == "ServiceAccount"
    }
    return tuple(role.get("rules") or ()) if bound & agreed else None


def consent_excess(seen: Seen, member: str) -> str:
    """The limit that the Role of a member's consent is over."""
    role, _ = seen.consents.get(member, (None, None))
    return str((role or {}).get(TOO_LARGE, ""))


def is_outdated(seen: Seen, member: str) -> bool:
    """Whether a member's consent was given to an earlier namespace of the from namespace's name (a-37)."""
    _, binding = seen.consents.get(member, (None, None))
    return binding is not None and (seen.home is None or not is_given_to(binding, seen.home))


def projected(seen: Seen, settings: NamespaceScopeSettings) -> Projection:
    """Every grant that the NamespaceScopes of a namespace want, the oldest's first."""
    made, answers = Projection(), Answers()
    owned = _owned(seen, answers)
    for scope in seen.live:
        notes = made.unprojected.setdefault(scope.uid, set())
        if scope.projection == "own-roles" or scope.manual:
            notes |= _over(scope, seen, owned)
        if scope.manual:
            continue
        accounts = accounts_of(scope, seen)
        for member in seen.validated(scope):
            if member == seen.name:
                continue
            consent = consented(seen, member, settings)
            outdated = consent is not None and is_outdated(seen, member)
            if consent is None or outdated:
                (made.outdated if outdated else made.unauthorized).setdefault(scope.uid, []).append(member)
                notes.add(f"{member}: not authorized")
            elif over := consent_excess(seen, member):
                made.untouched.add(member)
                notes.add(f"{member}/{consent_name(seen.name)}: {over}")
            elif scope.projection == "managed":
                _managed(made, scope, seen, member, accounts, answers.managed(answers.known(consent)))
            else:
                _copies(made, scope, seen, member, accounts, answers.known(consent), owned, answers)
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
        if total.excess:
            made.unsummed.add(runtime.place)
            made.unprojected[scope.uid].add(f"{member}/{runtime.name}: {total.excess}")
        else:
            made.grants[runtime.place] = runtime


@dataclass(frozen=True, slots=True)
class _Owned:
    """The roles by account that are copied, with their rules, and the names of those that are too many."""

    sources: Mapping[str, Sequence[tuple[Source, Known]]]
    surplus: Mapping[str, Sequence[str]]


def _owned(seen: Seen, answers: Answers) -> _Owned:
    accounts = copying_accounts(seen)
    found = sources(accounts, seen)
    _, surplus = chosen(bound_roles(accounts, seen.source_bindings, seen.name))
    return _Owned(
        {account: [(source, answers.known(source.rules or ())) for source in each] for account, each in found.items()}, surplus
    )


def copying_accounts(seen: Seen) -> list[str]:
    """The accounts whose roles at home count: they are copied, or say what rights made by hand should be."""
    scopes = [scope for scope in seen.live if scope.projection == "own-roles" or scope.manual]
    return sorted({account for scope in scopes for account in accounts_of(scope, seen)})


def _over(scope: Scope, seen: Seen, owned: _Owned) -> set[str]:
    """What is over a limit at home, for the accounts of a NamespaceScope."""
    notes = set()
    for account in accounts_of(scope, seen):
        notes |= {f"{seen.name}/{source.name}: {source.excess}" for source, _ in owned.sources.get(account, ()) if source.excess}
        if account in owned.surplus:
            notes.add(
                f"{seen.name}: roles of account {account} are left out: at most {limits.COPIED_ROLES_OF_HOME} roles of all "
                "accounts of a namespace are copied: bind the account to fewer and larger Roles"
            )
    return notes


def _copies(
    made: Projection,
    scope: Scope,
    seen: Seen,
    member: str,
    accounts: Iterable[str],
    consent: Known,
    owned: _Owned,
    answers: Answers,
) -> None:
    """The copies of the roles of accounts in one member; of what is over a limit those that are there already."""
    for account in accounts:
        for source, rules in owned.sources.get(account, ()):
            given = Given((), excess=source.excess) if source.excess else answers.own(rules, consent)
            if given.excess and not source.excess:
                made.unprojected[scope.uid].add(f"{member}/{source.name}: {given.excess}")
            if given.excess:
                _as_before(made, scope, seen, member, account, source.name, consent, answers)
            else:
                _own(made, scope, seen, member, account, source, given)
        for name in owned.surplus.get(account, ()):
            _as_before(made, scope, seen, member, account, name, consent, answers)


def _as_before(
    made: Projection, scope: Scope, seen: Seen, member: str, account: str, source: str, consent: Known, answers: Answers
) -> None:
    """The copy of a role that is over a limit stays as it is, as far as the consent still allows it."""
    live = seen.roles.get((member, own_role_name(source, account, seen.name)))
    if live is None or not seen.is_ours(live):
        return
    given = answers.cut(answers.known(live.get("rules") or ()), consent)
    if given.rules:
        _copy(made, scope, seen, member, account, source, given)


def _managed(made: Projection, scope: Scope, seen: Seen, member: str, accounts: tuple[str, ...], given: Given) -> None:
    if given.excess:
        made.untouched.add(member)
        made.unprojected[scope.uid].add(f"{member}/{consent_name(seen.name)}: {given.excess}")
    elif not given.rules:
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
        _copy(made, scope, seen, member, account, source.name, given)


def _copy(made: Projection, scope: Scope, seen: Seen, member: str, account: str, source: str, given: Given) -> None:
    name = own_role_name(source, account, seen.name)
    labels = {**ownership_labels(scope.config_map, seen.name), ACCOUNT_LABEL: label_value(account)}
    grant = Grant(member, name, "own", given, (account,), labels, scope, seen.name, source)
    made.grants.setdefault(grant.place, grant)


def stale(seen: Seen, made: Projection) -> Iterator[Object]:
    """Our Roles and RoleBindings that nobody wants any more, except where an administrator manages them (N-17)."""
    kept = made.untouched | {member for scope in seen.live if scope.manual for member in scope.members}
    yield from _unwanted(seen, kept, seen.bindings, {place for place, grant in made.grants.items() if grant.accounts})
    yield from _unwanted(seen, kept, seen.roles, made.grants.keys() | made.unsummed)


def _unwanted(seen: Seen, kept: set[str], found: Mapping[Place, Object], wanted: Collection[Place]) -> Iterator[Object]:
    for place, obj in sorted(found.items()):
        if place not in wanted and place[0] not in kept and seen.is_ours(obj):
            yield obj
