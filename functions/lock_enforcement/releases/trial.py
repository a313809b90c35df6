"""Which of what looks like drift is: the API server's dry runs have the last word.

What they would not change is no drift, and what they refuse is reported.  A sweep makes no dry run: it leaves that to the run
that it asks for.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from pydantic_core import to_json

from lock_enforcement.fields import changed_paths, content_of, drifted, partial, without_ignored
from lock_enforcement.helm import Mark, mark_of, marked
from lock_enforcement.releases.plan import NEVER_DELETED, REPLACED
from lock_enforcement.releases.report import refused
from lock_enforcement.releases.seen import LockedObject, LockProblem
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
from tenantry.model import limits
from tenantry.model.comparison import Path, Schema, shown
from tenantry.model.kinds import HORIZONTAL_POD_AUTOSCALER, ROLE, Key, Kind, Object
from tenantry.model.plan import Refusal

REPLICAS: Path = ("spec", "replicas")

Compared = tuple[str, int, int]
"""The uid of an object, and hashes of what it and its manifest say: its status and who owns its fields may change."""


@dataclass(slots=True)
class Memory:
    """What a process has found out, none of which decides a write.

    ``equal``: objects that a dry run found to be as the manifest has them, so that it need not be asked again.  ``again``:
    objects that we deleted in order to make them anew, with what was reported of it.
    """

    equal: set[Compared] = field(default_factory=set)
    again: dict[Key, Object] = field(default_factory=dict)

    def note_equal(self, content: Compared) -> None:
        """A dry run has found an object to be as the manifest has it."""
        if len(self.equal) > limits.REMEMBERED:
            self.equal.clear()
        self.equal.add(content)


async def grantable(base: LockedObject, release: Mark, reader: Reader) -> LockedObject:
    """A missing object that grants rights, with what the API server says about granting them.

    Nobody grants what he does not have, and any chart can name such rights: that is reported, and is no failure of ours for
    which events and sweeps would be tried again.
    """
    assert base.kind is not None
    if base.kind.group != ROLE.group or not reader.live:
        return base
    try:
        await reader.try_create(base.kind, marked(base.wanted, release))
    except Forbidden as error:
        return replace(base, problem=refused(Refusal(base.key, error.cause, error.message)))
    except (RefusedError, AlreadyExists, NotFound):
        pass  # the write reports it, or finds what was made meanwhile: the object, or the Role that a binding needs
    return base


async def with_drift(base: LockedObject, memory: Memory, reader: Reader) -> LockedObject:
    """Compare; ask a dry run about what differs."""
    kind = base.kind
    assert base.live is not None
    assert kind is not None
    schema = await reader.schema(kind)
    base, paths = await _compared(base, base.live, schema, reader)
    if not paths or _content(base) in memory.equal:
        return base
    if not reader.live:
        return replace(base, drift=paths, body=partial(base.wanted, paths))
    fresh = await reader.get(kind, base.key.name, base.key.namespace)
    if fresh is None:
        return replace(base, live=None)
    if fresh is not base.live:  # one from a list lacks the entries of those who wrote it
        base, paths = await _compared(base, fresh, schema, reader)
        if not paths:
            return base
    try:
        return await _judged(base, paths, schema, memory, reader)
    except (Forbidden, QuotaExceeded, AdmissionDenied) as error:
        return replace(base, problem=refused(Refusal(base.key, error.cause, error.message)))


async def _compared(base: LockedObject, live: Object, schema: Schema, reader: Reader) -> tuple[LockedObject, tuple[Path, ...]]:
    """Where the live object differs, without the replicas of one that a HorizontalPodAutoscaler scales."""
    base = replace(base, live=live)
    paths = drifted(base.wanted, live, schema)
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


async def _judged(base: LockedObject, paths: tuple[Path, ...], schema: Schema, memory: Memory, reader: Reader) -> LockedObject:
    """What an apply of the manifest's fields would change, by a dry run of the smallest apply that puts them back."""
    assert base.kind is not None
    assert base.live is not None
    body = partial(base.wanted, paths)
    result = await _tried(base.kind, body, reader)
    if result is None or set(drifted(base.wanted, result, schema)) - set(paths):
        body = base.wanted  # a list or map around a field is replaced whole: then all of it is needed
        result = await _tried(base.kind, body, reader)
    if result is None:
        return await _unreachable(base, paths, reader)
    changed = changed_paths(paths, base.live, result)
    if not changed:
        memory.note_equal(_content(base))
        return base
    if any((base.key.kind, shown(path)) in REPLACED for path in changed):
        return replace(base, drift=changed)
    return replace(base, drift=changed, body=body)


async def _tried(kind: Kind, body: Object, reader: Reader) -> Object | None:
    """What an apply would make; None where the API server does not take it."""
    try:
        return await reader.try_apply(kind, body)
    except Invalid:
        return None


async def _unreachable(base: LockedObject, paths: tuple[Path, ...], reader: Reader) -> LockedObject:
    """An update is refused: make it anew if the manifest as such is valid, else leave out what is not."""
    assert base.kind is not None
    assert base.live is not None
    usable: list[Path] = []
    for path in paths if len(paths) > 1 else ():
        made = await _tried(base.kind, partial(base.wanted, [path]), reader)
        if made is not None and changed_paths([path], base.live, made):
            usable.append(path)
    mark = mark_of(base.live)  # as it would be made anew: without Helm's marks our fence refuses it
    try:
        await reader.try_create(base.kind, base.wanted if mark is None else marked(base.wanted, mark))
    except AlreadyExists:
        if base.kind.kind in NEVER_DELETED:
            text = (
                f"{base.key}: {', '.join(map(shown, paths))} cannot be changed back, and deleting it would lose what it "
                "holds: put it right by hand"
            )
            return replace(base, problem=LockProblem("Immutable", text))
        return replace(base, drift=paths)
    except Invalid as error:
        if usable:
            return replace(base, drift=tuple(usable), body=partial(base.wanted, usable))
        return replace(base, problem=refused(Refusal(base.key, error.cause, error.message)))
    return replace(base, live=None)  # it vanished meanwhile


def _content(base: LockedObject) -> Compared:
    assert base.live is not None
    return base.live["metadata"]["uid"], hash(to_json(content_of(base.live))), hash(to_json(base.wanted))
