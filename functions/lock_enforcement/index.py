"""Which HelmRelease locks which object: the way from an object to its lock, and between locks that meet.

Made from all HelmReleases and the records of their releases.  Requests for a fresh one that come while it is made share the
next one, so that nobody gets an index that was begun before he asked, and a storm of events makes few.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field

from lock_enforcement.records import Records
from tenantry.engine.reader import Prefetch, Reader
from tenantry.model.config import Config
from tenantry.model.helm import RECORD_LABELS, STORAGES, Mark
from tenantry.model.kinds import HELM_RELEASE, Key, Kind, is_terminating
from tenantry.model.locks import is_ours, release_named

Name = tuple[str, str, str, str]
"""Group, kind, namespace and name: objects by what they are, whatever version they are asked for in."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One HelmRelease and what it locks, paused or not; the oldest of those that claim an object keeps it."""

    name: str
    created: str
    release: Mark
    objects: frozenset[Name]

    @property
    def age(self) -> tuple[str, str]:
        """For sorting: the oldest first."""
        return self.created, self.name


@dataclass(frozen=True, slots=True)
class Locked:
    """The claims of one moment, and the kinds and namespaces of what they lock."""

    claims: dict[str, Claim] = field(default_factory=dict)
    by_object: dict[Name, tuple[str, ...]] = field(default_factory=dict)
    kinds: frozenset[Kind] = frozenset()
    namespaces: frozenset[str] = frozenset()

    def holders(self, name: Name) -> Iterator[Claim]:
        """Those who claim an object, the oldest first."""
        yield from sorted((self.claims[each] for each in self.by_object.get(name, ())), key=lambda claim: claim.age)


def name_of(key: Key) -> Name:
    """What an object is called in an index."""
    return key.api_version.rpartition("/")[0], key.kind, key.namespace, key.name


class Index:
    """The index of this process and the contents of records that it has read."""

    def __init__(self, config: Config) -> None:
        self.records = Records()
        self.locked = Locked()
        self._config = config
        self._running: asyncio.Task[Locked] | None = None
        self._next: asyncio.Task[Locked] | None = None

    def lists(self) -> list[Prefetch]:
        """What an index is made from."""
        records = [Prefetch(kind, tuple(RECORD_LABELS.items()), headers=True) for kind in STORAGES]
        return [Prefetch(HELM_RELEASE, namespace=self._config.helm_project_operator.system_namespace), *records]

    async def fresh(self, reader: Reader) -> Locked:
        """An index that was begun after this call."""
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._make(reader))
            return await asyncio.shield(self._running)
        if self._next is None or self._next.done():
            self._next = asyncio.create_task(self._make_after(self._running, reader))
        return await asyncio.shield(self._next)

    async def _make_after(self, before: asyncio.Task[Locked], reader: Reader) -> Locked:
        await asyncio.wait({before})
        self._running, self._next = self._next, None
        return await self._make(reader)

    async def _make(self, reader: Reader) -> Locked:
        system = self._config.helm_project_operator.system_namespace
        claims: dict[str, Claim] = {}
        kinds: set[Kind] = set()
        namespaces: set[str] = set()
        reader = await reader.snapshot(self.lists())
        for helm_release in await reader.list(HELM_RELEASE, system):
            release = release_named(helm_release)
            if release is None or not is_ours(helm_release, self._config) or is_terminating(helm_release):
                continue
            history = await self.records.history(release.name, release.namespace, reader)
            if history.deployed is None:
                continue
            objects: set[Name] = set()
            for part in history.deployed.parts:
                kind = await reader.served(part.api_version, part.kind)
                if kind is None:
                    continue
                namespace = (part.namespace or release.namespace) if kind.namespaced else ""
                objects.add((kind.group, kind.kind, namespace, part.name))
                kinds.add(kind)
                if namespace:
                    namespaces.add(namespace)
            metadata = helm_release["metadata"]
            claims[metadata["name"]] = Claim(metadata["name"], metadata["creationTimestamp"], release, frozenset(objects))
        by_object: dict[Name, tuple[str, ...]] = {}
        for claim in claims.values():
            for name in claim.objects:
                by_object[name] = (*by_object.get(name, ()), claim.name)
        self.locked = Locked(claims, by_object, frozenset(kinds), frozenset(namespaces))
        return self.locked
