"""Reads for locks: a HelmRelease, the records of its release, and the objects of the manifest.

After an event of one object only that object is read, as long as the HelmRelease says that all is well; otherwise, and in a
sweep, all of them.  What looks like drift is tried in a dry run, so that what the API server would not change is
none; the sweep leaves that to the run that it asks for.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lock_enforcement.fields import locked_fields, without_ignored
from lock_enforcement.helm import MANAGED_BY, Mark, is_marked, mark_of, release_in_name, remarked
from lock_enforcement.index import Index, name_of
from lock_enforcement.locks import (
    annotation_problems,
    claim_of,
    has_pause,
    ignored,
    reach_of,
    release_named,
    resumed,
    storage_of,
)
from lock_enforcement.records import RecordedObject
from lock_enforcement.releases.report import out_of_reach, refused
from lock_enforcement.releases.seen import COMPLETE, LOCKED, Lock, LockedObject, LockProblem, kept
from lock_enforcement.releases.trial import Memory, grantable, with_drift
from tenantry.api.errors import ApiError, Forbidden, KindNotServed
from tenantry.engine.reader import Reader
from tenantry.model.conditions import find_condition
from tenantry.model.config import Config
from tenantry.model.kinds import HELM_RELEASE, NAMESPACE, SECRET, Key, Kind, Object, is_terminating
from tenantry.model.names import HELM_RECORD_TYPE
from tenantry.model.plan import Refusal
from tenantry.model.releases import by_age

LIST_ABOVE = 4
LIST_ABOVE_IN_SWEEP = 2
"""Objects of one kind in one namespace that are read one by one; more are listed.  A sweep lists once for all releases."""


class Observer:
    """Observes the locks of one configuration."""

    def __init__(self, config: Config, index: Index, memory: Memory) -> None:
        self._config = config
        self._index = index
        self._memory = memory

    async def lock(self, name: str, reader: Reader, *, paused_too: bool = False) -> Lock | None:
        """One HelmRelease and what it locks; with ``paused_too`` as if nobody had paused it."""
        system = self._config.helm_project_operator.system_namespace
        helm_release = await reader.get(HELM_RELEASE, name, system)
        if helm_release is None:
            return None
        if paused_too:
            helm_release = resumed(helm_release)
        release = claim_of(helm_release, self._config)
        if release is None:
            return Lock(helm_release, release_named(helm_release))
        history = await self._index.records.history(release, storage_of(helm_release), reader)
        lock = Lock(
            helm_release,
            release,
            newest=history.newest.record if history.newest else None,
            deployed=history.deployed.record if history.deployed else None,
            unreadable=history.unreadable,
            age_s=max(0.0, time.time() - history.changed_at),
            count=len(history.deployed.parts) if history.deployed else 0,
            bad_documents=history.deployed.problems if history.deployed else (),
            precondition=history.precondition,
        )
        causes = _only_objects(reader, self._config)
        if causes is not None and not (kept(lock, self._config) and _is_settled(lock)):
            causes = None
        if causes is None:  # one that is settled was the oldest when it said so, and no older one can come
            everyone = await reader.list_shared(HELM_RELEASE, system)
            lock = replace(lock, older=_older(helm_release, release, everyone, self._config))
        if not kept(lock, self._config) or history.deployed is None:
            return lock
        if history.precondition is not None and reader.live:
            await self._index.include(helm_release, history.precondition.versions, reader)
        objects, parts = _Objects(lock, release, self._index, self._memory, reader), history.deployed.parts
        if causes is not None:
            some = await objects.observe([part for part in parts if (part.named.kind, part.named.name) in causes])
            if all(each.problem is None for each in some):
                return replace(lock, objects=some)
        return replace(lock, objects=await objects.observe(parts))


@dataclass(frozen=True, slots=True)
class _Objects:
    """Reads the objects of one lock in one run.  Where an object has a problem already, nothing of it is read."""

    lock: Lock
    release: Mark
    index: Index
    memory: Memory
    reader: Reader

    async def observe(self, parts: Sequence[RecordedObject]) -> tuple[LockedObject, ...]:
        """The objects of these parts of the manifest."""
        named = [await self._named(part) for part in parts]
        live = await self._live(named)
        claimed = await self._claims([key for key, found in live.items() if found is None])
        return tuple(await asyncio.gather(*(self._see(each, live, claimed) for each in named)))

    async def _named(self, part: RecordedObject) -> LockedObject:
        """An object of the manifest, with the reason why it is not to be read, if there is one."""
        manifest = remarked(part.load(), self.release)
        kind = await self.reader.served(part.named.api_version, part.named.kind)
        key = part.key(kind, self.release)
        if kind is None:
            text = (
                f"{key}: the API server does not serve {key.kind} in {key.api_version}: install its CRD, or upgrade the release"
            )
            return LockedObject(key, None, manifest, problem=LockProblem("UnknownKind", text))
        if field := reach_of(self.lock.helm_release, self.release).outside(kind, key.namespace):
            return LockedObject(key, None, manifest, problem=out_of_reach(field, self.release, [key]), outside=field)
        return LockedObject(key, kind, locked_fields(manifest, key.namespace))

    async def _live(self, named: Sequence[LockedObject]) -> dict[Key, Object | ApiError | None]:
        """The live objects, or why one cannot be read."""
        groups: dict[tuple[Kind, str], list[Key]] = {}
        for each in named:
            if each.kind is not None:
                groups.setdefault((each.kind, each.key.namespace), []).append(each.key)
        found: dict[Key, Object | ApiError | None] = {}

        async def one(kind: Kind, key: Key) -> None:
            try:
                found[key] = await self.reader.get(kind, key.name, key.namespace)
            except (Forbidden, KindNotServed) as error:
                found[key] = error

        async def many(kind: Kind, namespace: str, keys: Sequence[Key]) -> None:
            fields = f"type!={HELM_RECORD_TYPE}" if kind == SECRET else ""
            try:
                listed = {item["metadata"]["name"]: item for item in await self.reader.list(kind, namespace, fields=fields)}
            except (Forbidden, KindNotServed) as error:
                found.update(dict.fromkeys(keys, error))
                return
            found.update({key: listed.get(key.name) for key in keys})

        above = LIST_ABOVE if self.reader.live else LIST_ABOVE_IN_SWEEP
        jobs = []
        for (kind, namespace), keys in groups.items():
            if len(keys) > above and kind.namespaced:
                jobs.append(many(kind, namespace, keys))
            else:
                jobs += [one(kind, key) for key in keys]
        await asyncio.gather(*jobs)
        return found

    async def _claims(self, missing: Sequence[Key]) -> Mapping[Key, str]:
        """The HelmReleases that keep missing objects that are another's; Helm's marks say whose those are that are there."""
        if not missing:
            return {}
        locked = await self.index.fresh(self.reader) if self.reader.live else self.index.locked
        name, held = self.lock.helm_release["metadata"]["name"], dict[Key, str]()
        for key in missing:
            first = next(locked.holders_of(name_of(key)), None)
            if first is not None and first.name != name and first.release != self.release:
                held[key] = first.name
        return held

    async def _see(
        self, base: LockedObject, found: Mapping[Key, Object | ApiError | None], claimed: Mapping[Key, str]
    ) -> LockedObject:
        if base.problem is not None:
            return base
        key, live = base.key, found[base.key]
        if isinstance(live, ApiError):
            return replace(base, problem=refused(Refusal(key, "rights", live.message)))
        base = replace(base, live=live, paused=has_pause(live) or has_pause(base.wanted))
        if problem := await self._not_ours(key, live, claimed):
            return replace(base, problem=problem)
        if live is None:
            base = replace(base, again=self.memory.again.get(key))
            return base if base.paused else await grantable(base, self.release, self.reader)
        if bad := annotation_problems(base.wanted, live):
            base = replace(base, problem=LockProblem("BadIgnoreRule", f"{key}: {bad[0]}", blocks=False))
        base = replace(base, wanted=without_ignored(base.wanted, ignored(self.lock.helm_release, base.wanted, live)))
        self.memory.again.pop(key, None)
        if base.paused or is_terminating(live):
            return base
        return await with_drift(base, self.memory, self.reader)

    async def _not_ours(self, key: Key, live: Object | None, claimed: Mapping[Key, str]) -> LockProblem | None:
        if live is not None and not is_marked(live, self.release):
            return LockProblem("ForeignObject", _foreign(key, live, self.release))
        if key in claimed:
            text = f"{key} is kept by the older HelmRelease {claimed[key]}: take it out of one of the two charts"
            return LockProblem("Conflict", text)
        if live is None and key.namespace:
            namespace = await self.reader.get(NAMESPACE, key.namespace)
            if namespace is None or is_terminating(namespace):
                return LockProblem("NamespaceMissing", f"{key}: there is no namespace {key.namespace}: create it")
        return None


def _foreign(key: Key, live: Object, release: Mark) -> str:
    """That an object is not this release's by Helm's marks, and what would make it so."""
    mark = mark_of(live)
    if mark is not None and mark != release:
        return f"{key} belongs to the Helm release {mark} by its annotations, and is left alone"
    return (
        f"{key} lacks Helm's marks of release {release} (label {MANAGED_BY}, annotations meta.helm.sh/release-*) and is left "
        "alone: helm upgrade --take-ownership writes them"
    )


def _older(helm_release: Object, release: Mark, everyone: Sequence[Object], config: Config) -> str:
    """The oldest HelmRelease for the same release, if that is another one."""
    same = by_age(found for found in everyone if claim_of(found, config) == release)
    first = next(iter(same), helm_release)["metadata"]["name"]
    return "" if first == helm_release["metadata"]["name"] else str(first)


def _only_objects(reader: Reader, config: Config) -> frozenset[tuple[str, str]] | None:
    """Kind and name of the objects that woke the run; None when something else did."""
    system = config.helm_project_operator.system_namespace
    for cause in reader.causes:
        if (cause.kind, cause.namespace) == (HELM_RELEASE.kind, system) or release_in_name(cause.name):
            return None
    return frozenset((cause.kind, cause.name) for cause in reader.causes) or None


def _is_settled(lock: Lock) -> bool:
    """Whether the HelmRelease says of this very revision and generation that everything is kept."""
    helm_release = lock.helm_release
    status = helm_release.get("status") or {}
    conditions = [find_condition(helm_release, each) or {} for each in (LOCKED, COMPLETE)]
    return (
        all(each.get("status") == "True" for each in conditions)
        and lock.newest is not None
        and status.get("version") == lock.newest.revision
        and status.get("observedGeneration") == helm_release["metadata"].get("generation")
    )
