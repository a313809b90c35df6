"""All NamespaceScopes of the cluster, indexed once for each list of them: by home, by member, by name.

Most events are of objects that any namespace has.  Every one of them is looked up here, and so is every home of a sweep: neither
may go through all NamespaceScopes (a-19).  Of one home the oldest `limits.SCOPES_OF_HOME` are served.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from weakref import WeakKeyDictionary

from scope_binding.namespace_scopes import kept
from scope_binding.namespace_scopes.declared import Projection, Scope, age_of, declared
from tenantry.engine.reader import Reader
from tenantry.model import limits
from tenantry.model.kinds import NAMESPACE_SCOPE, Object, is_terminating


def _divided(of_home: list[Object]) -> tuple[list[Object], list[Object]]:
    """The NamespaceScopes of a home that are served, those that are being deleted first, and the others, the oldest first."""
    if len(of_home) <= limits.SCOPES_OF_HOME:
        return of_home, []
    leaving = [each for each in of_home if is_terminating(each)]
    staying = sorted((each for each in of_home if not is_terminating(each)), key=age_of)
    return [*leaving, *staying[: limits.SCOPES_OF_HOME]], staying[limits.SCOPES_OF_HOME :]


class Register:
    """The index of one list.  By home ``served`` has the NamespaceScopes that are served, ``surplus`` the others.

    ``known`` has by uid those that were typed before, ``typed`` those of this list.
    """

    def __init__(self, every: Iterable[Object], projection: Projection, known: Mapping[str, Scope]) -> None:
        self.served: dict[str, tuple[Scope, ...]] = {}
        self.surplus: dict[str, list[Object]] = {}
        self._by_member: dict[str, set[str]] = {}
        self._by_name: dict[str, set[str]] = {}
        self._meant: dict[tuple[str, str], set[str]] = {}
        """By (name of a NamespaceScope, member) the homes; two are enough to know of a clash."""
        self._clashes: dict[str, frozenset[tuple[str, str]]] = {}
        by_home: dict[str, list[Object]] = {}
        for found in every:
            by_home.setdefault(found["metadata"]["namespace"], []).append(found)
        self.typed: dict[str, Scope] = {}
        for home, of_home in by_home.items():
            served, self.surplus[home] = _divided(of_home)
            scopes = []
            for found in served:
                uid = found["metadata"]["uid"]
                scope = known.get(uid)
                if scope is None or scope.live is not found:
                    scope = declared(found, projection)
                self.typed[uid] = scope
                scopes.append(scope)
                self._by_name.setdefault(scope.name, set()).add(home)
                for member in scope.members:
                    self._by_member.setdefault(member, set()).add(home)
                    meant = self._meant.setdefault((scope.name, member), set())
                    if len(meant) < 2:
                        meant.add(home)
            self.served[home] = tuple(scopes)

    def with_member(self, name: str) -> list[str]:
        """The homes with a NamespaceScope that names this member, sorted."""
        return sorted(self._by_member.get(name, ()))

    def with_name(self, name: str) -> list[str]:
        """The homes with a NamespaceScope of this name, sorted."""
        return sorted(self._by_name.get(name, ()))

    def clashes(self, home: str) -> frozenset[tuple[str, str]]:
        """(name, member) of NamespaceScopes of a home that another home has as well."""
        if home not in self._clashes:
            self._clashes[home] = frozenset(
                (scope.name, member)
                for scope in self.served.get(home, ())
                for member in scope.members
                if self._meant[scope.name, member] != {home}
            )
        return self._clashes[home]


class RegisterCache:
    """The register of each list, made once, however many runs use that list."""

    def __init__(self, projection: Projection) -> None:
        self._projection = projection
        self._kept: dict[str, Object] = {}
        self._known: dict[str, Scope] = {}
        self._last: tuple[list[Object], Register] | None = None
        self._snapshots: WeakKeyDictionary[Reader, Register] = WeakKeyDictionary()

    def keep(self, item: Object) -> Object:
        """The part of a NamespaceScope that is kept: the same object as in the last list where it did not change since then."""
        metadata = item["metadata"]
        before = self._kept.get(metadata["uid"])
        if before is not None and before["metadata"]["resourceVersion"] == metadata["resourceVersion"]:
            return before
        self._kept[metadata["uid"]] = made = kept.namespace_scope(item)
        return made

    async def read(self, reader: Reader) -> Register:
        """The register of a list that is read now and shared with others who read it now; a run uses the list of its event."""
        if (before := self._snapshots.get(reader)) is not None:
            return before
        every = reader.known.whole.get(NAMESPACE_SCOPE)
        if every is None:
            every = await reader.list_shared(NAMESPACE_SCOPE, keep=self.keep)
        if self._last is not None and self._last[0] is every:
            made = self._last[1]
        else:
            made = Register(every, self._projection, self._known)
            self._known = made.typed
            self._kept = {each["metadata"]["uid"]: each for each in every}
        if not reader.live:
            self._snapshots[reader] = made
        else:
            reader.known.whole[NAMESPACE_SCOPE] = every
            self._last = every, made
        return made
