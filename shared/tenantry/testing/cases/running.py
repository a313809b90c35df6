"""Runs tests one after the other: those of one configuration on one system, which is put back before each.

One at a time, and not side by side: functions look at everything that there is, so that tests that share a cluster would see
each other's objects, and two clusters take the cores of two.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from tenantry.api.errors import ApiError
from tenantry.model.kinds import Object
from tenantry.testing.cases.files import Case
from tenantry.testing.cases.form import Action, Step
from tenantry.testing.cases.ground import Ground, NotAtRest, Say
from tenantry.testing.cases.limits import HELM_S, time_for
from tenantry.testing.cases.looking import Finding, Looking, wrong
from tenantry.testing.cases.people import Impossible
from tenantry.testing.cases.results import Failure, Result
from tenantry.testing.cases.written import Place
from tenantry.testing.forks import Forks
from tenantry.testing.planes import ControlPlanes

GIVEN = "given"


OnResult = Callable[[Result], None]
OnFailure = Callable[[Result, Ground], Awaitable[bool]]


class Runner:
    """Runs tests.

    Args:
        planes, forks: where control planes and processes of functions come from.
        helm: the program; without it nothing is released.
        patience: every time limit is so many times longer.
        say: gets a line for people now and then.
        on_result: called after each test.
        on_failure: called after a test that failed, while the cluster is as it left it; says whether to go on.
    """

    def __init__(
        self,
        planes: ControlPlanes,
        forks: Forks,
        helm: Path | None,
        *,
        patience: float = 1.0,
        say: Say,
        on_result: OnResult,
        on_failure: OnFailure | None = None,
    ) -> None:
        self._planes = planes
        self._forks = forks
        self._helm = helm
        self._patience = patience
        self._say = say
        self._on_result = on_result
        self._on_failure = on_failure

    async def run(self, cases: Sequence[Case]) -> list[Result]:
        """Run all, those of one configuration after each other; returns what came of each, in the order in which they ran."""
        results: list[Result] = []
        for system in dict.fromkeys(each.system for each in cases):
            if not await self._together([each for each in cases if each.system == system], results):
                break
        return results

    async def _together(self, cases: Sequence[Case], results: list[Result]) -> bool:
        """Run tests on one system; whether to go on with others."""
        first = cases[0]
        async with AsyncExitStack() as stack:
            ground: Ground | None = None
            for case in cases:
                if ground is None or not await ground.cleared():
                    await stack.aclose()
                    made = Ground(self._planes, self._forks, first.config, first.form.functions, self._helm, self._say)
                    ground = await stack.enter_async_context(made)
                results.append(await self._one(ground, case))
                self._on_result(results[-1])
                if not results[-1].passed and self._on_failure is not None and not await self._on_failure(results[-1], ground):
                    return False
        return True

    async def _one(self, ground: Ground, case: Case) -> Result:
        began = time.monotonic()
        acting = Acting(ground, case, self._patience)
        failures = await acting.all()
        said = list(ground.said) if failures else []
        return Result(case.written.file, case.written.line(("test",)), case.name, time.monotonic() - began, failures, said)


class Acting:
    """One test at work."""

    def __init__(self, ground: Ground, case: Case, patience: float) -> None:
        self._ground = ground
        self._case = case
        self._patience = patience

    async def all(self) -> list[Failure]:
        """What was not as expected, of the first part of the test where something was not."""
        form = self._case.form
        written: list[Object] = []
        found = await self._do(form.given, (GIVEN,), written)
        if not found and form.given:
            try:
                await self._ground.at_rest(self._patience * HELM_S)
            except NotAtRest as error:
                found = [Finding((GIVEN,), str(error))]
        if found:
            return self._failures(found, GIVEN)
        for number, step in enumerate(form.steps):
            if found := await self._step(step, ("steps", number)):
                return self._failures(found, f"step {number + 1}{f', {step.step}' if step.step else ''}")
        return []

    async def _step(self, step: Step, place: Place) -> list[Finding]:
        with self._ground.way.disturbed(step.events):
            written: list[Object] = []
            if found := await self._do(step.when, (*place, "when"), written):
                return found
            began = time.monotonic()
            limit = step.within or self._case.form.within or time_for(written)
            looking = Looking(self._ground, self._case)
            checks = [
                looking.at(each, (*place, "then", number), began + self._patience * (each.within or limit))
                for number, each in enumerate(step.then)
            ]
            # side by side: the time of each counts from the last write
            found = [finding for findings in await asyncio.gather(*checks) for finding in findings]
            return found or self._unmet(step, place)

    def _unmet(self, step: Step, place: Place) -> list[Finding]:
        """Events that were to be lost or doubled, of which none came: then the test shows nothing."""
        if step.events is None:
            return []
        return [
            Finding((*place, "events", what, number), f"there was no event of such a {each.kind} to {what}")
            for what, concerned in (("lose", step.events.lose), ("double", step.events.double))
            for number, each in enumerate(concerned)
            if not self._ground.way.met[each]
        ]

    async def _do(self, actions: Sequence[Action], place: Place, written: list[Object]) -> list[Finding]:
        for number, action in enumerate(actions):
            here = (*place, number, action.verb)
            if action.verb == "sweep":
                for function in action.sweep:
                    if function not in self._ground.knative.names:
                        return [Finding(here, f"{function} does not run in this test")]
                    await self._ground.knative.sweep(function)
                continue
            objects = self._case.objects(action.objects)
            written += objects
            for at, each in enumerate(objects):
                try:
                    await self._ground.people.write(action, action.verb, each, action.subresource)
                except (Impossible, ApiError) as error:
                    said = str(error) if isinstance(error, Impossible) else wrong(error)
                    exactly = (*here, at) if isinstance(action.objects, list) else here
                    what = f"{each['kind']} {each['metadata']['name']}"
                    return [Finding(exactly, f"{action.called} cannot {action.verb} {what}: {said}")]
        return []

    def _failures(self, found: Sequence[Finding], step: str) -> list[Failure]:
        written = self._case.written
        return [Failure(written.file, written.line(each.place), step, each.said, each.more) for each in found]
