"""Perturbations of events, by people's hands, and of the order in which two processes get on.

See `tenantry.testing.perturbations` for what a perturbation is.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, ClassVar

from tenantry.api.errors import ApiError
from tenantry.model.difference import is_shared
from tenantry.model.kinds import Key, Object
from tenantry.model.pointer import pointer
from tenantry.testing import faults, player
from tenantry.testing.awaiting import POLL_S
from tenantry.testing.naming import DRIFTED, role_of
from tenantry.testing.oracle import Evidence
from tenantry.testing.perturbations import Ask, Perturbation, Scene, takes_away, targets_of, writes
from tenantry.testing.player import Announced, Lane, Policy
from tenantry.testing.workload import KINDS

SEEDS = 3
SWITCHES = 3
PATIENCE_S = 1.0
TURN_S = 0.15


# -- events --------------------------------------------------------------------------------------------------


class Event(Perturbation):
    """One event of the disturbed part is dealt with in another way."""

    group = "events"
    policy: ClassVar[Any]
    useful: ClassVar[bool] = True
    """Only events that a write followed."""

    def targets(self, run: Evidence) -> Iterable[str]:
        """Every event of the disturbed part, or those that something came of."""
        events = [announced for announced in run.lane.announced if announced.disturbed]
        return [each.target for each in events if not self.useful or led_to_writes(run, each)]

    def arm(self, scene: Scene) -> None:
        """Watch for the event."""

        def chosen(announced: Announced) -> bool:
            if announced.target == scene.target and not scene.reached:
                scene.reached = True
                return True
            return False

        scene.lane.policy = type(self).policy(chosen)


def led_to_writes(run: Evidence, announced: Announced) -> bool:
    """Whether the function wrote something while it had this event in hand."""
    times = [(each.began, each.ended) for each in run.lane.deliveries if each.event.id == announced.event.id]
    return any(began <= each.at <= ended for _, each in writes(run) for began, ended in times)


class Overwritten(Event):
    """An event is held until a later one of the same object overwrites it."""

    name, retries_heal = "event held until overwritten", False
    policy = staticmethod(player.HoldUntilOverwritten)

    def targets(self, run: Evidence) -> Iterable[str]:
        """Events that a later one of the same object follows."""
        events = [announced for announced in run.lane.announced if announced.disturbed]
        for number, each in enumerate(events):
            if any(player._about(later.event) == player._about(each.event) for later in events[number + 1 :]):
                yield each.target


def event(
    name: str, policy: Callable[[player.Choose], Policy], *, heals: bool = True, both: bool = False, useful: bool = True
) -> type[Event]:
    """A perturbation of events."""
    members = {
        "name": name,
        "policy": staticmethod(policy),
        "retries_heal": heals,
        "both": both,
        "useful": useful,
        "__doc__": name,
    }
    return type(name, (Event,), members)


EVENTS: list[type[Perturbation]] = [
    event("event dropped", player.Drop, heals=False),
    Overwritten,
    event("event delayed", player.Delay),
    event("event reordered", player.Swap),
    event("event doubled", player.Double, useful=False),
    event("event to two replicas", lambda chosen: player.Double(chosen, 0, 1), both=True, useful=False),
]


# -- hands ---------------------------------------------------------------------------------------------------


class Drift(Perturbation):
    """Between two writes somebody changes or deletes, by hand, something that the function keeps."""

    name, group, retries_heal, extra = "hand drift", "drift", False, 1

    def targets(self, run: Evidence) -> Iterable[str]:
        """A few seeds for each scenario that writes and keeps what it made."""
        given_away = self.workload.scenarios[run.scenario].gives_away
        return [f"seed {number}" for number in range(1, SEEDS + 1)] if writes(run) and not given_away else []

    def arm(self, scene: Scene) -> None:
        """Choose after which of the run's requests it happens."""
        scene.notes["countdown"] = scene.random.randrange(1, 12)

    async def meet(self, scene: Scene, ask: Ask) -> faults.Response | None:
        """Let requests pass, and strike once."""
        del ask
        scene.notes["countdown"] -= 1
        if scene.notes["countdown"] == 0 and not scene.reached:
            await self.strike(scene)
        return None

    async def lift(self, scene: Scene) -> None:
        """At the latest now."""
        if not scene.reached:
            await self.strike(scene)

    async def strike(self, scene: Scene) -> None:
        """Change one thing that the function owns, or delete one; never what is declared: nobody would make that again."""
        manager = self.workload.manager or f"tenantry-{self.workload.function}"
        there = [each for each in sorted(scene.world.of(scene.run.tag).items()) if each[0].kind not in self.workload.said_once]
        found = [
            (key, path) for key, obj in there for path in owned_paths(obj, manager) if path[-1] not in self.workload.handover
        ]
        if not found:
            return
        scene.reached = True
        key, path = scene.random.choice(found)
        live = scene.world.of(scene.run.tag)[key]
        try:
            deletes = scene.random.random() < 0.3 or key.kind in self.workload.replaced
            if key.namespace and deletes and key not in scene.run.declared:
                await scene.run.delete(key.kind, key.name, key.namespace)
                return
            remove = {"op": "remove", "path": pointer(*path)}
            replace = {"op": "replace", "path": pointer(*path), "value": _other(_value(live, path))}
            choice = replace if _value(live, path) != _other(_value(live, path)) and scene.random.random() < 0.5 else remove
            await scene.run.edit(key.kind, key.name, key.namespace, choice)
        except ApiError:
            scene.reached = False  # it changed meanwhile, or the server does not let it be changed so


