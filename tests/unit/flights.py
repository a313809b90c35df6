"""Work of single flights that waits to be told how to end: for tests of who shares which run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest_asyncio

from tenantry.engine.flight import Ask, JustRead, SingleFlight
from tenantry.engine.verdict import Verdict
from tenantry.model.kinds import Key, Object

A, B, C = (Key("v1", "Namespace", "", name) for name in "abc")
OBJECT: Object = {"metadata": {"name": "a"}}


@dataclass
class Run:
    """One run that was begun: what it was given, and how it is to end."""

    number: int
    ask: Ask
    known: JustRead
    end: asyncio.Future[Verdict]

    @property
    def causes(self) -> frozenset[Key]:
        """The keys that the run is for; none: everything."""
        return self.ask.causes

    def finish(self) -> None:
        """Let the run end with its number as the count of writes."""
        self.end.set_result(Verdict(204, f"run {self.number}", writes=self.number))


@dataclass
class Recorder:
    """Work that waits to be told how to end."""

    flight: SingleFlight = field(default_factory=SingleFlight)
    runs: list[Run] = field(default_factory=list)
    active: int = 0
    most: int = 0

    async def work(self, ask: Ask, known: JustRead) -> Verdict:
        """Note what was given, and wait."""
        run = Run(len(self.runs) + 1, ask, known, asyncio.get_running_loop().create_future())
        self.runs.append(run)
        self.active += 1
        self.most = max(self.most, self.active)
        try:
            return await run.end
        finally:
            self.active -= 1

    def arrive(
        self, *causes: Key, owner: str = "o", known: JustRead | None = None, verify: bool = True, **options: Any
    ) -> asyncio.Task[Verdict]:
        """Ask for a run, as one event does; without a cause as a sweep, or somebody who names the owner."""
        ask = Ask(frozenset(causes), verify)
        return asyncio.create_task(self.flight.run(owner, ask, known or {}, self.work, **options))

    async def begun(self, count: int) -> Run:
        """Wait until so many runs have begun, and return the last."""
        await until(lambda: len(self.runs) >= count)
        assert len(self.runs) == count
        return self.runs[-1]


async def until(condition: Callable[[], bool]) -> None:
    """Let others run until the condition holds."""
    for _ in range(2000):
        if condition():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("the condition did not come true")


async def settle() -> None:
    """Let everything that can go on without time passing go on."""
    for _ in range(20):
        await asyncio.sleep(0)


@pytest_asyncio.fixture
async def recorder() -> AsyncIterator[Recorder]:
    """Work, and afterwards nothing of it left."""
    made = Recorder()
    yield made
    await asyncio.wait_for(made.flight.drain(), 5)
    assert made.flight._lanes == {}
    assert made.flight._tasks == set()
