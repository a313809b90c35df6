"""Which HelmRelease locks which object: the way from an object to its lock, and between locks that meet.

Made from all HelmReleases and the records of their releases.  Requests for a fresh one that come while it is made share the
next one, so that nobody gets an index that was begun before he asked, and a storm of events makes few.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field

from lock_enforcement.helm import RECORD_LABELS, Mark
from lock_enforcement.locks import claim_of, reach_of, storage_of
from lock_enforcement.records import Records
from tenantry.api.errors import ApiError
from tenantry.engine.items import versions_in
from tenantry.engine.reader import Reader
from tenantry.engine.shared import Shared
from tenantry.engine.snapshot import Prefetch, Snapshot
from tenantry.engine.tasks import started
from tenantry.model.config import Config
from tenantry.model.kinds import HELM_RELEASE, SECRET, Key, Kind, Object, annotations_of, is_terminating
from tenantry.model.names import RELEASE_MANAGED_BY

Name = tuple[str, str, str, str]
"""Group, kind, namespace and name: objects by what they are, whatever version they are asked for in."""


log = logging.getLogger(__name__)

LEFT = 1000
"""HelmReleases that claim nothing any more of which it is remembered what they claimed."""
PARALLEL = 32
"""Releases whose records are read at once: a process that has just started knows none."""

Declaration = tuple[str, int, str | None] | None
LockState = tuple[Declaration, frozenset[tuple[str, str]]]
"""What decides what a HelmRelease locks: its declaration, and the versions of its release's records."""


@dataclass(frozen=True, slots=True)
class Holder:
    """One HelmRelease and what it locks, paused or not, within its reach; the oldest of those that claim an object keeps it.

    ``state`` is what this was read from; ``whole`` is False where a kind is not served, for which a CRD may come.
    """

    name: str
    created: str
    release: Mark
    state: LockState
    objects: frozenset[Name]
    kinds: frozenset[Kind]
    namespaces: frozenset[str]
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Locked:
    """All holders of one moment.

    ``declared`` has every HelmRelease of the system namespace, at the state of its declaration: see `declaration_of`.  ``failed``
    is why some release could not be read: then an object that nobody claims here may be claimed all the same.
    """

    holders: dict[str, Holder] = field(default_factory=dict)
    by_object: dict[Name, tuple[str, ...]] = field(default_factory=dict)
    declared: dict[str, Declaration] = field(default_factory=dict)
    failed: ApiError | None = None

    def holders_of(self, name: Name) -> Iterator[Holder]:
        """Those who claim an object, the oldest first."""
        yield from sorted(
            (self.holders[each] for each in self.by_object.get(name, ())), key=lambda each: (each.created, each.name)
        )


def declaration_of(helm_release: Object | None) -> Declaration:
    """What of a HelmRelease decides what is locked: equal means that nothing of that has changed; None for one that goes away."""
    if helm_release is None or is_terminating(helm_release):
        return None
    metadata = helm_release["metadata"]
    return metadata["uid"], metadata.get("generation", 0), annotations_of(helm_release).get(RELEASE_MANAGED_BY)


def name_of(key: Key) -> Name:
    """What an object is called in an index."""
    return key.api_version.rpartition("/")[0], key.kind, key.namespace, key.name


