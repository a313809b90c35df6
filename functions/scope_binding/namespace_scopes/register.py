"""All NamespaceScopes of the cluster, indexed once for each list of them: by home, by member, by name.

Most events are of objects that any namespace has, so this is asked for each of them, and a sweep asks it for each home: neither
may look at all NamespaceScopes every time (a-19).  Of one home the oldest `limits.SCOPES_OF_HOME` are served.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from weakref import WeakKeyDictionary

from scope_binding.namespace_scopes import kept
from scope_binding.namespace_scopes.declared import Projection, Scope, declared
from tenantry.engine.reader import Reader
from tenantry.engine.snapshot import Snapshot
from tenantry.model import limits
from tenantry.model.kinds import NAMESPACE_SCOPE, Object, is_terminating


def _age(scope: Object) -> tuple[str, str]:
    return str(scope["metadata"].get("creationTimestamp") or ""), str(scope["metadata"]["name"])


class Register:
    """The NamespaceScopes of one list; ``known`` are those that were typed before, by uid."""

    def __init__(self, every: Iterable[Object], projection: Projection, known: dict[str, tuple[Object, Scope]]) -> None:
        self._objects: dict[str, list[Object]] = {}
        for found in every:
            self._objects.setdefault(found["metadata"]["namespace"], []).append(found)
        self._by_member: dict[str, set[str]] = {}
        self._by_name: dict[str, set[str]] = {}
        self._meant: dict[tuple[str, str], set[str]] = {}
        """By (name of a NamespaceScope, member) the homes; two are enough to know of a clash."""
        self._clashes: dict[str, frozenset[tuple[str, str]]] = {}
        self._scopes: dict[str, tuple[Scope, ...]] = {}
        typed: dict[str, tuple[Object, Scope]] = {}
        for home in self._objects:
            scopes = []
            for found in self.served(home):
                uid = found["metadata"].get("uid", "")
                before = known.get(uid)
                scope = (
                    before[1]
                    if before is not None and (before[0] is found or before[0] == found)
                    else declared(found, projection)
                )
                typed[uid] = found, scope
                scopes.append(scope)
                self._by_name.setdefault(scope.name, set()).add(home)
                for member in scope.members:
                    self._by_member.setdefault(member, set()).add(home)
                    meant = self._meant.setdefault((scope.name, member), set())
                    if len(meant) < 2:
                        meant.add(home)
            self._scopes[home] = tuple(scopes)
        known.clear()
        known.update(typed)

    @property
    def homes(self) -> Mapping[str, Sequence[Scope]]:
        """The NamespaceScopes that are served, by home."""
        return self._scopes

    def served(self, home: str) -> list[Object]:
        """Those of a home that are on their way out, and the oldest of the others."""
        found = self._objects.get(home, [])
        if len(found) <= limits.SCOPES_OF_HOME:
            return found
        staying = sorted((each for each in found if not is_terminating(each)), key=_age)
        return [*(each for each in found if is_terminating(each)), *staying[: limits.SCOPES_OF_HOME]]

    def surplus(self, home: str) -> list[Object]:
        """The others of a home, the oldest first."""
        found = self._objects.get(home, [])
        if len(found) <= limits.SCOPES_OF_HOME:
            return []
        return sorted((each for each in found if not is_terminating(each)), key=_age)[limits.SCOPES_OF_HOME :]

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
                for scope in self._scopes.get(home, ())
                for member in scope.members
                if self._meant[scope.name, member] != {home}
            )
        return self._clashes[home]


class Registers:
    """The register of each list, made once, however many ask about that list."""

    def __init__(self, projection: Projection) -> None:
        self._projection = projection
        self._kept: dict[str, Object] = {}
        self._known: dict[str, tuple[Object, Scope]] = {}
        self._last: tuple[list[Object], Register] | None = None
        self._snapshots: WeakKeyDictionary[Reader, Register] = WeakKeyDictionary()

    def keep(self, item: Object) -> Object:
        """What is kept of a NamespaceScope; of one that did not change since the last list the same object."""
        metadata = item["metadata"]
        before = self._kept.get(metadata["uid"])
        if before is not None and before["metadata"]["resourceVersion"] == metadata["resourceVersion"]:
            return before
        self._kept[metadata["uid"]] = made = kept.namespace_scope(item)
        return made

    async def read(self, reader: Reader) -> Register:
        """The register of a list that is read now, together with others who want it now; a run begins with that of its event."""
        if (before := self._snapshots.get(reader)) is not None:
            return before
        every = reader.known.whole.get(NAMESPACE_SCOPE)
        if every is None:
            every = await reader.list_shared(NAMESPACE_SCOPE, keep=self.keep)
        if self._last is not None and self._last[0] is every:
            made = self._last[1]
        else:
            made = Register(every, self._projection, self._known)
            self._kept = {each["metadata"]["uid"]: each for each in every if "uid" in each["metadata"]}
        if isinstance(reader, Snapshot):
            self._snapshots[reader] = made
        else:
            reader.known.whole[NAMESPACE_SCOPE] = every
            self._last = every, made
        return made
