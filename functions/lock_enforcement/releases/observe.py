"""Reads for locks: a HelmRelease, the records of its release, and the objects of the manifest.

An event of one object looks at that object alone, as long as the HelmRelease says that all is well; otherwise, and in a
sweep, at all of them.  What looks like drift is tried in a dry run, so that what the API server would not change is
none; the sweep leaves that to the run that it asks for.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lock_enforcement.fields import locked_fields, without_ignored
from lock_enforcement.helm import MANAGED_BY, Mark, is_marked, is_record_name, mark_of, remarked
from lock_enforcement.index import Index, name_of
from lock_enforcement.locks import (
    age_of,
    annotation_problems,
    has_pause,
    ignored,
    is_ours,
    reach_of,
    release_named,
    resumed,
    storage_of,
)
from lock_enforcement.records import Content, History, Part
from lock_enforcement.releases.report import out_of_reach, refused
from lock_enforcement.releases.seen import COMPLETE, LOCKED, Lock, LockedObject, Problem, kept
from lock_enforcement.releases.trial import Memory, grantable, with_drift
from tenantry.api.errors import ApiError, Forbidden, KindNotServed
from tenantry.engine.reader import Reader
from tenantry.model.conditions import find_condition
from tenantry.model.config import Config
from tenantry.model.kinds import HELM_RELEASE, NAMESPACE, SECRET, Key, Kind, Object, is_terminating
from tenantry.model.names import HELM_RECORD_TYPE
from tenantry.model.plan import Refusal

LIST_ABOVE = 4
LIST_ABOVE_IN_SWEEP = 2
"""Objects of one kind in one namespace that are read one by one; more are listed.  A sweep lists once for all releases."""


@dataclass(frozen=True, slots=True)
class _Target:
    """An object of the manifest whose kind and place are known."""

    key: Key
    kind: Kind
    wanted: Object


class Observer:
    """Observes the locks of one configuration."""

    def __init__(self, config: Config, index: Index, memory: Memory) -> None:
        self._config = config
        self._index = index
        self._memory = memory

    async def lock(self, name: str, reader: Reader, *, paused_too: bool = False) -> Lock:
        """One HelmRelease and what it locks; with ``paused_too`` as if nobody had paused it."""
        system = self._config.helm_project_operator.system_namespace
        helm_release = await reader.get(HELM_RELEASE, name, system)
        if helm_release is None:
            return Lock(name, None)
        if paused_too:
            helm_release = resumed(helm_release)
        release = release_named(helm_release)
        if release is None or is_terminating(helm_release) or not is_ours(helm_release, self._config):
            return Lock(name, helm_release, release)
        history = await self._index.records.history(release, storage_of(helm_release), reader)
        lock = Lock(
            name,
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
        if causes is not None and not (kept(lock, self._config) and _is_settled(lock, history)):
            causes = None
        if causes is None:  # one that is settled was the oldest when it said so, and no older one can come
            everyone = await reader.list_shared(HELM_RELEASE, system)
            lock = replace(lock, older=_older(helm_release, release, everyone, self._config))
        if not kept(lock, self._config) or history.deployed is None:
            return lock
        if history.precondition is not None and reader.live:
            await self._index.include(helm_release, history.precondition.versions, reader)
        return await self._with_objects(lock, causes, history.deployed, reader)

    async def _with_objects(
        self, lock: Lock, causes: frozenset[tuple[str, str]] | None, content: Content, reader: Reader
    ) -> Lock:
        assert lock.release is not None
        if causes is not None:
            parts = [part for part in content.parts if (part.kind, part.name) in causes]
            objects = await self._objects(lock, parts, reader)
            if all(each.problem is None for each in objects):
                return replace(lock, whole=False, objects=tuple(objects))
        return replace(lock, objects=tuple(await self._objects(lock, content.parts, reader)))

    # -- objects ---------------------------------------------------------------------------------------

    async def _objects(self, lock: Lock, parts: Sequence[Part], reader: Reader) -> list[LockedObject]:
        assert lock.release is not None
        found = [await self._target(part, lock, reader) for part in parts]
        live = await self._live([each for each in found if isinstance(each, _Target)], reader)
        claimed = await self._claims(lock, found, live, reader)
        jobs = [self._see(each, lock, live, claimed, reader) if isinstance(each, _Target) else _as_is(each) for each in found]
        return list(await asyncio.gather(*jobs))

    async def _target(self, part: Part, lock: Lock, reader: Reader) -> LockedObject | _Target:
        """What is to be looked at; an object that is not to be, with the reason, of which nothing is read."""
        assert lock.helm_release is not None
        assert lock.release is not None
        manifest = remarked(part.load(), lock.release)
        kind = await reader.served(part.api_version, part.kind)
        if kind is None:
            key = Key(part.api_version, part.kind, part.namespace or lock.release.namespace, part.name)
            text = (
                f"{key}: the API server does not serve {part.kind} in {part.api_version}: install its CRD, or upgrade the release"
            )
            return LockedObject(key, None, manifest, problem=Problem("UnknownKind", text))
        key = part.key(kind, lock.release)
        if field := reach_of(lock.helm_release, lock.release).outside(kind, key.namespace):
            return LockedObject(key, None, manifest, problem=out_of_reach(field, lock.release, [key]), outside=field)
        return _Target(key, kind, locked_fields(manifest, key.namespace))

    async def _live(self, targets: Sequence[_Target], reader: Reader) -> dict[Key, Object | ApiError | None]:
        """The live objects, or why one cannot be read."""
        groups: dict[tuple[Kind, str], list[_Target]] = {}
        for target in targets:
            groups.setdefault((target.kind, target.key.namespace), []).append(target)
        found: dict[Key, Object | ApiError | None] = {}

        async def one(target: _Target) -> None:
            try:
                found[target.key] = await reader.get(target.kind, target.key.name, target.key.namespace)
            except (Forbidden, KindNotServed) as error:
                found[target.key] = error

        async def many(kind: Kind, namespace: str, group: Sequence[_Target]) -> None:
            fields = f"type!={HELM_RECORD_TYPE}" if kind == SECRET else ""
            try:
                listed = {item["metadata"]["name"]: item for item in await reader.list(kind, namespace, fields=fields)}
            except (Forbidden, KindNotServed) as error:
                found.update({target.key: error for target in group})
                return
            found.update({target.key: listed.get(target.key.name) for target in group})

        above = LIST_ABOVE if reader.live else LIST_ABOVE_IN_SWEEP
        jobs = []
        for (kind, namespace), group in groups.items():
            if len(group) > above and kind.namespaced:
                jobs.append(many(kind, namespace, group))
            else:
                jobs += [one(target) for target in group]
        await asyncio.gather(*jobs)
        return found

    async def _claims(
        self, lock: Lock, found: Sequence[LockedObject | _Target], live: Mapping[Key, Object | ApiError | None], reader: Reader
    ) -> Mapping[Key, str]:
        """The HelmReleases that keep missing objects that are another's; Helm's marks say whose those are that are there."""
        missing = [each for each in found if isinstance(each, _Target) and live[each.key] is None]
        if not missing:
            return {}
        locked = await self._index.fresh(reader) if reader.live else self._index.locked
        held: dict[Key, str] = {}
        for target in missing:
            first = next(locked.holders_of(name_of(target.key)), None)
            if first is not None and first.name != lock.name and first.release != lock.release:
                held[target.key] = first.name
        return held

    async def _see(
        self,
        target: _Target,
        lock: Lock,
        found: Mapping[Key, Object | ApiError | None],
        claimed: Mapping[Key, str],
        reader: Reader,
    ) -> LockedObject:
        assert lock.helm_release is not None
        assert lock.release is not None
        live = found[target.key]
        base = LockedObject(target.key, target.kind, target.wanted)
        if isinstance(live, ApiError):
            return replace(base, problem=refused(Refusal(target.key, "rights", live.message)))
        base = replace(base, live=live)
        problem = await self._not_ours(target, lock, live, claimed, reader)
        if problem is not None:
            return replace(base, problem=problem)
        pointers = ignored(lock.helm_release, target.wanted, live)
        wanted = without_ignored(target.wanted, pointers) if live is not None else target.wanted
        base = replace(base, wanted=wanted, paused=has_pause(live) or has_pause(target.wanted))
        if live is None:
            base = replace(base, again=self._memory.again.get(target.key))
            return base if base.paused else await grantable(base, lock.release, reader)
        if bad := annotation_problems(target.wanted, live):
            base = replace(base, problem=Problem("BadIgnoreRule", f"{target.key}: {bad[0]}", blocks=False))
        self._memory.again.pop(target.key, None)
        if base.paused or is_terminating(live):
            return base
        return await with_drift(base, self._memory, reader)

    async def _not_ours(
        self, target: _Target, lock: Lock, live: Object | None, claimed: Mapping[Key, str], reader: Reader
    ) -> Problem | None:
        assert lock.release is not None
        if live is not None and not is_marked(live, lock.release):
            return Problem("ForeignObject", _foreign(target.key, live, lock.release))
        if target.key in claimed:
            text = f"{target.key} is kept by the older HelmRelease {claimed[target.key]}: take it out of one of the two charts"
            return Problem("Conflict", text)
        if live is None and target.key.namespace:
            namespace = await reader.get(NAMESPACE, target.key.namespace)
            if namespace is None or is_terminating(namespace):
                return Problem("NamespaceMissing", f"{target.key}: there is no namespace {target.key.namespace}: create it")
        return None


async def _as_is(seen: LockedObject) -> LockedObject:
    return seen


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
    same = [
        found for found in everyone if is_ours(found, config) and not is_terminating(found) and release_named(found) == release
    ]
    first = min(same, key=age_of, default=helm_release)["metadata"]["name"]
    return "" if first == helm_release["metadata"]["name"] else str(first)


def _only_objects(reader: Reader, config: Config) -> frozenset[tuple[str, str]] | None:
    """Kind and name of the objects that woke the run; None when something else did."""
    system = config.helm_project_operator.system_namespace
    for cause in reader.causes:
        if (cause.kind, cause.namespace) == (HELM_RELEASE.kind, system) or is_record_name(cause.name):
            return None
    return frozenset((cause.kind, cause.name) for cause in reader.causes) or None


def _is_settled(lock: Lock, history: History) -> bool:
    """Whether the HelmRelease says of this very revision and generation that everything is kept."""
    helm_release = lock.helm_release
    assert helm_release is not None
    assert history.newest is not None
    status = helm_release.get("status") or {}
    conditions = [find_condition(helm_release, each) or {} for each in (LOCKED, COMPLETE)]
    return (
        all(each.get("status") == "True" for each in conditions)
        and status.get("version") == history.newest.record.revision
        and status.get("observedGeneration") == helm_release["metadata"].get("generation")
    )
