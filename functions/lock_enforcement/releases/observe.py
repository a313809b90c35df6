"""Reads for locks: a HelmRelease, the records of its release, and the objects of the manifest.

An event of one object looks at that object alone, as long as the HelmRelease says that all is well; otherwise, and in a
sweep, at all of them.  What looks like drift is tried in a dry run, so that what the API server would not change is
none; the sweep leaves that to the run that it asks for.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pydantic_core import to_json

from lock_enforcement.drift import drifted
from lock_enforcement.fields import Path, changed_paths, locked_fields, partial, same_object, shown, without_ignored
from lock_enforcement.helm import MANAGED_BY, Mark, is_marked, is_record_name, mark_of, marked, remarked
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
from lock_enforcement.releases.plan import NEVER_DELETED, REPLACED
from lock_enforcement.releases.report import out_of_reach, refused
from lock_enforcement.releases.seen import COMPLETE, LOCKED, Lock, Problem, Seen, kept
from tenantry.api.errors import (
    AdmissionDenied,
    AlreadyExists,
    ApiError,
    Forbidden,
    Invalid,
    KindNotServed,
    NotFound,
    QuotaExceeded,
    RefusedError,
)
from tenantry.engine.reader import Reader, Snapshot
from tenantry.model import limits
from tenantry.model.conditions import find_condition
from tenantry.model.config import Config
from tenantry.model.kinds import (
    HELM_RELEASE,
    HORIZONTAL_POD_AUTOSCALER,
    NAMESPACE,
    ROLE,
    SECRET,
    Key,
    Kind,
    Object,
    is_terminating,
)
from tenantry.model.names import HELM_RECORD_TYPE
from tenantry.model.plan import Refusal

LIST_ABOVE = 4
LIST_ABOVE_IN_SWEEP = 2
"""Objects of one kind in one namespace that are read one by one; more are listed.  A sweep lists once for all releases."""
REPLICAS: Path = ("spec", "replicas")

Version = tuple[str, str, int]


@dataclass(slots=True)
class Memory:
    """What a process has found out, none of which decides a write.

    ``equal``: objects at a version that a dry run found to be as the manifest has them, so that it need not be asked
    again.  ``again``: objects that we deleted in order to make them anew, with what was told of it.
    """

    equal: dict[Version, None] = field(default_factory=dict)
    again: dict[Key, Object] = field(default_factory=dict)

    def is_equal(self, version: Version) -> bool:
        """Whether a dry run said so before."""
        return version in self.equal

    def note_equal(self, version: Version) -> None:
        """A dry run has said so."""
        if len(self.equal) > limits.REMEMBERED:
            self.equal.clear()
        self.equal[version] = None


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
            guard=history.guard,
        )
        causes = None if isinstance(reader, Snapshot) else _only_objects(reader, self._config)
        if causes is not None and not (kept(lock, self._config) and _is_settled(lock, history)):
            causes = None
        if causes is None:  # one that is settled was the oldest when it said so, and no older one can come
            everyone = await reader.list_shared(HELM_RELEASE, system)
            lock = replace(lock, older=_older(helm_release, release, everyone, self._config))
        if not kept(lock, self._config) or history.deployed is None:
            return lock
        if history.guard is not None and not isinstance(reader, Snapshot):
            await self._index.include(helm_release, history.guard.versions, reader)
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

    async def _objects(self, lock: Lock, parts: Sequence[Part], reader: Reader) -> list[Seen]:
        assert lock.release is not None
        found = [await self._target(part, lock, reader) for part in parts]
        live = await self._live([each for each in found if isinstance(each, _Target)], reader)
        claimed = await self._claims(lock, found, live, reader)
        jobs = [self._see(each, lock, live, claimed, reader) if isinstance(each, _Target) else _as_is(each) for each in found]
        return list(await asyncio.gather(*jobs))

    async def _target(self, part: Part, lock: Lock, reader: Reader) -> Seen | _Target:
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
            return Seen(key, None, manifest, problem=Problem("UnknownKind", text))
        key = part.key(kind, lock.release)
        if field := reach_of(lock.helm_release, lock.release).outside(kind, key.namespace):
            return Seen(key, None, manifest, problem=out_of_reach(field, lock.release, [key]), outside=field)
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

        above = LIST_ABOVE_IN_SWEEP if isinstance(reader, Snapshot) else LIST_ABOVE
        jobs = []
        for (kind, namespace), group in groups.items():
            if len(group) > above and kind.namespaced:
                jobs.append(many(kind, namespace, group))
            else:
                jobs += [one(target) for target in group]
        await asyncio.gather(*jobs)
        return found

    async def _claims(
        self, lock: Lock, found: Sequence[Seen | _Target], live: Mapping[Key, Object | ApiError | None], reader: Reader
    ) -> Mapping[Key, str]:
        """The HelmReleases that keep missing objects that are another's; Helm's marks say whose those are that are there."""
        missing = [each for each in found if isinstance(each, _Target) and live[each.key] is None]
        if not missing:
            return {}
        locked = self._index.locked if isinstance(reader, Snapshot) else await self._index.fresh(reader)
        held: dict[Key, str] = {}
        for target in missing:
            first = next(locked.holders(name_of(target.key)), None)
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
    ) -> Seen:
        assert lock.helm_release is not None
        assert lock.release is not None
        live = found[target.key]
        base = Seen(target.key, target.kind, target.wanted)
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
            return base if base.paused else await self._grantable(base, lock.release, reader)
        if bad := annotation_problems(target.wanted, live):
            base = replace(base, problem=Problem("BadIgnoreRule", f"{target.key}: {bad[0]}", blocks=False))
        self._memory.again.pop(target.key, None)
        if base.paused or is_terminating(live):
            return base
        return await self._drift(base, reader)

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

    async def _grantable(self, base: Seen, release: Mark, reader: Reader) -> Seen:
        """A missing object that grants rights, with what the API server says about granting them.

        Nobody grants what he does not have, and any chart can name such rights: that is told, and is no failure of ours that
        events and sweeps would be tried again for.
        """
        assert base.kind is not None
        if base.kind.group != ROLE.group or isinstance(reader, Snapshot):
            return base
        try:
            await reader.try_create(base.kind, marked(base.wanted, release))
        except Forbidden as error:
            return replace(base, problem=refused(Refusal(base.key, "rights", error.message)))
        except (RefusedError, AlreadyExists, NotFound):
            pass  # the write tells, or finds what was made meanwhile: the object, or the Role that a binding needs
        return base

    # -- drift -----------------------------------------------------------------------------------------

    async def _drift(self, base: Seen, reader: Reader) -> Seen:
        """Compare; ask a dry run about what differs."""
        kind = base.kind
        assert base.live is not None
        assert kind is not None
        base, paths = await self._compared(base, base.live, reader)
        if not paths or self._memory.is_equal(_version(base)):
            return base
        if isinstance(reader, Snapshot):
            return replace(base, drift=paths, body=partial(base.wanted, paths))
        fresh = await reader.get(kind, base.key.name, base.key.namespace)
        if fresh is None:
            return replace(base, live=None)
        if fresh is not base.live:  # one from a list lacks the entries of those who wrote it
            base, paths = await self._compared(base, fresh, reader)
            if not paths:
                return base
        try:
            return await self._judged(base, paths, reader)
        except Forbidden as error:
            return replace(base, problem=refused(Refusal(base.key, "rights", error.message)))
        except QuotaExceeded as error:
            return replace(base, problem=refused(Refusal(base.key, "quota", error.message)))
        except AdmissionDenied as error:
            return replace(base, problem=refused(Refusal(base.key, "admission", error.message)))

    async def _compared(self, base: Seen, live: Object, reader: Reader) -> tuple[Seen, tuple[Path, ...]]:
        """Where the live object differs, without the replicas of one that a HorizontalPodAutoscaler scales."""
        base = replace(base, live=live)
        paths = drifted(base.wanted, live)
        if REPLICAS not in paths:
            return base, paths
        try:
            autoscalers = await reader.list(HORIZONTAL_POD_AUTOSCALER, base.key.namespace)
        except (Forbidden, KindNotServed):
            return base, paths
        targets = [(found.get("spec") or {}).get("scaleTargetRef") or {} for found in autoscalers]
        if any((target.get("kind"), target.get("name")) == (base.key.kind, base.key.name) for target in targets):
            base = replace(base, wanted=without_ignored(base.wanted, ["/spec/replicas"]))
            paths = tuple(path for path in paths if path != REPLICAS)
        return base, paths

    async def _judged(self, base: Seen, paths: tuple[Path, ...], reader: Reader) -> Seen:
        """What an apply of the manifest's fields would change, by a dry run of the smallest apply that puts them back."""
        assert base.kind is not None
        assert base.live is not None
        body = partial(base.wanted, paths)
        result = await self._tried(base.kind, body, reader)
        if result is None or set(drifted(base.wanted, result)) - set(paths):
            body = base.wanted  # a list or map around a field is replaced whole: then all of it is needed
            result = await self._tried(base.kind, body, reader)
        if result is None:
            return await self._unreachable(base, paths, reader)
        if same_object(base.live, result):
            self._memory.note_equal(_version(base))
            return base
        changed = changed_paths(paths, base.live, result) or paths
        if any((base.key.kind, shown(path)) in REPLACED for path in changed):
            return replace(base, drift=changed)
        return replace(base, drift=changed, body=body)

    async def _tried(self, kind: Kind, body: Object, reader: Reader) -> Object | None:
        """What an apply would make; None where the API server does not take it."""
        try:
            return await reader.try_apply(kind, body)
        except Invalid:
            return None

    async def _unreachable(self, base: Seen, paths: tuple[Path, ...], reader: Reader) -> Seen:
        """An update is refused: make it anew if the manifest as such is valid, else leave out what is not."""
        assert base.kind is not None
        assert base.live is not None
        if len(paths) > 1:
            results = {path: await self._tried(base.kind, partial(base.wanted, [path]), reader) for path in paths}
            usable = tuple(path for path, result in results.items() if result is not None and not same_object(base.live, result))
        else:
            usable = ()
        mark = mark_of(base.live)  # as it would be made anew: without Helm's marks our fence refuses it
        try:
            await reader.try_create(base.kind, base.wanted if mark is None else marked(base.wanted, mark))
        except AlreadyExists:
            if base.kind.kind in NEVER_DELETED:
                text = (
                    f"{base.key}: {', '.join(map(shown, paths))} cannot be changed back, and deleting it would lose what it "
                    "holds: put it right by hand"
                )
                return replace(base, problem=Problem("Immutable", text))
            return replace(base, drift=paths)
        except Invalid as error:
            problem = refused(Refusal(base.key, "invalid", error.message))
        else:
            return replace(base, live=None)  # it vanished meanwhile
        if usable:
            return replace(base, drift=usable, body=partial(base.wanted, usable))
        return replace(base, problem=problem)


async def _as_is(seen: Seen) -> Seen:
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


def _version(base: Seen) -> Version:
    assert base.live is not None
    metadata = base.live["metadata"]
    return metadata["uid"], metadata["resourceVersion"], hash(to_json(base.wanted))


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
