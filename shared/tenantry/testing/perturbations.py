"""Everything that can go wrong on purpose, and the plans that follow from what an undisturbed run does.

A `Perturbation` says which targets of an undisturbed run it can hit (`Perturbation.targets`), and is armed for one run and
one target.  One `Aim` stands in the fault proxy for each run that is disturbed: it numbers the run's requests by identity
and hands each to the perturbation.  Whatever the perturbation, the matrix then lifts it, sweeps once, and lets the oracle
judge; ``retries_heal`` says that acknowledgements and the Trigger's retries alone must have healed it before the sweep.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from tenantry.testing import faults
from tenantry.testing.naming import Occurrences, request_identity, tag_of
from tenantry.testing.oracle import Evidence
from tenantry.testing.player import Lane
from tenantry.testing.recording import Exchange
from tenantry.testing.replicas import Replica
from tenantry.testing.workload import Run, Workload
from tenantry.testing.world import World

Forward = Callable[[], Awaitable[faults.Response]]
_AND = " and "


@dataclass(slots=True)
class Scene:
    """One run that is to be disturbed, with everything that a perturbation may use."""

    run: Run
    lane: Lane
    replicas: list[Replica]
    world: World
    target: str
    random: random.Random
    reached: bool = False
    """Whether the target occurred, so that the disturbance took place."""
    notes: dict[str, Any] = field(default_factory=dict)


def identity_of(request: faults.Request | Exchange) -> str:
    """The identity of a request, on its way or recorded."""
    body = request.body if isinstance(request, faults.Request) else request.request
    name = request.name or ""
    return request_identity(
        request.verb, request.resource, request.subresource or "", request.namespace or "", name, request.query, body
    )


@dataclass(frozen=True, slots=True)
class Ask:
    """One request of a run: its target, how to forward it, and which replica sent it."""

    target: str
    request: faults.Request
    forward: Forward
    replica: int


class Aims:
    """The one fault of a proxy: finds the run that a request is about, and gives that run's perturbation a chance."""

    def __init__(self, replica: int) -> None:
        self._replica = replica
        self.only = ""
        """The tag of the only run that there is, if requests about no run are its own."""
        self._aims: dict[str, tuple[Scene, Perturbation, Occurrences]] = {}

    def take(self, scene: Scene, perturbation: Perturbation, occurrences: Occurrences) -> None:
        """Disturb a run from now on; ``occurrences`` is shared by all proxies."""
        self._aims[scene.run.tag] = scene, perturbation, occurrences

    def drop(self, tag: str) -> None:
        """Disturb a run no more."""
        self._aims.pop(tag, None)

    async def meet(self, request: faults.Request, forward: Forward) -> faults.Response | None:
        """Deal with a request if it is about a run that is disturbed."""
        texts = [request.namespace, request.name, request.query.get("labelSelector", "")]
        aim = self._aims.get(tag_of(*texts) or self.only)
        if aim is None:
            return None
        scene, perturbation, occurrences = aim
        return await perturbation.meet(scene, Ask(occurrences.target(identity_of(request)), request, forward, self._replica))


def targets_of(exchanges: Sequence[Exchange]) -> list[tuple[str, Exchange]]:
    """The requests of a run with their targets."""
    occurrences = Occurrences()
    return [(occurrences.target(identity_of(exchange)), exchange) for exchange in exchanges]


class Perturbation:
    """One kind of disturbance.  This one disturbs nothing."""

    name: ClassVar[str] = "none"
    group: ClassVar[str] = "none"
    alone: ClassVar[bool] = False
    """A run needs a process of its own, because it is killed."""
    both: ClassVar[bool] = False
    """A run uses both shared processes."""
    retries_heal: ClassVar[bool] = True
    burst: ClassVar[bool] = False
    """The steps follow one another without waiting."""
    once: ClassVar[bool] = False
    """A target is tried once in the whole workload and not in every scenario."""
    tells: ClassVar[bool] = False
    """It cannot heal while it lasts, so it must be told."""
    extra: ClassVar[int] = 0
    """How often it makes or deletes an object itself."""
    more_writes: ClassVar[int] = 8
    """How many writes more than undisturbed are allowed: what is told, taken back and done again."""

    def __init__(self, workload: Workload) -> None:
        self.workload = workload

    def targets(self, run: Evidence) -> Iterable[str]:
        """What can be hit in a scenario, by what its undisturbed run did."""
        del run
        return ()

    @classmethod
    def combined(cls, targets: Sequence[str]) -> Sequence[str]:
        """The targets of the plans that hit all of these: one plan for each, unless a plan hits several."""
        return targets

    def arm(self, scene: Scene) -> None:
        """Get ready: the preparation is over."""

    async def meet(self, scene: Scene, ask: Ask) -> faults.Response | None:
        """Deal with one request of the run; None lets it pass."""
        if ask.target == scene.target and not scene.reached:
            scene.reached = True
            return await self.hit(scene, ask)
        return None

    async def hit(self, scene: Scene, ask: Ask) -> faults.Response | None:
        """Deal with the target."""
        del scene, ask
        return None

    async def ready(self, scene: Scene) -> None:
        """In a burst: wait until the next step may come."""

    async def lift(self, scene: Scene) -> None:
        """The disturbance ends."""


