"""The wiring of releases: which HelmReleases an event touches, and what a sweep looks at.

An object leads to its HelmRelease through the index of what is locked.  An object that the index does not know is looked up in
one that was begun after the event arrived, so that a revision which another process has seen is not missed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lock_enforcement.helm import release_in_name
from lock_enforcement.index import Index, Locked, name_of
from lock_enforcement.locks import claim_of, helm_releases_of, release_named
from lock_enforcement.releases.observe import Observer
from lock_enforcement.releases.plan import plan_lock
from lock_enforcement.releases.report import last_drift_of, report_lock
from lock_enforcement.releases.seen import Lock
from lock_enforcement.releases.trial import Memory
from lock_enforcement.started import is_locked_source, watches
from tenantry.engine.reader import Reader
from tenantry.engine.snapshot import Prefetch
from tenantry.engine.unit import ANY_KIND, EVERY, Handler, Owner, Stages, Unit
from tenantry.model.config import Config
from tenantry.model.kinds import CONFIG_MAP, HELM_RELEASE, SECRET, Key, Object
from tenantry.model.plan import Delete, Plan
from tenantry.model.releases import is_release_name
from tenantry.serving import Settings

RELEASE = "release"
PAUSE_S = 0.1
"""What comes during a run, and right after it, shares the next one: twenty objects that change at once are two runs."""


class LockedReleases(Unit):
    """The unit ``releases`` of lock-enforcement."""

    name = "releases"
    kinds = frozenset({HELM_RELEASE, SECRET, CONFIG_MAP, ANY_KIND})
    readable = frozenset({HELM_RELEASE})

    def __init__(self, config: Config, index: Index) -> None:
        self._config = config
        self._index = index
        self._memory = Memory()
        observer = Observer(config, index, self._memory)
        self.handlers = {
            RELEASE: Handler[Lock | None](
                observe=lambda owner, reader: observer.lock(owner.name, reader),
                plan=self._plan,
                report=lambda lock, refusals: report_lock(lock, refusals, config),
                accepts=lambda owner: not owner.namespace and is_release_name(owner.name),
                pause_s=PAUSE_S,
                rests_on_reads=True,  # and on the index, which is read later than what it is asked about
            )
        }

    def _plan(self, lock: Lock | None) -> Plan:
        made = plan_lock(lock, self._config)
        anew = {write.key for write in made.writes() if isinstance(write, Delete)}
        for each in lock.objects if lock else ():
            if each.key in anew:
                self._memory.again[each.key] = last_drift_of(each)  # so that making it anew gets no second Event
        return made

    async def owners(self, key: Key, hint: Mapping[str, str], reader: Reader) -> Stages:
        """The HelmReleases that a key concerns: itself, that of a record, or those that lock the object.

        A source of ours that begins to watch concerns them all: no event reported what changed before.
        """
        del hint
        if is_locked_source(key):
            return EVERY if await watches(key, reader) else []
        system = self._config.helm_project_operator.system_namespace
        if key.kind == HELM_RELEASE.kind and key.api_version == HELM_RELEASE.api_version:
            return [await self._with_same_release(key, reader)] if key.namespace == system else []
        if key.kind in (SECRET.kind, CONFIG_MAP.kind) and release_in_name(key.name):
            return [[Owner(RELEASE, each["metadata"]["name"]) for each in helm_releases_of(key, await self._everyone(reader))]]
        if key.kind == "Namespace":
            return [await self._in_namespace(key, reader)]
        if found := _holders(self._index.locked, key):
            return [found]
        locked = await self._index.fresh(reader)
        if found := _holders(locked, key):
            return [found]
        if locked.failed is not None:
            raise locked.failed  # it may be that release's
        return []

    async def _with_same_release(self, key: Key, reader: Reader) -> list[Owner]:
        """A HelmRelease, and those that claim the same release or the same objects: who keeps them may have changed."""
        everyone = await self._everyone(reader)
        live = next((found for found in everyone if found["metadata"]["name"] == key.name), None)
        last = self._index.last.get(key.name)
        release = claim_of(live, self._config) if live is not None else None
        same = {release, last.release if last else None} - {None}
        names = {key.name, *(found["metadata"]["name"] for found in everyone if release_named(found) in same)}
        for name in last.objects if last and last.release != release else ():
            names.update(self._index.locked.by_object.get(name, ()))
        return [Owner(RELEASE, name) for name in sorted(names)]

    async def _everyone(self, reader: Reader) -> list[Object]:
        return await reader.list_shared(HELM_RELEASE, self._config.helm_project_operator.system_namespace)

    async def _in_namespace(self, key: Key, reader: Reader) -> list[Owner]:
        """A namespace may be a locked object itself; one that appears lets objects be made that wait for it."""
        locked = await self._index.fresh(reader)
        waiting = {Owner(RELEASE, holder.name) for holder in locked.holders.values() if key.name in holder.namespaces}
        return sorted({*_holders(locked, key), *waiting})

    def prefetch(self) -> Sequence[Prefetch]:
        """All HelmReleases, and the metadata of all records."""
        return self._index.lists()

    async def sweep(self, reader: Reader) -> Sequence[Owner]:
        """Every HelmRelease of the system namespace."""
        await self._index.fresh(reader)
        system = self._config.helm_project_operator.system_namespace
        return [Owner(RELEASE, found["metadata"]["name"]) for found in await reader.list(HELM_RELEASE, system)]


def _holders(locked: Locked, key: Key) -> list[Owner]:
    return [Owner(RELEASE, holder.name) for holder in locked.holders_of(name_of(key))]


def made(settings: Settings) -> LockedReleases:
    """The unit of a process; the index is that of the sources, too."""
    return LockedReleases(settings.config, settings.common(Index))
