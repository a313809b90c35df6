"""The oracle: what must hold of a run, however it was disturbed.  All eight parts must.

======== ==============================================================================================
equal      the end state is that of an undisturbed run, and what the workload's predicates promise; where retries alone
           must heal, before the sweep too
path-free  another path to the same declarations ends in the same state (judged once per scenario)
quiet      after that, every event again and two sweeps write nothing
frugal     no object is made or deleted more often than in the undisturbed run, but for what the garbage collector takes, too
safe       predicates over every moment; nothing foreign is written; only what was observed is deleted; nothing
           that vanished is made again by an update
accounted  each event ends in 2xx or as a dead letter with its reason; 500 and 400 are bugs; nothing crashes by itself;
           undisturbed no event is tried twice and no write is refused
told       while something cannot heal it is told, and no longer when it is healed
bounded    recovery within `RECOVERY_S` of the sweep, and a bounded number of writes more than undisturbed
======== ==============================================================================================
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field

from tenantry.model.kinds import EVENT, NAMESPACE, Key, Object, is_terminating, key_of
from tenantry.testing.masks import Mask, State
from tenantry.testing.naming import TAG, role_of
from tenantry.testing.player import Lane
from tenantry.testing.recording import Exchange
from tenantry.testing.workload import KINDS, Workload
from tenantry.testing.world import Change, World, is_held, version_of

RECOVERY_S = 10.0
FEW = 4
"""So many sorts of writes are named."""
PARTS = ("equal", "path-free", "quiet", "frugal", "safe", "accounted", "told", "bounded")
_ANSWERS = frozenset((0, 409, 429, 503))
"""What a function may answer besides 2xx; 0: it was killed."""
_PLURALS = {kind.plural: kind for kind in KINDS.values()}


@dataclass(frozen=True, slots=True)
class Failure:
    """What did not hold: the part of the oracle, and a sentence."""

    part: str
    text: str

    def __str__(self) -> str:
        return f"{self.part}: {self.text}"


@dataclass(slots=True)
class Evidence:
    """All that is known of one run when it is judged."""

    tag: str
    scenario: str
    lane: Lane
    early: State = field(default_factory=dict)
    """The state after the disturbance and before the sweep."""
    end: State = field(default_factory=dict)
    seconds: float = 0.0
    """How long the preparation and the disturbed part took."""
    recovery_s: float = 0.0
    disturbed: list[Exchange] = field(default_factory=list)
    """What the function exchanged with the API server about this run in the disturbed part."""
    step_ended: list[float] = field(default_factory=list)
    declared: list[Object] = field(default_factory=list)
    """The declarations of the run, with ``@`` for its tag."""
    exchanges: list[Exchange] = field(default_factory=list)
    """Those of the function about this run until the end state was reached."""
    again: list[Exchange] = field(default_factory=list)
    """Those while everything was replayed."""
    changes: list[Change] = field(default_factory=list)
    told: bool | None = None
    """Whether it was told while it could not heal; None where nothing is to be told."""
    unhealed: State = field(default_factory=dict)
    """The state at that time."""
    held: bool = False
    """Whether a finalizer of ours held an object at that time."""
    error: str = ""
    logs: list[str] = field(default_factory=list)
    retries_heal: bool = False
    undisturbed: bool = False
    more_writes: int = 0
    followed: int = 0
    """How much more often objects may be made and deleted that follow what was changed by hand."""
    extra: int = 0
    """How many creations of each object the perturbation itself adds."""


@dataclass(slots=True)
class Reference:
    """What undisturbed runs of a scenario did."""

    end: State
    creates: Counter[str]
    deletes: Counter[str]
    writes: int
    evidence: list[Evidence]


def key_of_exchange(exchange: Exchange) -> Key | None:
    """The key of the object that an exchange is about, for kinds that we know."""
    kind = _PLURALS.get(exchange.key[1]) or KINDS.get(exchange.key[1])
    if kind is None:
        return None
    return Key(kind.api_version, kind.kind, exchange.namespace or "", exchange.name or "")


def effective(exchanges: Iterable[Exchange]) -> list[Exchange]:
    """The writes that changed something."""
    return [exchange for exchange in exchanges if exchange.is_write and exchange.changed]


def creates_of(changes: Iterable[Change]) -> Counter[str]:
    """How many different objects there were by role: more than one means deleted and made again.  Without Events."""
    uids: dict[str, set[str]] = {}
    for change in changes:
        if change.after is not None and change.key.kind != EVENT.kind:
            uids.setdefault(role_of(str(change.key)), set()).add(change.after["metadata"]["uid"])
    return Counter({role: len(found) for role, found in uids.items()})


def deletes_of(exchanges: Iterable[Exchange], but_for: Container[str] = ()) -> Counter[str]:
    """How often the function deleted, by role; not counted are objects with these uids."""
    return Counter(
        role_of("/".join(map(str, exchange.key[1:])))
        for exchange in effective(exchanges)
        if exchange.verb == "delete" and ((exchange.request or {}).get("preconditions") or {}).get("uid") not in but_for
    )


def left_by_owners(changes: Iterable[Change]) -> set[str]:
    """The uids of objects that went after their owners, of kinds that are seen, had gone or begun to go.

    Kubernetes' garbage collector takes them, or the function if it looks before: who is quicker is nobody's fault.
    """
    stay, seen, found = set[str](), set[str](), set[str]()
    for change in changes:
        uid = (change.after or change.before or {"metadata": {"uid": ""}})["metadata"]["uid"]
        seen.add(uid)
        if change.after is not None and not is_terminating(change.after):
            stay.add(uid)
            continue
        stay.discard(uid)
        owners = [owner["uid"] for owner in (change.before or {"metadata": {}})["metadata"].get("ownerReferences") or ()]
        if owners and all(owner in seen and owner not in stay for owner in owners):
            found.add(uid)
    return found


def notices_of(exchanges: Iterable[Exchange]) -> Counter[str]:
    """How many Kubernetes Events were recorded, by object and reason."""
    found: Counter[str] = Counter()
    for exchange in effective(exchanges):
        body = exchange.request
        if exchange.verb == "create" and isinstance(body, dict) and "regarding" in body:
            found[role_of(f"{body.get('reason')} on {body['regarding'].get('name')}")] += 1
    return found


def writers(exchanges: Iterable[Exchange]) -> dict[tuple[Key, int], str]:
    """Which resource version of which object is the function's work; -1 stands for its deletion."""
    found: dict[tuple[Key, int], str] = {}
    for exchange in effective(exchanges):
        key = key_of_exchange(exchange)
        if key is None:
            continue
        version = -1 if exchange.verb == "delete" else version_of(exchange.response or {})
        found[key, version] = exchange.function or "function"
    return found


