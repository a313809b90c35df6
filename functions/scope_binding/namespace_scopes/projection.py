"""Which rights a NamespaceScope gives in its members: two projections, one bound (3.4, 3.5, N-7 to N-10).

``managed``: one Role and RoleBinding ``namespacescope-managed-role-from-<scope>`` in each member, for all accounts.
``own-roles``: for each account a copy of each of its own Roles.  Both are cut down to the consent of the member; where
there is none, nothing is given.
"""

from __future__ import annotations

from collections.abc import Sequence

from scope_binding.consent import AGENT, NOBODY, consent_name, is_given_to
from scope_binding.namespace_scopes.accounts import accounts_of
from scope_binding.namespace_scopes.declared import Scope
from scope_binding.namespace_scopes.grants import Grant, ProjectedRights
from scope_binding.namespace_scopes.kept import TOO_LARGE, account_of
from scope_binding.namespace_scopes.names import FUNCTION, managed_role_name, own_role_name, runtime_role_name
from scope_binding.namespace_scopes.rules import Answers, Given, ParsedRules
from scope_binding.namespace_scopes.seen import ObservedHome, SourceRole
from tenantry.model import limits
from tenantry.model.config import NamespaceScopeSettings
from tenantry.model.kinds import ROLE, Object
from tenantry.model.names import SYSTEM_NAMESPACE


def agreed_accounts(home: str, settings: NamespaceScopeSettings) -> frozenset[tuple[str, str]]:
    """The ServiceAccounts, as (namespace, name), any of which a consent may bind."""
    return frozenset({NOBODY, (home, AGENT), (SYSTEM_NAMESPACE, FUNCTION), *settings.agreed_accounts})


def projected(seen: ObservedHome, settings: NamespaceScopeSettings) -> ProjectedRights:
    """Every grant that the NamespaceScopes of a namespace want, the oldest's first."""
    projection = _Projection(seen, settings)
    for scope in seen.live:
        projection.add(scope)
    projection.add_totals()
    return projection.made


