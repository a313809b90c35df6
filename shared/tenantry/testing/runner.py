"""Performing plans: a round disturbs many runs at once, sweeps once for all, replays everything, and judges.

Phases of a round.  (1) Every run on its own: preparation, then the disturbed steps, then the disturbance is lifted and what
is still under way settles.  (2) One sweep for all; each run must come to its reference's end state.  (3) Every event of every
run again and two sweeps: no write.  (4) The oracle judges.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tenantry.api.errors import ApiError
from tenantry.testing.arena import Arena, NotSettled
from tenantry.testing.awaiting import POLL_S
from tenantry.testing.masks import Mask, State, state_of
from tenantry.testing.naming import Occurrences
from tenantry.testing.oracle import RECOVERY_S, Evidence, Failure, Reference, judge, reference_of
from tenantry.testing.perturbations import Perturbation, Scene
from tenantry.testing.replicas import Replica
from tenantry.testing.workload import Run, Scenario, Workload, play
from tenantry.testing.world import is_held

LASTING_S = 0.7
"""A state that lasted so long counts as reached, where the expected one is not known yet."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One run to perform: a scenario, a perturbation and what it hits."""

    scenario: str
    perturbation: type[Perturbation]
    target: str = ""

    @property
    def id(self) -> str:
        """A name for the command line."""
        words = f"{self.scenario}/{self.perturbation.name}/{self.target}"
        return words.replace(" #", "#").replace(" ", "_").strip("/")


@dataclass(slots=True)
class Result:
    """What came of a plan."""

    plan: Plan
    failures: list[Failure]
    reached: bool
    healed_early: bool
    seconds: float
    """Until the disturbance was over and what it left under way had settled."""


@dataclass(slots=True)
class Learned:
    """What undisturbed runs taught: a reference for each scenario, and the mask."""

    references: dict[str, Reference] = field(default_factory=dict)
    mask: Mask = field(default_factory=Mask)
    failures: list[tuple[str, Failure]] = field(default_factory=list)


@dataclass(slots=True)
class _Performed:
    plan: Plan
    scene: Scene
    perturbation: Perturbation
    evidence: Evidence
    began: float


async def learn(arena: Arena, scenarios: Sequence[str]) -> Learned:
    """Perform each scenario undisturbed, twice on its own path and once on another, and learn references and masks.

    Failures of the undisturbed runs, and of path-freedom, are part of what is learned.  When one does not even come to an end
    there are no references, and so no plans.
    """
    learned = Learned()
    plans = [Plan(name, Perturbation) for name in scenarios]
    rounds = []
    for _ in range(2):
        began = time.monotonic()
        rounds.append(await _perform_in_turns(arena, plans, {}))
        errors = [(each.plan.scenario, Failure("bounded", each.evidence.error)) for each in rounds[-1] if each.evidence.error]
        if errors:
            return Learned(failures=errors)
        # Times of objects have whole seconds: they must differ between the runs to be recognised as times.
        await asyncio.sleep(max(0.0, began + 1.1 - time.monotonic()))
    for one, two in zip(*rounds, strict=True):
        learned.mask.learn(one.evidence.end, two.evidence.end)
        learned.references[one.plan.scenario] = reference_of([one.evidence, two.evidence])
    for each in (*rounds[0], *rounds[1]):
        each.evidence.undisturbed = True
        learned.failures += [(each.plan.scenario, failure) for failure in _judged(arena, each, learned)]
    others = {name: _other_path(arena.workload.scenarios[name], learned.references[name]) for name in scenarios}
    ends = {name: reference.end for name, reference in learned.references.items()}
    for each in await _perform_in_turns(arena, plans, ends, learned.mask, others):
        name = each.plan.scenario
        for line in learned.mask.differences(ends[name], each.evidence.end)[:4]:
            learned.failures.append((name, Failure("path-free", line)))
    for each in (*rounds[0], *rounds[1]):
        await arena.close(each.evidence.tag)
    return learned


async def acclimatise(arena: Arena, learned: Learned, scenario: str) -> None:
    """Learn what differs between the control plane of an arena and the one before: its certificates."""
    for each in await _perform_all(arena, [Plan(scenario, Perturbation)], 0, {}):
        learned.mask.learn(learned.references[scenario].end, each.evidence.end)
        await arena.close(each.evidence.tag)


