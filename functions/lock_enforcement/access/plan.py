"""The lock of a consumer, put on and taken off by one update each (2.2)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from lock_enforcement.access.seen import ConsumerSeen, is_marked, is_stopped
from tenantry.model.flux.access import value_at
from tenantry.model.flux.consumers import Consumer
from tenantry.model.flux.names import ACCESS_DENIED, LOCK_FINALIZER, LOCKED, REQUESTED_AT, SUSPENDED_BY_LOCK
from tenantry.model.kinds import Object, annotations_of, finalizers_of, is_terminating
from tenantry.model.plan import NOTHING, Edit, KubernetesEvent, Plan, plan_of
from tenantry.model.pointer import pointer

FEW = 3
"""So many consumers are locked one by one, which takes no longer than to list all."""
GRANTED = "AccessGranted"
_GRANTED = "all that it names in other namespaces is allowed again; what the lock had stopped goes on"
_FREED = "nothing of it is denied where it would have to be locked; what the lock had stopped goes on"

Step = Mapping[str, Any]


def plan_consumer(seen: ConsumerSeen | None) -> Plan:
    """Put the lock on or take it off; nothing where it is as it is to be, and while nothing can be decided."""
    if seen is None:
        return NOTHING
    if is_terminating(seen.live):
        return plan_of(Edit(seen.kind, seen.live, tuple(_released(seen)))) if is_marked(seen.live) else NOTHING
    decision, context = seen.decision.decision, seen.context
    if decision == "unknown":
        return NOTHING
    if decision == "deny" and (context.locks or (context.keeps and annotations_of(seen.live).get(LOCKED) == ACCESS_DENIED)):
        steps = tuple(_locked(seen))
        return plan_of(Edit(seen.kind, seen.live, steps)) if steps else NOTHING
    if not is_marked(seen.live):
        return NOTHING
    event = KubernetesEvent(seen.live, GRANTED, _GRANTED if decision == "allow" else _FREED, "Unlock")
    return plan_of(Edit(seen.kind, seen.live, tuple(_released(seen)), event if seen.open else None))


def plan_locks(unlocked: Sequence[ConsumerSeen]) -> Plan:
    """The locks of many, before any of them is told why; of few nothing: they are locked one by one, sooner than all are listed.

    Each is an update of the version that was listed.  What loses its reason meanwhile is freed as the index is looked at again.
    """
    if len(unlocked) <= FEW:
        return NOTHING
    return plan_of(*(write for each in unlocked for write in plan_consumer(each).writes()))


def unlocked_in_doubt(seen: ConsumerSeen | None, plan: Plan) -> frozenset[Hashable]:
    """That a lock goes because there is no profile: a server that has just started may not serve it yet."""
    if seen is None or seen.certain or plan == NOTHING or is_terminating(seen.live):
        return frozenset()
    return frozenset({LOCKED})


def _locked(seen: ConsumerSeen) -> Iterator[Step]:
    live, annotations = seen.live, annotations_of(seen.live)
    stopped, marked = is_stopped(live, seen.row), annotations.get(LOCKED) == ACCESS_DENIED
    if "annotations" not in live["metadata"]:
        yield _add({}, "metadata", "annotations")
    if not marked:
        yield _annotate(LOCKED, ACCESS_DENIED)
    if not stopped:
        if annotations.get(SUSPENDED_BY_LOCK) != "true":
            yield _annotate(SUSPENDED_BY_LOCK, "true")
        yield from _stop(live, seen.row)
    elif not marked and SUSPENDED_BY_LOCK in annotations:
        yield _remove("metadata", "annotations", SUSPENDED_BY_LOCK)  # not ours: nothing was locked
    finalizers = finalizers_of(live)
    if LOCK_FINALIZER not in finalizers:
        yield _add([*finalizers, LOCK_FINALIZER], "metadata", "finalizers")


def _stop(live: Object, row: Consumer) -> Iterator[Step]:
    if not row.stop.field:
        yield _annotate(row.stop.annotation, row.stop.value)
        return
    steps = row.stop.field.split(".")
    for depth in range(1, len(steps)):
        if not isinstance(value_at(live, ".".join(steps[:depth])), Mapping):
            yield _add({}, *steps[:depth])
    yield _add(True, *steps)


def _released(seen: ConsumerSeen) -> Iterator[Step]:
    """No mark stays, and no suspension that the marks say is ours; the controller is asked for a run."""
    live, row, annotations = seen.live, seen.row, annotations_of(seen.live)
    going = is_terminating(live)
    if not going and "annotations" not in live["metadata"]:
        yield _add({}, "metadata", "annotations")
    for mark in (LOCKED, SUSPENDED_BY_LOCK):
        if mark in annotations:
            yield _remove("metadata", "annotations", mark)
    if LOCKED in annotations and SUSPENDED_BY_LOCK in annotations and is_stopped(live, row):
        yield _remove(*(row.stop.field.split(".") if row.stop.field else ("metadata", "annotations", row.stop.annotation)))
    finalizers = finalizers_of(live)
    if LOCK_FINALIZER in finalizers:
        yield _add([each for each in finalizers if each != LOCK_FINALIZER], "metadata", "finalizers")
    if not going:
        yield _annotate(REQUESTED_AT, seen.now)


def _annotate(key: str, value: str) -> Step:
    return _add(value, "metadata", "annotations", key)


def _add(value: Any, *steps: str) -> Step:
    return {"op": "add", "path": pointer(*steps), "value": value}


def _remove(*steps: str) -> Step:
    return {"op": "remove", "path": pointer(*steps)}