class _Projection:
    def __init__(self, seen: ObservedHome, settings: NamespaceScopeSettings) -> None:
        self.made = ProjectedRights()
        self._seen = seen
        self._agreed = agreed_accounts(seen.name, settings)
        self._answers = Answers()
        self._roles = seen.home_roles
        self._parsed = {
            (account, source.name): self._answers.parsed(source.rules or ())
            for account, sources in self._roles.copied.items()
            for source in sources
        }

    def add(self, scope: Scope) -> None:
        """What one NamespaceScope wants in its members."""
        seen, made = self._seen, self.made
        notes = made.unprojected.setdefault(scope.uid, set())
        accounts = accounts_of(scope, seen)
        if scope.follows_roles:
            notes |= self._over_limits(accounts)
        if scope.manual:
            return
        for member in seen.served(scope):
            role, binding = seen.consents.get(member, (None, None))
            if role is None or binding is None or not self._is_consent(binding, member):
                made.unauthorized.setdefault(scope.uid, []).append(member)
                notes.add(f"{member}: not authorized")
            elif seen.home is None or not is_given_to(binding, seen.home):
                made.outdated.setdefault(scope.uid, []).append(member)
                notes.add(f"{member}: not authorized")
            elif over := role.get(TOO_LARGE):
                made.untouched.add(member)
                notes.add(f"{member}/{consent_name(seen.name)}: {over}")
            elif scope.projection == "managed":
                self._add_managed(scope, member, accounts, self._answers.parsed(role.get("rules") or ()))
            else:
                self._add_copies(scope, member, accounts, self._answers.parsed(role.get("rules") or ()))

    def add_totals(self) -> None:
        """For each member the Role that sums up what is given there (N-14)."""
        by_member: dict[str, list[Grant]] = {}
        for grant in self.made.grants.values():
            by_member.setdefault(grant.member, []).append(grant)
        for member, grants in sorted(by_member.items()):
            total, scope = self._answers.total(tuple(grant.given for grant in grants)), grants[0].scope
            runtime = Grant(member, runtime_role_name(self._seen.name), "runtime", total, (), scope)
            if total.excess:
                self.made.unsummed.add(runtime.place)
                self.made.unprojected[scope.uid].add(f"{member}/{runtime.name}: {total.excess}")
            else:
                self.made.grants[runtime.place] = runtime

    def _is_consent(self, binding: Object, member: str) -> bool:
        """Whether a RoleBinding binds the Role of the consent to an agreed account (N-10).

        Whether it is for this from namespace is another question, see `is_given_to`.
        """
        reference = binding.get("roleRef") or {}
        if (reference.get("kind"), reference.get("name")) != (ROLE.kind, consent_name(self._seen.name)):
            return False
        return any(account_of(subject, member) in self._agreed for subject in binding.get("subjects") or ())

    def _over_limits(self, accounts: Sequence[str]) -> set[str]:
        home, notes = self._seen.name, set()
        for account in accounts:
            notes |= {f"{home}/{each.name}: {each.excess}" for each in self._roles.copied.get(account, ()) if each.excess}
            if account in self._roles.surplus:
                notes.add(
                    f"{home}: roles of account {account} are left out: at most {limits.COPIED_ROLES_OF_HOME} roles of all "
                    "accounts of a namespace are copied: bind the account to fewer and larger Roles"
                )
        return notes

    def _add_managed(self, scope: Scope, member: str, accounts: tuple[str, ...], consent: ParsedRules) -> None:
        given = self._answers.managed(consent)
        if given.excess:
            self.made.untouched.add(member)
            self.made.unprojected[scope.uid].add(f"{member}/{consent_name(self._seen.name)}: {given.excess}")
        elif not given.rules:
            note = f"{member}: insufficient permissions: the consent allows nothing that can be given"
            self.made.unprojected[scope.uid].add(note)
        elif accounts:
            name = managed_role_name(scope.name, self._seen.name, shared=(scope.name, member) in self._seen.clashes)
            self.made.grants.setdefault((member, name), Grant(member, name, "managed", given, accounts, scope))

    def _add_copies(self, scope: Scope, member: str, accounts: Sequence[str], consent: ParsedRules) -> None:
        """The copies of the roles of accounts in one member; of what is over a limit those that are there already."""
        for account in accounts:
            for source in self._roles.copied.get(account, ()):
                if source.excess:
                    self._add_as_before(scope, member, account, source.name, consent)
                    continue
                given = self._answers.own(self._parsed[account, source.name], consent)
                self.made.unprojected[scope.uid].update(self._lacks(member, source, given))
                if given.excess:
                    self._add_as_before(scope, member, account, source.name, consent)
                else:
                    self._add_copy(scope, member, account, source.name, given)
            for name in self._roles.surplus.get(account, ()):
                self._add_as_before(scope, member, account, name, consent)

    def _lacks(self, member: str, source: SourceRole, given: Given) -> set[str]:
        """Why the copy of a role is not there, or has less than the role."""
        home = self._seen.name
        if given.excess:
            return {f"{member}/{source.name}: {given.excess}"}
        if source.rules is None:
            return {f"{home}/{source.name}: role not found"}
        if given.lacks:
            return {f"{member}/{source.name}: insufficient permissions: the consent lacks {'; '.join(given.lacks)}"}
        if source.rules and not given.rules:
            return {f"{home}/{source.name}: insufficient permissions"}
        return set()  # an empty source Role gives no object and is no error (N-8)

    def _add_as_before(self, scope: Scope, member: str, account: str, source: str, consent: ParsedRules) -> None:
        """The copy of a role that is over a limit stays as it is, as far as the consent still allows it."""
        live = self._seen.roles.get((member, own_role_name(source, account, self._seen.name)))
        if live is not None and self._seen.is_ours(live):
            given = self._answers.cut(self._answers.parsed(live.get("rules") or ()), consent)
            self._add_copy(scope, member, account, source, given)

    def _add_copy(self, scope: Scope, member: str, account: str, source: str, given: Given) -> None:
        if given.rules:
            name = own_role_name(source, account, self._seen.name)
            self.made.grants.setdefault((member, name), Grant(member, name, "own", given, (account,), scope, source))