def _other_path(scenario: Scenario, reference: Reference) -> Scenario:
    """Another way to the same declarations: the one that the workload gives, or all manifests at once."""

    async def at_once(run: Run) -> None:
        await run.declare(reference.evidence[0].declared)

    return Scenario(scenario.name, scenario.other or [at_once])


async def perform(
    arena: Arena, plans: Sequence[Plan], learned: Learned, seed: int, done: Callable[[Result], None] = lambda _: None
) -> list[Result]:
    """One round: perform plans in parallel and judge each."""
    ends = {name: reference.end for name, reference in learned.references.items()}
    results = []
    for each in await _perform_all(arena, plans, seed, ends, learned.mask):
        evidence = each.evidence
        early = not learned.mask.differences(ends[each.plan.scenario], evidence.early)
        failures = _judged(arena, each, learned)
        results.append(Result(each.plan, failures, each.scene.reached, early, evidence.seconds))
        for exchange in (*evidence.exchanges, *evidence.again):
            exchange.forget()
        await arena.close(evidence.tag)
        done(results[-1])
    return results


def _judged(arena: Arena, each: _Performed, learned: Learned) -> list[Failure]:
    return judge(each.evidence, learned.references[each.plan.scenario], learned.mask, arena.workload, arena.world)


async def _perform_in_turns(
    arena: Arena,
    plans: Sequence[Plan],
    ends: Mapping[str, State],
    mask: Mask | None = None,
    paths: Mapping[str, Scenario] | None = None,
) -> list[_Performed]:
    """Those together that can be, then each that is to be by itself."""
    performed = []
    for some in rounds_of(arena.workload, plans, len(plans)):
        performed += await _perform_all(arena, some, 0, ends, mask, paths)
    return performed


def rounds_of(workload: Workload, plans: Sequence[Plan], size: int) -> list[list[Plan]]:
    """Rounds of at most so many plans; each that concerns what other runs share or read by itself, after the others."""
    apart = [plan for plan in plans if _concerns_others(workload, plan)]
    together = [plan for plan in plans if plan not in apart]
    return [*(together[start : start + size] for start in range(0, len(together), size)), *([plan] for plan in apart)]


def _concerns_others(workload: Workload, plan: Plan) -> bool:
    read = workload.read_by_others
    return workload.scenarios[plan.scenario].by_itself or (bool(read) and plan.target.startswith(read))


async def _perform_all(
    arena: Arena,
    plans: Sequence[Plan],
    seed: int,
    ends: Mapping[str, State],
    mask: Mask | None = None,
    paths: Mapping[str, Scenario] | None = None,
) -> list[_Performed]:
    foreign, logs = len(arena.foreign), len(arena.logs)
    by_itself = any(arena.workload.scenarios[plan.scenario].by_itself for plan in plans)
    assert not by_itself or len(plans) == 1, plans
    scenarios = paths or arena.workload.scenarios
    performed = list(await asyncio.gather(*(_disturb(arena, plan, scenarios[plan.scenario], seed) for plan in plans)))
    swept = time.monotonic()
    await _sweep(arena, performed)
    await asyncio.gather(*(_recover(arena, each, ends.get(each.plan.scenario), mask, swept) for each in performed))
    for each in performed:
        each.evidence.exchanges = list(arena.exchanges(each.evidence.tag))
        lane = arena.player.lanes[each.evidence.tag]
        for announced in list(lane.announced):
            lane.send(announced.event)
    await asyncio.gather(*(_settle(arena, each) for each in performed))
    for _ in range(2):
        await _sweep(arena, performed)
    for each in performed:
        evidence = each.evidence
        evidence.again = arena.exchanges(evidence.tag)[len(evidence.exchanges) :]
        evidence.changes = arena.world.changes(evidence.tag)
        evidence.logs = [line for _, line in arena.logs[logs:] if evidence.tag in line]
    arena.only = ""
    if strange := arena.foreign[foreign:]:
        performed[0].evidence.logs.append(f"(in this round) wrote to an object of no run: {strange[0].key}")
    if untagged := [line for _, line in arena.logs[logs:] if not any(each.evidence.tag in line for each in performed)]:
        performed[0].evidence.logs.append(f"(in this round) {untagged[0]}")
    return performed