def reference_of(runs: Sequence[Evidence]) -> Reference:
    """What undisturbed runs agree on; where counts differ, the highest."""
    creates: Counter[str] = Counter()
    deletes: Counter[str] = Counter()
    for run in runs:
        creates |= creates_of(run.changes)
        deletes |= deletes_of(run.exchanges)
    return Reference(runs[0].end, creates, deletes, max(len(effective(run.exchanges)) for run in runs), list(runs))


def judge(run: Evidence, reference: Reference, mask: Mask, workload: Workload, world: World) -> list[Failure]:
    """What does not hold of a run."""
    found = [Failure("bounded", run.error)] if run.error else []
    found += _equal(run, reference, mask)
    objects = [*world.of(run.tag).values(), *world.shared()]
    held = sorted(str(key_of(obj)) for obj in world.every(run.tag) if is_held(obj))
    found += [Failure("equal", f"{role_of(key)} is being deleted, and our finalizer holds it") for key in held]
    found += [Failure("equal", f"{ends.__name__}: {problem}") for ends in workload.ends if (problem := ends(objects))]
    found += [Failure("quiet", f"wrote again: {_said(each)}") for each in run.again if each.is_write]
    found += _frugal(run, reference)
    found += _safe(run, workload, world)
    found += _accounted(run)
    # What was refused may not be wanted any more: who is where he should be has nothing to tell.
    if run.told is False and (run.held or mask.differences(reference.end, run.unhealed)):
        found.append(Failure("told", "nothing told people what could not heal"))
    if run.recovery_s > RECOVERY_S:
        found.append(Failure("bounded", f"recovered after {run.recovery_s:.1f} s"))
    writes = effective(run.exchanges)
    if len(writes) > reference.writes + run.more_writes:
        more = Counter(map(_said, writes)) - Counter(map(_said, effective(reference.evidence[0].exchanges)))
        which = ", ".join(f"{count} x {what}" for what, count in more.most_common(FEW))
        found.append(Failure("bounded", f"{len(writes)} writes; undisturbed {reference.writes}; most of them more: {which}"))
    return found


def _equal(run: Evidence, reference: Reference, mask: Mask) -> Iterable[Failure]:
    for line in mask.differences(reference.end, run.end)[:4]:
        yield Failure("equal", line)
    if run.retries_heal:
        for line in mask.differences(reference.end, run.early)[:4]:
            yield Failure("equal", f"before the sweep, though every event was acknowledged or tried again: {line}")