# -- what a run does -----------------------------------------------------------------------------------------


def writes(run: Evidence) -> list[tuple[str, Exchange]]:
    """The writes of the disturbed part that changed something, with their targets."""
    return [(target, each) for target, each in targets_of(run.disturbed) if each.is_write and each.changed]


def reads(run: Evidence) -> list[tuple[str, Exchange]]:
    """The reads of the disturbed part, with their targets."""
    return [(target, each) for target, each in targets_of(run.disturbed) if not each.is_write]


def _fits(on: str, each: Exchange) -> bool:
    """Whether a request is of the sort that a perturbation is on."""
    match on:
        case "create":
            return each.verb == "create"
        case "update":
            return each.is_write and each.verb != "create"
        case "write":
            return each.is_write
        case "made":
            return each.verb in ("create", "apply")
        case "inside":
            return each.verb in ("create", "apply") and bool(each.namespace)
        case "read":
            return not each.is_write
        case "list":
            return each.verb == "list"
        case _:
            return True


# -- processes and replies -----------------------------------------------------------------------------------


class CrashBefore(Perturbation):
    """The process is killed before a write reaches the server."""

    name, group, alone = "crash before write", "crash", True

    def targets(self, run: Evidence) -> Iterable[str]:
        """Every write."""
        return [target for target, _ in writes(run)]

    async def hit(self, scene: Scene, ask: Ask) -> faults.Response | None:
        """Kill it."""
        return await faults.CrashBefore(1, kill=crash(scene)).meet(ask.request, ask.forward)


class CrashAfter(CrashBefore):
    """The process is killed when a write is committed and its reply is on the way."""

    name = "crash after write"

    async def hit(self, scene: Scene, ask: Ask) -> faults.Response | None:
        """Commit, then kill it."""
        return await faults.CrashAfter(1, kill=crash(scene)).meet(ask.request, ask.forward)


def crash(scene: Scene) -> Callable[[], Awaitable[None]]:
    """Kill the run's processes and let spare ones take their place."""

    async def kill() -> None:
        await scene.replicas.pop(0).crash()
        scene.lane.redirect(scene.replicas[0].urls)

    return kill


class Ambiguous(Perturbation):
    """A write is committed and its reply is lost."""

    name, group = "ambiguous write", "ambiguous"

    def targets(self, run: Evidence) -> Iterable[str]:
        """Every write."""
        return [target for target, _ in writes(run)]

    async def hit(self, scene: Scene, ask: Ask) -> faults.Response | None:
        """Commit it, and lose the reply."""
        del scene
        return await faults.Ambiguous(1).meet(ask.request, ask.forward)


class Answered(Perturbation):
    """The server, or something in front of it, answers a request once in a way of its own."""

    group, once = "answers", True
    fault: ClassVar[Callable[[], Any]]
    on: ClassVar[str] = "all"
    times: ClassVar[int] = 1

    def targets(self, run: Evidence) -> Iterable[str]:
        """The first request of each identity that can be answered so."""
        return [target for target, each in [*writes(run), *reads(run)] if target.endswith(" #1") and _fits(self.on, each)]

    async def meet(self, scene: Scene, ask: Ask) -> faults.Response | None:
        """Give the answer to the target, and to its repetitions if that is what it takes."""
        identity, _, number = ask.target.rpartition(" #")
        wanted, _, first = scene.target.rpartition(" #")
        if identity != wanted or not int(first) <= int(number) < int(first) + self.times:
            return None
        scene.reached = True
        return await self.hit(scene, ask)

    async def hit(self, scene: Scene, ask: Ask) -> faults.Response | None:
        """Give the answer."""
        del scene
        answer: faults.Response | None = await type(self).fault().meet(ask.request, ask.forward)
        return answer