async def _disturb(arena: Arena, plan: Plan, scenario: Scenario, seed: int) -> _Performed:
    """Phase 1 of one run."""
    perturbation = plan.perturbation(arena.workload)
    replicas: list[Replica] = []
    if perturbation.alone:
        replicas = await arena.pool.take(2)
    elif perturbation.both:
        replicas += arena.pool.shared
    run, lane = await arena.open(*(replicas[:1] if perturbation.alone else replicas))
    if arena.workload.scenarios[plan.scenario].by_itself:
        arena.only = run.tag
    evidence = Evidence(run.tag, plan.scenario, lane)
    evidence.retries_heal = perturbation.retries_heal
    evidence.extra, evidence.more_writes, evidence.followed = perturbation.extra, perturbation.more_writes, int(scenario.drifts)
    chance = random.Random(f"{seed} {plan.id}")  # noqa: S311 (reproducible on purpose)
    scene = Scene(run, lane, replicas, arena.world, plan.target, chance)
    performed = _Performed(plan, scene, perturbation, evidence, time.monotonic())
    try:
        await play(scenario.before, run)
        await run.settle()
        mark = len(arena.exchanges(run.tag))
        lane.disturb()
        perturbation.arm(scene)
        occurrences = Occurrences()
        for aims in arena.aims:
            aims.take(scene, perturbation, occurrences)
        await _steps(arena, scenario, perturbation, scene, evidence)
        evidence.disturbed = arena.exchanges(run.tag)[mark:]
        if perturbation.tells and scene.reached and not tells_itself(plan.target):
            present = arena.world.every(run.tag)
            evidence.told = any(arena.workload.tells(obj) for obj in [*present, *arena.world.shared_about(run.tag)])
            evidence.unhealed = state_of(arena.world.owned(run.tag), run.tag)
            evidence.held = any(is_held(obj) for obj in present)
        await perturbation.lift(scene)
        lane.calm()
        await run.settle()
        evidence.early = state_of(arena.world.of(run.tag), run.tag)
        evidence.declared = [run.roles(body) for body in run.declared.values()]
    except (ApiError, NotSettled) as error:
        evidence.error = f"{type(error).__name__}: {error}"
    finally:
        for aims in arena.aims:
            aims.drop(run.tag)
    evidence.seconds = time.monotonic() - performed.began
    if perturbation.alone:
        lane.redirect(arena.pool.shared[0].urls)
        for replica in scene.replicas:
            arena.pool.give_back(replica)
    return performed


async def _steps(arena: Arena, scenario: Scenario, perturbation: Perturbation, scene: Scene, evidence: Evidence) -> None:
    for step in scenario.steps:
        await step(scene.run)
        if not perturbation.burst:
            await scene.run.settle()
        elif step is scenario.steps[-1]:
            await arena.announced(scene.run.tag)
        else:
            await perturbation.ready(scene)
        evidence.step_ended.append(time.monotonic())


def tells_itself(target: str) -> bool:
    """Whether a refused request is the telling itself: a condition or an Event."""
    return " events " in target or "/status " in target


async def _settle(arena: Arena, each: _Performed) -> None:
    if each.evidence.error:
        return  # it failed already: nothing is to be waited for
    try:
        await arena.settle(each.evidence.tag)
    except NotSettled as error:
        each.evidence.error = each.evidence.error or str(error)


async def _sweep(arena: Arena, performed: Sequence[_Performed]) -> None:
    statuses = await arena.sweep()
    if statuses[-1:] != [204]:
        performed[0].evidence.error = f"(in this round) the sweep was answered {statuses}"
    await asyncio.gather(*(_settle(arena, each) for each in performed))


async def _recover(arena: Arena, each: _Performed, end: State | None, mask: Mask | None, swept: float) -> None:
    """Reach the end from the sweep on, or from when hands could make again what went with what held it till then."""
    made_again = not each.evidence.error and await each.scene.run.make_again()
    await _reach(arena, each, end, mask, time.monotonic() if made_again else swept)


async def _reach(arena: Arena, each: _Performed, end: State | None, mask: Mask | None, swept: float) -> None:
    """Phase 2: wait until a run has come to the end state that is expected, or to any that lasts when none is known."""
    evidence, last, since, seen = each.evidence, None, time.monotonic(), -1
    while True:
        now, changes = time.monotonic(), arena.world.count(evidence.tag)
        if changes != seen:
            evidence.end, seen = state_of(arena.world.of(evidence.tag), evidence.tag), changes
            if end is not None and mask is not None and not mask.differences(end, evidence.end):
                break
        if end is None:
            if evidence.end != last:
                last, since = evidence.end, now
            elif now - since > LASTING_S:
                break
        if now - swept > RECOVERY_S:
            break
        await asyncio.sleep(POLL_S)
    evidence.recovery_s = time.monotonic() - swept