def _frugal(run: Evidence, reference: Reference) -> Iterable[Failure]:
    for role, count in creates_of(run.changes).items():
        if count > reference.creates[role] + max(run.extra, run.followed):
            yield Failure("frugal", f"{role} was made {count} times; undisturbed {reference.creates[role]}")
    for role, count in deletes_of(run.exchanges, left_by_owners(run.changes)).items():
        if count > reference.deletes[role] + run.followed:
            yield Failure("frugal", f"{role} was deleted {count} times; undisturbed {reference.deletes[role]}")


def _safe(run: Evidence, workload: Workload, world: World) -> Iterable[Failure]:
    for moment in world.moments(run.tag, writers([*run.exchanges, *run.again])):
        for predicate in workload.safe:
            if problem := predicate(moment):
                yield Failure("safe", f"{role_of(str(moment.change.key))}: {problem}")
    yield from _observed_only(run)


def _observed_only(run: Evidence) -> Iterable[Failure]:
    """What is deleted was read, in exactly that version; and the last read must not have shown what an apply then makes.

    Not the last read: replies overtake one another, and another replica may see that it is gone before this one hears of it.
    Requests count in the order in which they were answered; a read that was answered after the apply was sent saw what that made.
    """
    there: dict[Key, float] = {}  # what the last read showed, and when that was answered
    shown: set[tuple[str, int]] = set()
    for exchange in sorted(run.exchanges, key=lambda each: each.until):
        key = key_of_exchange(exchange)
        if key is None:
            continue
        if exchange.verb == "list" and exchange.status == 200:
            for item in (exchange.response or {}).get("items") or ():
                metadata = item["metadata"]
                listed = Key(key.api_version, key.kind, metadata.get("namespace") or "", metadata["name"])
                there[listed] = exchange.until
                shown.add((metadata["uid"], version_of(item)))
        elif exchange.verb == "get":
            there.pop(key, None)
            if exchange.status == 200:
                stored = exchange.response or {}
                there[key] = exchange.until
                shown.add((stored["metadata"]["uid"], version_of(stored)))
        elif exchange.verb == "delete" and exchange.changed:
            preconditions = (exchange.request or {}).get("preconditions") or {}
            if not preconditions.get("uid"):
                yield Failure("safe", f"deleted without a precondition: {_said(exchange)}")
            elif (preconditions["uid"], int(preconditions.get("resourceVersion") or 0)) not in shown:
                yield Failure("safe", f"deleted what it had not read: {_said(exchange)}")
            there.pop(key, None)
        elif exchange.verb == "create" and exchange.status == 201 and key.kind == NAMESPACE.kind:
            for inside in [known for known in there if known.namespace == key.name]:
                del there[inside]  # a new namespace is empty, whatever was read in the old one
        elif exchange.verb == "apply" and exchange.status == 201 and there.get(key, math.inf) <= exchange.at:
            yield Failure("safe", f"made again what had vanished: {_said(exchange)}")


def _accounted(run: Evidence) -> Iterable[Failure]:
    lane = run.lane
    if lane.lost:
        yield Failure("accounted", f"{lane.lost} events are lost without a dead letter")
    for delivery in lane.deliveries:
        if not 200 <= delivery.status < 300 and delivery.status not in _ANSWERS:
            yield Failure("accounted", f"answered {delivery.status} to {delivery.event.type} {delivery.event.subject}")
    letters = lane.dead_letters.read_text().splitlines() if lane.dead_letters.exists() else []
    for line in letters:
        if not json.loads(line).get("knativeerrorcode"):
            yield Failure("accounted", "a dead letter without a reason")
    if run.undisturbed and (letters or any(delivery.status != 204 for delivery in lane.deliveries)):
        statuses = sorted({delivery.status for delivery in lane.deliveries})
        yield Failure("accounted", f"undisturbed, yet {len(letters)} dead letters and answers {statuses}")
    if run.undisturbed:
        for exchange in run.exchanges:
            if exchange.is_write and exchange.status in (403, 422):
                yield Failure("accounted", f"undisturbed, yet refused with {exchange.status}: {_said(exchange)}")
    for line in run.logs:
        yield Failure("accounted", f"it failed by itself: {line}")


def _said(exchange: Exchange) -> str:
    where = "/".join(part for part in (exchange.namespace, exchange.name) if part)
    body = exchange.request if isinstance(exchange.request, dict) else {}
    reason = f" ({body['reason']})" if "regarding" in body else ""
    return TAG.sub("@", f"{exchange.verb} {exchange.key[1]} {where}{reason}")
