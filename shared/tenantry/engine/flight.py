"""Single flight: one run at a time for an owner, and one trailing run for all that arrives meanwhile.

Who arrives during a run may have seen something that the run did not, so it waits for one further run,
shared with everybody else who waits.  Nobody is answered before a run that began after their arrival has
ended: an acknowledgement always means that the work is done.

Who arrives before a run has begun shares it: where many runs wait for their turn, an owner's events become one.

After a run an owner may have a pause: what arrives in it shares the next run, which begins when the pause
ends.  So the echo of a run's own writes, a handful of events, costs one further look and not a handful, and
no owner can be run in a tight loop.  Where runs are slow, so is the echo: such a pause lasts as long as the
run itself, up to `LONGEST_PAUSE_S`, and first runs of other owners come before further looks at this one.
The first run of an owner never waits, and a look that found nothing new has no pause after it.  An event that
is news, and no echo, ends the pause, `HURRIED` times without a whole one between them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field

from tenantry.engine.verdict import NOTHING_NEW, Verdict
from tenantry.model import limits
from tenantry.model.decision import Cause
from tenantry.model.kinds import Key, Object

LONGEST_PAUSE_S = 2.0
HURRIED = 4
"""So many pauses, one after the other, end early for news."""

PARTIES_KEPT = 8
"""Of those for whom a run is made, so many are told apart."""

JustRead = Mapping[Key, Object | None]


@dataclass(frozen=True, slots=True)
class Ask:
    """Why an owner is looked at, and how carefully; who shares a run gets at least what he asked for."""

    causes: frozenset[Key] = frozenset()
    """The keys of the events that ask; none: everything about the owner, not only what some event told of."""
    verify: bool = True
    """Whether inputs of the decision are looked at again after the writes."""
    told: Mapping[Key, Hashable] = field(default_factory=dict)
    """The states of objects that the events told of, as far as they did, and all the same."""
    events: tuple[Cause, ...] = ()
    """The events that ask, for who listens to decisions; else none."""
    more_events: int = 0
    """How many more there were."""
    parties: frozenset[str] = frozenset()
    """For whom, of those who ask (`tenantry.api.turns`): some of them, where they are many."""

    def __or__(self, other: Ask) -> Ask:
        """What serves both: who asks for everything is not served by a look at a part."""
        causes = self.causes | other.causes if self.causes and other.causes else frozenset[Key]()
        both = self.causes & other.causes
        told = {key: state for key, state in {**self.told, **other.told}.items() if key not in both}
        told |= {key: self.told[key] for key in both if key in self.told and self.told[key] == other.told.get(key)}
        events, more = self.events, self.more_events + other.more_events
        if other.events:
            both_events = tuple(dict.fromkeys(self.events + other.events))
            events = both_events[: limits.DECISION_CAUSES]
            more += len(both_events) - len(events)
        parties = self.parties | other.parties if len(self.parties) < PARTIES_KEPT else self.parties
        return Ask(causes, self.verify or other.verify, told, events, more, parties)


Work = Callable[[Ask, JustRead], Awaitable[Verdict]]
Place = Callable[[Ask], AbstractAsyncContextManager[bool]]
"""Where a run takes place: entered before it begins, which may last; gives whether it could begin at once."""


def nobody_waits(_: Ask) -> AbstractAsyncContextManager[bool]:
    """A place that there is always."""
    return nullcontext(True)


IsNews = Callable[[Ask], bool]
"""Whether the events tell of what no run of the owner has read or written."""


@dataclass(slots=True)
class _Waiting:
    """A run that has not begun: what all who share it ask for together, and where they wait."""

    ask: Ask
    work: Work
    known: JustRead = field(default_factory=dict)
    future: asyncio.Future[Verdict] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    begun: bool = False

    def join(self, ask: Ask) -> None:
        """One more shares it: what was read before he came is too old."""
        self.ask |= ask
        self.known = {}


@dataclass(slots=True)
class _Lane:
    """One owner that runs, or pauses after a run."""

    first: _Waiting
    """The run that is under way, or about to begin."""
    running: bool = True
    trailing: _Waiting | None = None
    hurried: int = 0
    """Pauses that ended early since the last whole one."""
    wake: asyncio.Event = field(default_factory=asyncio.Event)


class SingleFlight:
    """Runs by owner.  Runs go on when the one who asked for them goes away."""

    def __init__(self) -> None:
        self._lanes: dict[str, _Lane] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._draining = False

    async def run(
        self,
        owner: str,
        ask: Ask,
        known: JustRead,
        work: Work,
        *,
        pause_s: float = 0.0,
        place: Place = nobody_waits,
        is_news: IsNews = lambda _: False,
    ) -> Verdict:
        """The verdict of a run for ``owner`` that begins now or later, and does at least what ``ask`` says.

        ``known`` are objects as they were read just now, which a run that begins now may use.  One that begins later reads
        everything itself.  ``work``, ``place`` and ``is_news`` depend on the owner alone: who shares a run brings the same.
        """
        lane = self._lanes.get(owner)
        if lane is None:
            shared = _Waiting(ask, work, known)
            self._lanes[owner] = lane = _Lane(shared)
            task = asyncio.create_task(self._fly(owner, lane, pause_s, place, is_news))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        elif lane.running and not lane.first.begun:
            shared = lane.first
            shared.join(ask)
        elif lane.trailing is None:
            shared = lane.trailing = _Waiting(ask, work)
        else:
            shared = lane.trailing
            shared.join(ask)
        if not lane.running and lane.hurried < HURRIED and is_news(ask):
            lane.wake.set()
        return await asyncio.shield(shared.future)

    async def _fly(self, owner: str, lane: _Lane, pause_s: float, place: Place, is_news: IsNews) -> None:
        try:
            while True:
                begun = time.monotonic()
                verdict = await _land(lane.first, place)
                lane.running = False
                if pause_s and verdict is not NOTHING_NEW:
                    await self._pause(lane, max(pause_s, min(time.monotonic() - begun, LONGEST_PAUSE_S)), is_news)
                if lane.trailing is None:
                    return
                lane.first, lane.trailing, lane.running = lane.trailing, None, True
        finally:
            del self._lanes[owner]
            if lane.trailing is not None:
                lane.trailing.future.cancel()  # only when this task was cancelled: who waits must not wait for ever

    async def _pause(self, lane: _Lane, seconds: float, is_news: IsNews) -> None:
        if self._draining:
            return
        lane.wake.clear()
        if lane.trailing is not None and lane.hurried < HURRIED and is_news(lane.trailing.ask):
            lane.wake.set()
        try:
            async with asyncio.timeout(seconds):
                await lane.wake.wait()
        except TimeoutError:
            lane.hurried = 0
        else:
            lane.hurried += 1

    async def landed(self, owners: Iterable[str], within_s: float) -> None:
        """Wait while runs for these owners follow one another, so long at most."""
        until = time.monotonic() + within_s
        for owner in owners:
            while (lane := self._lanes.get(owner)) is not None and lane.running and (left := until - time.monotonic()) > 0:
                await asyncio.wait({lane.first.future}, timeout=left)
                await asyncio.sleep(0)  # the next one, if any, is the first by then

    def busy(self) -> frozenset[str]:
        """The owners that run now: what they have read may be older than this moment."""
        return frozenset(owner for owner, lane in self._lanes.items() if lane.running)

    async def drain(self) -> None:
        """Wait until nothing runs and nothing waits; pauses end at once."""
        self._draining = True
        for lane in self._lanes.values():
            lane.wake.set()
        while self._tasks:
            await asyncio.wait(set(self._tasks))
        self._draining = False


async def _land(run: _Waiting, place: Place) -> Verdict | None:
    """Do the work and hand its end, good or bad, to whoever waits; the verdict of a good one."""
    try:
        async with place(run.ask) as at_once:
            run.begun = True  # from here on it may have read what is changed now
            verdict = await run.work(run.ask, run.known if at_once else {})
    except BaseException as error:
        run.future.set_exception(error)
        run.future.exception()  # a waiter that went away is no reason for a warning
        if isinstance(error, asyncio.CancelledError):
            raise
        return None
    run.future.set_result(verdict)
    return verdict
