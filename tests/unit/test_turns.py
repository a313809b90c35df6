"""Turns of requests: places are bounded, and go to the party that had the least lately."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tenantry.api import turns as module
from tenantry.api.turns import OLDEST_EACH, SHARED, Turns
from tenantry.model import limits


class Clock:
    """A clock that stands until it is set on."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


class Line:
    """Tasks that want a turn each, and the order in which they got it."""

    def __init__(self, places: int, clock: Clock, uncounted: int = 1) -> None:
        self.turns = Turns(places, uncounted)
        self.clock = clock
        self.order: list[str] = []

    async def had(self, who: str, seconds: float) -> None:
        """A party has had a place for so long, just now."""

        async def work() -> None:
            self.clock.now += seconds

        await asyncio.create_task(self.ask(who, "", work))

    async def ask(self, who: str, name: str, work: Callable[[], Awaitable[None]] | None = None) -> None:
        async with self.turns.turn(who):
            if name:
                self.order.append(name)
            if work is not None:
                await work()

    async def queue(self, *asked: tuple[str, str]) -> list[str]:
        """The order in which they get the one place, when all have asked while it was taken."""
        held = asyncio.Event()

        async def hold() -> None:
            await held.wait()

        holder = asyncio.create_task(self.ask(SHARED, "", hold))
        await asyncio.sleep(0)
        tasks = [asyncio.create_task(self.ask(who, name)) for who, name in asked]
        await asyncio.sleep(0)
        held.set()
        await asyncio.gather(holder, *tasks)
        return self.order


async def test_places_are_bounded(clock: Clock) -> None:
    line, under_way, most = Line(3, clock), 0, 0

    async def work() -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1

    await asyncio.gather(*(line.ask(f"party-{number % 4}", "", work) for number in range(40)))
    assert (most, under_way) == (3, 0)


async def test_the_party_that_had_the_least_is_next(clock: Clock) -> None:
    line = Line(1, clock)
    await line.had("busy", 5.0)
    await line.had("other", 0.3)
    order = await line.queue(("busy", "busy 1"), ("busy", "busy 2"), ("other", "other"), ("new", "new"))
    assert order == ["new", "other", "busy 1", "busy 2"]


async def test_what_all_wait_for_is_first(clock: Clock) -> None:
    line = Line(1, clock)
    await line.had(SHARED, 9.0)
    await line.had("a", 0.2)
    assert await line.queue(("a", "a"), (SHARED, "shared")) == ["shared", "a"]


async def test_those_that_had_little_go_in_their_order(clock: Clock) -> None:
    line = Line(1, clock)
    await line.had("a", 0.04)
    await line.had("b", 0.09)
    assert await line.queue(("b", "b"), ("a", "a"), ("c", "c")) == ["b", "a", "c"]


async def test_what_a_party_had_is_forgotten_with_time(clock: Clock) -> None:
    line = Line(1, clock)
    await line.had("long ago", 5.0)
    clock.now += 60
    await line.had("lately", 0.3)
    assert await line.queue(("lately", "lately"), ("long ago", "long ago")) == ["long ago", "lately"]


async def test_who_waits_longest_gets_each_fourth_place(clock: Clock) -> None:
    line = Line(1, clock)
    await line.had("busy", 5.0)
    order = await line.queue(("busy", "busy"), *((f"new-{number}", "new") for number in range(8)))
    assert order.index("busy") == OLDEST_EACH - 1


async def test_what_a_party_waits_for_counts_before_it_has_had_it(clock: Clock) -> None:
    """Where places are held for seconds; who asks for two is not behind who asks for one."""
    line = Line(1, clock)
    await line.had("somebody", 5.0)
    many = [("many", f"many {number}") for number in range(4)]
    order = await line.queue(*many, ("two", "two 1"), ("two", "two 2"), ("one", "one"))
    assert order == ["many 0", "many 1", "two 1", "many 2", "two 2", "one", "many 3"]


async def test_where_each_wants_one_place_the_second_counts(clock: Clock) -> None:
    line = Line(1, clock, uncounted=0)
    await line.had("somebody", 5.0)
    order = await line.queue(("many", "many 0"), ("many", "many 1"), ("many", "many 2"), ("one", "one"))
    assert order == ["many 0", "one", "many 1", "many 2"]


async def test_what_a_party_no_longer_waits_for_does_not_count(clock: Clock) -> None:
    line = Line(1, clock)
    await line.had("somebody", 5.0)
    await line.queue(*[("many", "") for _ in range(4)])
    assert await line.queue(("many", "many"), ("one", "one")) == ["many", "one"]


@pytest.mark.parametrize("given", [False, True])
async def test_who_goes_away_keeps_no_place(clock: Clock, given: bool) -> None:
    """While it waits, and in the moment in which it is given its place."""
    line, held = Line(1, clock), asyncio.Event()

    async def hold() -> None:
        await held.wait()

    async def holds() -> None:
        await line.ask("a", "", hold)
        leaver.cancel()  # in the step in which the place was given

    holder = asyncio.create_task(holds() if given else line.ask("a", "", hold))
    await asyncio.sleep(0)
    leaver = asyncio.create_task(line.ask("b", "leaver"))
    await asyncio.sleep(0)
    if not given:
        leaver.cancel()
    held.set()
    await asyncio.wait({leaver, holder})
    assert leaver.cancelled()
    async with asyncio.timeout(1):
        await line.ask("c", "c")
    assert line.order == ["c"]


async def test_which_of_several_had_the_least(clock: Clock) -> None:
    line = Line(1, clock)
    await line.had("busy", 5.0)
    assert line.turns.least(["busy", "new"]) == "new"
    assert line.turns.least([]) == SHARED


async def test_parties_that_had_little_are_forgotten_when_there_are_many(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PARTIES", 8)
    line = Line(1, clock)
    await line.had("busy", 5.0)
    for number in range(20):
        await line.had(f"party-{number}", 0.001)
    assert len(line.turns._uses) <= 8
    assert await line.queue(("busy", "busy"), ("new", "new")) == ["new", "busy"]
