"""Single flight: one run at a time for an owner, and one trailing run for all that arrives meanwhile.

Who arrives during a run may have seen something that the run did not, so it waits for one further run,
shared with everybody else who waits.  Nobody is answered before a run that began after their arrival has
ended: an acknowledgement always means that the work is done.

After a run an owner may have a pause: what arrives in it shares the next run, which begins when the pause
ends.  So the echo of a run's own writes, a handful of events, costs one further look and not a handful, and
no owner can be run in a tight loop.  Where runs are slow, so is the echo: such a pause lasts as long as the
run itself, up to `LONGEST_PAUSE_S`, and first runs of other owners come before further looks at this one.
The first run of an owner never waits, and a look that found nothing new has no pause after it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from tenantry.engine.verdict import NOTHING_NEW, Verdict
from tenantry.model.kinds import Key, Object

LONGEST_PAUSE_S = 2.0

JustRead = Mapping[Key, Object | None]


@dataclass(frozen=True, slots=True)
class Ask:
    """Why an owner is looked at, and how carefully; who shares a run gets at least what he asked for."""

    causes: frozenset[Key] = frozenset()
    """The keys of the events that ask; none: everything about the owner, not only what some event told of."""
    verify: bool = True
    """Whether inputs of the decision are looked at again after the writes."""

    def __or__(self, other: Ask) -> Ask:
        """What serves both: who asks for everything is not served by a look at a part."""
        causes = self.causes | other.causes if self.causes and other.causes else frozenset[Key]()
        return Ask(causes, self.verify or other.verify)


Work = Callable[[Ask, JustRead], Awaitable[Verdict]]


@dataclass(slots=True)
class _Waiting:
    """The trailing run of an owner: what all who share it ask for together, and where they wait."""

    ask: Ask
    work: Work
    future: asyncio.Future[Verdict]


@dataclass(slots=True)
class _Lane:
    """One owner that runs, or pauses after a run."""

    running: bool = True
    trailing: _Waiting | None = None


class SingleFlight:
    """Runs by owner.  Runs go on when the one who asked for them goes away."""

    def __init__(self) -> None:
        self._lanes: dict[str, _Lane] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._draining = asyncio.Event()

    async def run(self, owner: str, ask: Ask, known: JustRead, work: Work, *, pause_s: float = 0.0) -> Verdict:
        """The verdict of a run for ``owner`` that begins now or later, and does at least what ``ask`` says.

        ``known`` are objects as they were read just now, which a run that begins now may use.  A trailing run begins
        later and reads everything itself.  ``work`` depends on the owner alone: who shares a run brings the same.
        """
        lane = self._lanes.get(owner)
        if lane is None:
            self._lanes[owner] = lane = _Lane()
            first = _Waiting(ask, work, asyncio.get_running_loop().create_future())
            task = asyncio.create_task(self._fly(owner, lane, first, known, pause_s))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            return await asyncio.shield(first.future)
        if lane.trailing is None:
            lane.trailing = _Waiting(ask, work, asyncio.get_running_loop().create_future())
        else:
            lane.trailing.ask |= ask
        return await asyncio.shield(lane.trailing.future)

    async def _fly(self, owner: str, lane: _Lane, run: _Waiting, known: JustRead, pause_s: float) -> None:
        try:
            while True:
                lane.running = True
                begun = time.monotonic()
                verdict = await _land(run, known)
                lane.running = False
                if pause_s and verdict is not NOTHING_NEW:
                    await self._pause(max(pause_s, min(time.monotonic() - begun, LONGEST_PAUSE_S)))
                if lane.trailing is None:
                    return
                run, lane.trailing, known = lane.trailing, None, {}
        finally:
            del self._lanes[owner]
            if lane.trailing is not None:
                lane.trailing.future.cancel()  # only when this task was cancelled: who waits must not wait for ever

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._draining.wait()

    def busy(self) -> frozenset[str]:
        """The owners that run now: what they have read may be older than this moment."""
        return frozenset(owner for owner, lane in self._lanes.items() if lane.running)

    async def drain(self) -> None:
        """Wait until nothing runs and nothing waits; pauses end at once."""
        self._draining.set()
        while self._tasks:
            await asyncio.wait(set(self._tasks))
        self._draining.clear()


async def _land(run: _Waiting, known: JustRead) -> Verdict | None:
    """Do the work and hand its end, good or bad, to whoever waits; the verdict of a good one."""
    try:
        verdict = await run.work(run.ask, known)
    except BaseException as error:
        run.future.set_exception(error)
        run.future.exception()  # a waiter that went away is no reason for a warning
        if isinstance(error, asyncio.CancelledError):
            raise
        return None
    run.future.set_result(verdict)
    return verdict