class Mixed(Perturbation):
    """Several requests of a run are answered in ways that pass, each in another, so that few plans try all on all.

    Who asks again for each of them gets through, so they do not hide one another: the first costs a run, the next meets
    the run after it.
    """

    group, once = "answers", True
    answers: ClassVar[Sequence[type[Answered]]]

    def targets(self, run: Evidence) -> Iterable[str]:
        """Whatever one of the answers can be given to."""
        return dict.fromkeys(target for answer in self.answers for target in answer(self.workload).targets(run))

    @classmethod
    def combined(cls, targets: Sequence[str]) -> Sequence[str]:
        """As many plans as there are targets, or answers: each plan gives each answer once, and each target each answer once."""
        targets = sorted(targets)  # in the order of the requests two runs differ
        size = max(len(targets), len(cls.answers)) if targets else 0
        shifts = [
            [targets[at % size] if at % size < len(targets) else "" for at in range(n, n + len(cls.answers))] for n in range(size)
        ]
        return [_AND.join(each) for each in shifts]

    def arm(self, scene: Scene) -> None:
        """Share the targets out."""
        parts = zip(self.answers, scene.target.split(_AND), strict=True)
        scene.notes["parts"] = [(answer(self.workload), replace(scene, target=target)) for answer, target in parts if target]

    async def meet(self, scene: Scene, ask: Ask) -> faults.Response | None:
        """Let each answer look at the request."""
        for answer, part in scene.notes["parts"]:
            given: faults.Response | None = await answer.meet(part, ask)
            scene.reached = all(each.reached for _, each in scene.notes["parts"])
            if given is not None:
                return given
        return None


class Refused(Answered):
    """The server refuses an identity until the disturbance is lifted."""

    group, retries_heal, more_writes = "refusals", False, 20
    on = "write"

    async def meet(self, scene: Scene, ask: Ask) -> faults.Response | None:
        """Refuse it as often as it comes."""
        asked, wanted = (target.rpartition(" #")[0] for target in (ask.target, scene.target))
        if scene.notes.get("lifted"):
            return None
        if self.workload.rehearses and "dryRun" in ask.request.query and self.on != "read":
            same = asked.partition(" ")[2] == wanted.partition(" ")[2]
            refusal: faults.Response | None = await type(self).fault().act(ask.request, ask.forward) if same else None
            return refusal
        if asked != wanted:
            return None
        answer = await self.hit(scene, ask)
        scene.reached = scene.reached or answer is not None  # a dry run is let pass: it writes nothing
        return answer

    async def lift(self, scene: Scene) -> None:
        """Refuse no more."""
        scene.notes["lifted"] = True


class Outage(Perturbation):
    """The server is away from a request on, until the disturbance is lifted."""

    name, group, retries_heal = "outage", "answers", False

    def targets(self, run: Evidence) -> Iterable[str]:
        """From the first write on, in each scenario."""
        return [target for target, _ in writes(run)[:1]]

    async def meet(self, scene: Scene, ask: Ask) -> faults.Response | None:
        """From the target on nothing is answered."""
        if ask.target == scene.target:
            scene.reached = True
        if not scene.reached or scene.notes.get("lifted"):
            return None
        answer: faults.Response | None = await faults.Unavailable503().meet(ask.request, ask.forward)
        return answer

    async def lift(self, scene: Scene) -> None:
        """It is back."""
        scene.notes["lifted"] = True


class Stale(Perturbation):
    """A read that comes before something is taken away is answered with an earlier state."""

    name, group, retries_heal = "stale read", "stale", False

    def targets(self, run: Evidence) -> Iterable[str]:
        """Every read before a deletion, or before a write that takes something away."""
        requests = targets_of(run.disturbed)
        last = max((number for number, (_, each) in enumerate(requests) if takes_away(each, self.workload)), default=-1)
        return [target for target, each in requests[: last + 1] if not each.is_write]

    async def hit(self, scene: Scene, ask: Ask) -> faults.Response | None:
        """Answer with what was true before."""
        fault = faults.StaleList() if ask.request.verb == "list" else faults.StaleGet()
        answer: faults.Response | None = await fault.meet(ask.request, ask.forward)
        scene.reached = answer is not None
        return answer


def takes_away(exchange: Exchange, workload: Workload) -> bool:
    """Whether a request took something away, or began to."""
    if not (exchange.is_write and exchange.changed):
        return False
    body = exchange.request
    if exchange.verb == "delete":
        return True
    if isinstance(body, list):  # the steps of a JSON patch
        return any(workload.destroys(step) for step in body)
    return isinstance(body, dict) and (workload.destroys(body) or workload.leftover(body))


def answered(name: str, fault: Callable[[], Any], on: str = "all", *, times: int = 1) -> type[Answered]:
    """A perturbation that answers so many times."""
    return type(name, (Answered,), {"name": name, "fault": staticmethod(fault), "on": on, "times": times, "__doc__": name})


def mixed(name: str, answers: Sequence[type[Answered]]) -> type[Mixed]:
    """A perturbation that gives all of these answers in each plan."""
    return type(name, (Mixed,), {"name": name, "answers": tuple(answers), "__doc__": name})


def refused(name: str, fault: Callable[[], Any], on: str = "write", *, tells: bool = False) -> type[Refused]:
    """A perturbation that refuses until it is lifted."""
    members = {"name": name, "fault": staticmethod(fault), "on": on, "tells": tells, "__doc__": name}
    return type(name, (Refused,), members)