class Index:
    """The index of this process and the contents of records that it has read."""

    def __init__(self, config: Config) -> None:
        self.records = Records()
        self.locked = Locked()
        self._config = config
        self._shared = Shared()
        self._gate = asyncio.Semaphore(PARALLEL)
        self._known: dict[str, tuple[LockState, asyncio.Task[Holder | None]]] = {}
        self._newest = 0.0
        self.last: dict[str, Holder] = {}
        """What each HelmRelease claims, or claimed last: who waits for objects that one has left is to be woken."""

    def lists(self) -> list[Prefetch]:
        """What an index is made from; the few releases that Helm keeps elsewhere than in Secrets are asked for one by one."""
        return [
            Prefetch(HELM_RELEASE, namespace=self._config.helm_project_operator.system_namespace),
            Prefetch(SECRET, tuple(RECORD_LABELS.items()), headers=True),
        ]

    async def fresh(self, reader: Reader) -> Locked:
        """An index whose lists were begun after this call; of a sweep, one of its moment, which nobody else shares.

        Who calls while lists are read shares the next ones, so a storm of events makes few; a release that is slow to
        read holds up those who wait for it, and not whoever comes later and finds his object without it.
        """
        if isinstance(reader, Snapshot):
            return await self._make(reader)

        async def begin() -> asyncio.Task[Locked]:
            return started(self._make(await Snapshot.of(reader, self.lists())))

        made: asyncio.Task[Locked] = await self._shared.read("lists", begin)
        return await asyncio.shield(made)

    async def include(self, helm_release: Object, versions: frozenset[tuple[str, str]], reader: Reader) -> None:
        """Know what a HelmRelease locks before its objects are observed, so that an event of what changes later leads to it.

        ``versions`` are those of its release's records.
        """
        holder = self.locked.holders.get(helm_release["metadata"]["name"])
        if holder is None or holder.state != (declaration_of(helm_release), versions):
            await self.fresh(reader)

    async def _make(self, reader: Snapshot) -> Locked:
        system = self._config.helm_project_operator.system_namespace
        holders: dict[str, Holder] = {}
        declared: dict[str, Declaration] = {}
        failed: list[ApiError] = []

        async def add(helm_release: Object) -> None:
            name = helm_release["metadata"]["name"]
            declared[name] = declaration_of(helm_release)
            release = claim_of(helm_release, self._config)
            if release is None:
                return
            try:
                holder = await self._holder(helm_release, release, reader)
            except ApiError as error:  # of one release: the others are locked all the same
                failed.append(error)
                return
            except Exception:
                log.exception("a bug: what HelmRelease %s locks cannot be determined", name)
                failed.append(ApiError(f"what HelmRelease {name} locks cannot be determined: see the log"))
                return
            if holder is not None:
                holders[name] = holder

        await asyncio.gather(*(add(each) for each in await reader.list(HELM_RELEASE, system)))
        self._known = {name: known for name, known in self._known.items() if name in declared}
        by_object: dict[Name, tuple[str, ...]] = {}
        for holder in holders.values():
            for each in holder.objects:
                by_object[each] = (*by_object.get(each, ()), holder.name)
        made = Locked(holders, by_object, declared, failed[0] if failed else None)
        if reader.begun >= self._newest:  # not by who is done first: lists that were begun earlier show less
            self._newest, self.locked = reader.begun, made
            left = [(name, holder) for name, holder in self.last.items() if name not in holders]
            self.last = dict(left[-LEFT:]) | holders
        return made

    async def _holder(self, helm_release: Object, release: Mark, reader: Reader) -> Holder | None:
        """What one HelmRelease locks; read again only when it or a record of its release has changed, or reading failed."""
        name = helm_release["metadata"]["name"]
        headers = await self.records.headers(release, storage_of(helm_release), reader)
        state = declaration_of(helm_release), versions_in(headers)
        known = self._known.get(name)
        if known is None or known[0] != state:
            known = self._known[name] = state, started(self._read(helm_release, release, state, reader))
        try:
            holder = await asyncio.shield(known[1])
        except ApiError:
            self._forget(name, known)
            raise
        if holder is None or not holder.whole:
            self._forget(name, known)
        return holder

    def _forget(self, name: str, known: tuple[LockState, asyncio.Task[Holder | None]]) -> None:
        if self._known.get(name) is known:
            del self._known[name]

    async def _read(self, helm_release: Object, release: Mark, state: LockState, reader: Reader) -> Holder | None:
        async with self._gate:
            history = await self.records.history(release, storage_of(helm_release), reader)
        if history.deployed is None:
            return None
        kinds = {part: await reader.served(part.named.api_version, part.named.kind) for part in history.deployed.parts}
        reach = reach_of(helm_release, release)
        keys = {part.key(kind, release): kind for part, kind in kinds.items() if kind}
        within = {key: kind for key, kind in keys.items() if not reach.outside(kind, key.namespace)}
        return Holder(
            helm_release["metadata"]["name"],
            helm_release["metadata"]["creationTimestamp"],
            release,
            state,
            frozenset(map(name_of, within)),
            frozenset(within.values()),
            frozenset(key.namespace for key in within if key.namespace),
            all(kinds.values()),
        )
