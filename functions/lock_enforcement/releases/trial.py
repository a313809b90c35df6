"""Which of what looks like drift is: the API server's dry runs have the last word.

What it would not change is no drift, and what it would not take is told.  The sweep asks nothing: it leaves that to the run
that it asks for.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from pydantic_core import to_json

from lock_enforcement.drift import drifted
from lock_enforcement.fields import Path, changed_paths, partial, same_object, shown, without_ignored
from lock_enforcement.helm import Mark, mark_of, marked
from lock_enforcement.releases.plan import NEVER_DELETED, REPLACED
from lock_enforcement.releases.report import refused
from lock_enforcement.releases.seen import Problem, Seen
from tenantry.api.errors import (
    AdmissionDenied,
    AlreadyExists,
    Forbidden,
    Invalid,
    KindNotServed,
    NotFound,
    QuotaExceeded,
    RefusedError,
)
from tenantry.engine.reader import Reader
from tenantry.engine.snapshot import Snapshot
from tenantry.model import limits
from tenantry.model.kinds import HORIZONTAL_POD_AUTOSCALER, ROLE, Key, Kind, Object
from tenantry.model.plan import Refusal

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


async def grantable(base: Seen, release: Mark, reader: Reader) -> Seen:
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


async def with_drift(base: Seen, memory: Memory, reader: Reader) -> Seen:
    """Compare; ask a dry run about what differs."""
    kind = base.kind
    assert base.live is not None
    assert kind is not None
    base, paths = await _compared(base, base.live, reader)
    if not paths or memory.is_equal(_version(base)):
        return base
    if isinstance(reader, Snapshot):
        return replace(base, drift=paths, body=partial(base.wanted, paths))
    fresh = await reader.get(kind, base.key.name, base.key.namespace)
    if fresh is None:
        return replace(base, live=None)
    if fresh is not base.live:  # one from a list lacks the entries of those who wrote it
        base, paths = await _compared(base, fresh, reader)
        if not paths:
            return base
    try:
        return await _judged(base, paths, memory, reader)
    except Forbidden as error:
        return replace(base, problem=refused(Refusal(base.key, "rights", error.message)))
    except QuotaExceeded as error:
        return replace(base, problem=refused(Refusal(base.key, "quota", error.message)))
    except AdmissionDenied as error:
        return replace(base, problem=refused(Refusal(base.key, "admission", error.message)))


async def _compared(base: Seen, live: Object, reader: Reader) -> tuple[Seen, tuple[Path, ...]]:
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


async def _judged(base: Seen, paths: tuple[Path, ...], memory: Memory, reader: Reader) -> Seen:
    """What an apply of the manifest's fields would change, by a dry run of the smallest apply that puts them back."""
    assert base.kind is not None
    assert base.live is not None
    body = partial(base.wanted, paths)
    result = await _tried(base.kind, body, reader)
    if result is None or set(drifted(base.wanted, result)) - set(paths):
        body = base.wanted  # a list or map around a field is replaced whole: then all of it is needed
        result = await _tried(base.kind, body, reader)
    if result is None:
        return await _unreachable(base, paths, reader)
    if same_object(base.live, result):
        memory.note_equal(_version(base))
        return base
    changed = changed_paths(paths, base.live, result) or paths
    if any((base.key.kind, shown(path)) in REPLACED for path in changed):
        return replace(base, drift=changed)
    return replace(base, drift=changed, body=body)


async def _tried(kind: Kind, body: Object, reader: Reader) -> Object | None:
    """What an apply would make; None where the API server does not take it."""
    try:
        return await reader.try_apply(kind, body)
    except Invalid:
        return None


async def _unreachable(base: Seen, paths: tuple[Path, ...], reader: Reader) -> Seen:
    """An update is refused: make it anew if the manifest as such is valid, else leave out what is not."""
    assert base.kind is not None
    assert base.live is not None
    if len(paths) > 1:
        results = {path: await _tried(base.kind, partial(base.wanted, [path]), reader) for path in paths}
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


def _version(base: Seen) -> Version:
    assert base.live is not None
    metadata = base.live["metadata"]
    return metadata["uid"], metadata["resourceVersion"], hash(to_json(base.wanted))