def owned_paths(obj: Object, manager: str) -> list[tuple[str, ...]]:
    """The leaves (through maps only) that a manager owns in an object and its metadata, conditions aside.

    No list in which others have items of their own: who takes it away takes theirs, and they do not put them back here.
    """
    found: list[tuple[str, ...]] = []

    def walk(fields: dict[str, Any], path: tuple[str, ...]) -> None:
        for step, below in fields.items():
            if not step.startswith("f:"):
                continue
            here = (*path, step[2:])
            if any(name.startswith("f:") for name in below):
                walk(below, here)
            elif not below.keys() - {"."} or not is_shared(obj, manager, *here):
                found.append(here)

    for entry in obj["metadata"].get("managedFields") or ():
        if entry.get("manager") == manager and not entry.get("subresource"):
            walk(entry.get("fieldsV1") or {}, ())
    return [path for path in found if path[0] != "metadata" or (path[1] in ("labels", "annotations") and len(path) == 3)]


def _value(obj: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        obj = obj.get(step) if isinstance(obj, dict) else None
    return obj


def _other(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case str():
            return DRIFTED
        case _:
            return value


class Vanish(Perturbation):
    """Somebody deletes an object at the very moment when the function writes to it."""

    name, group, extra = "object vanishes under a write", "drift", 1
    again: ClassVar[bool] = False

    def targets(self, run: Evidence) -> Iterable[str]:
        """Updates and deletions of objects in namespaces, but not of those that people declare: nobody makes them again."""
        theirs = {(each["kind"], each["metadata"]["name"]) for each in run.declared}
        for target, each in writes(run):
            kind = next((kind.kind for kind in KINDS.values() if kind.plural == each.resource), "")
            if (kind, role_of(each.name or "")) in theirs:
                continue
            if self.again and self.workload.by_ownership and takes_away(each, self.workload):
                continue  # what is there then is somebody else's
            if each.namespace and each.verb in ("apply", "patch", "delete") and each.status != 201:
                yield target

    async def hit(self, scene: Scene, ask: Ask) -> faults.Response | None:
        """Delete it first, and in one variant make it anew."""
        kind = next(kind for kind in KINDS.values() if kind.plural == ask.request.resource)
        key = Key(kind.api_version, kind.kind, ask.request.namespace, ask.request.name)
        live = scene.world.of(scene.run.tag).get(key)
        await scene.run.delete(key.kind, key.name, key.namespace)
        if self.again and live is not None:
            kept = ("name", "namespace", "labels", "annotations")
            metadata = {name: live["metadata"][name] for name in kept if name in live["metadata"]}
            body = {name: value for name, value in live.items() if name not in ("metadata", "status")}
            with contextlib.suppress(ApiError):  # a controller may have been faster
                await scene.run.create({**body, "metadata": metadata})
        return None


class Replaced(Vanish):
    """Somebody deletes an object and makes it anew at the very moment when the function writes to it."""

    name, again = "object replaced under a write", True


# -- overlaps and interleavings --------------------------------------------------------------------------------


class Overlap(Perturbation):
    """A request hangs while all further changes happen; then it goes on, with what was read before them."""

    name, group, burst = "change during a run", "overlap", True

    def targets(self, run: Evidence) -> Iterable[str]:
        """Every request of a scenario that changes something twice, until the second change."""
        steps = self.workload.scenarios[run.scenario].steps
        return [target for target, each in targets_of(run.disturbed) if each.at < run.step_ended[0]] if len(steps) > 1 else []

    def arm(self, scene: Scene) -> None:
        """Make the gate."""
        scene.notes |= {"open": asyncio.Event(), "reached": asyncio.Event()}

    async def hit(self, scene: Scene, ask: Ask) -> faults.Response | None:
        """Read or write now, answer when the gate opens."""
        answer = await ask.forward()
        scene.notes["reached"].set()
        await _at_most(scene.notes["open"].wait(), PATIENCE_S * 5)
        return answer

    async def ready(self, scene: Scene) -> None:
        """The request hangs now."""
        await _at_most(scene.notes["reached"].wait(), PATIENCE_S)

    async def lift(self, scene: Scene) -> None:
        """All changes are made and announced: go on."""
        scene.notes["open"].set()


class Elsewhere(Overlap):
    """A request is held while all further changes happen and are handled by another replica; then it goes through."""

    name, both = "change handled by another replica", True

    def arm(self, scene: Scene) -> None:
        """Make the gate, and turn the events when a request stands before it."""
        super().arm(scene)
        scene.lane.policy = _Turning(lambda: scene.reached)

    async def hit(self, scene: Scene, ask: Ask) -> faults.Response | None:
        """Hold it until the gate opens."""
        scene.notes["reached"].set()
        await _at_most(scene.notes["open"].wait(), PATIENCE_S * 5)
        return await ask.forward()

    async def lift(self, scene: Scene) -> None:
        """The other replica is done: go on."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S * 3):
                while scene.lane.brokers[1].counters.in_flight:  # noqa: ASYNC110 (the broker counts, it does not tell)
                    await asyncio.sleep(POLL_S)
        await super().lift(scene)


class _Turning(Policy):
    """Events go to the first replica until something has happened, and to the second from then on."""

    def __init__(self, happened: Callable[[], bool]) -> None:
        self._happened = happened

    def take(self, lane: Lane, announced: Announced) -> None:
        lane.send(announced.event, int(self._happened()))


async def _at_most(what: Awaitable[object], seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(what, seconds)


class Turns:
    """Two who ask, 0 and 1, get on by turns: whoever asks first begins, and after the requests ``switches`` the other goes on.

    Whoever does not ask for a while when it is his turn loses it: he is done, or waits for the other.
    """

    def __init__(self, switches: Iterable[int]) -> None:
        self.seen = 0
        self._switches = frozenset(switches)
        self._turn: int | None = None
        self._moved = asyncio.Condition()
        self._ended = False

    async def wait(self, who: int) -> None:
        """Until one may ask."""
        if self._ended:
            return
        if self._turn is None:
            self._turn = who
        async with self._moved:
            if self._turn != who:
                try:
                    await asyncio.wait_for(self._moved.wait_for(lambda: self._turn == who or self._ended), TURN_S)
                except TimeoutError:
                    self._turn = who
            self.seen += 1
            if self.seen in self._switches:
                self._turn = 1 - who
                self._moved.notify_all()

    def end(self) -> None:
        """Nobody waits any more."""
        self._ended = True


class Interleaved(Perturbation):
    """Two processes get every event, and take turns at the API server, request by request, with few switches."""

    name, group, both = "two replicas interleaved", "interleaving", True

    def targets(self, run: Evidence) -> Iterable[str]:
        """A few seeds for each scenario that writes."""
        return [f"seed {number}" for number in range(1, SEEDS + 1)] if writes(run) else []

    def arm(self, scene: Scene) -> None:
        """Choose the requests after which the turn changes."""
        scene.lane.policy = _ToBoth()
        count = scene.random.randrange(1, SWITCHES + 1)
        scene.notes["turns"] = Turns(scene.random.sample(range(1, 30), count))
        scene.reached = True

    async def meet(self, scene: Scene, ask: Ask) -> faults.Response | None:
        """Wait for one's turn."""
        await scene.notes["turns"].wait(ask.replica)
        return None

    async def lift(self, scene: Scene) -> None:
        """No more turns."""
        scene.notes["turns"].end()


class _ToBoth(Policy):
    def take(self, lane: Lane, announced: Announced) -> None:
        lane.send(announced.event, 0)
        lane.send(announced.event, 1)


HANDS: list[type[Perturbation]] = [Drift, Vanish, Replaced]
ORDERS: list[type[Perturbation]] = [Overlap, Elsewhere, Interleaved]
