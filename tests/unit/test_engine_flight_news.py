"""Who shares a run that has not begun, and which events end the pause after one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from flights import OBJECT, A, B, C, Recorder, recorder, settle, until

from tenantry.engine.flight import HURRIED, Ask
from tenantry.model.kinds import Key

__all__ = ["recorder"]


async def test_who_arrives_before_a_run_has_begun_shares_it(recorder: Recorder) -> None:
    """While it waits for its place it has read nothing; what was read for the first one is too old for the second."""
    places = asyncio.Semaphore(0)

    @asynccontextmanager
    async def place(_: Ask) -> AsyncIterator[bool]:
        async with places:
            yield True

    first = recorder.arrive(A, known={A: OBJECT}, place=place)
    await settle()
    second = recorder.arrive(B, place=place)
    await settle()
    assert recorder.runs == []
    places.release()
    run = await recorder.begun(1)
    assert (run.causes, run.known) == ({A, B}, {})
    third = recorder.arrive(C, place=place)
    run.finish()
    assert [(await each).writes for each in (first, second)] == [1, 1]
    (await recorder.begun(2)).finish()
    assert (await third).writes == 2


async def test_a_run_that_had_to_wait_reads_anew(recorder: Recorder) -> None:
    """What was read for it may have changed since."""

    @asynccontextmanager
    async def place(_: Ask) -> AsyncIterator[bool]:
        yield False

    task = recorder.arrive(A, known={A: OBJECT}, place=place)
    run = await recorder.begun(1)
    assert run.known == {}
    run.finish()
    await task


async def test_news_end_a_pause_and_echoes_do_not(recorder: Recorder) -> None:
    """Whether they come in the pause, or before it: judged by what the run has written."""
    for early in (True, False):
        recorder.runs.clear()
        news: list[Key] = []
        arrive = partial(recorder.arrive, pause_s=0.3, is_news=lambda ask: bool(ask.causes & {*news}))  # noqa: B023
        first = arrive(A)
        run = await recorder.begun(1)
        begun = time.monotonic()
        waiting = [arrive(B)] if early else []
        await settle()
        run.finish()
        await first
        await settle()
        assert len(recorder.runs) == 1
        news.append(C)
        waiting.append(arrive(C))
        second = await recorder.begun(2)
        assert second.causes == ({B, C} if early else {C})
        assert time.monotonic() - begun < 0.25
        second.finish()
        await asyncio.gather(*waiting)
        await until(lambda: recorder.flight._lanes == {})


async def test_news_that_came_during_a_run_are_not_held_up(recorder: Recorder) -> None:
    """The run after it begins at once."""
    arrive = partial(recorder.arrive, pause_s=5.0, is_news=lambda ask: B in ask.causes)
    first, run = arrive(A), await recorder.begun(1)
    second = arrive(B)
    await settle()
    run.finish()
    (await recorder.begun(2)).finish()
    await asyncio.gather(first, second)


async def test_a_fight_does_not_run_without_pauses(recorder: Recorder) -> None:
    """So many pauses end early for news, and then there is a whole one."""
    arrive = partial(recorder.arrive, pause_s=0.2, is_news=lambda _: True)
    task = arrive(A)
    for number in range(HURRIED + 1):
        (await recorder.begun(number + 1)).finish()
        await task
        task = arrive(A)
    begun = time.monotonic()
    (await recorder.begun(HURRIED + 2)).finish()
    assert time.monotonic() - begun > 0.15
    await task


def test_asks_that_are_joined_tell_what_both_told() -> None:
    """Of an object that two events told of in two states, or one of them in none, nothing is told."""
    one, other = Ask(frozenset({A, B}), told={A: "1", B: "1"}), Ask(frozenset({B, C}), told={B: "2", C: "1"})
    assert (one | other).told == {A: "1", C: "1"}
    assert (one | one).told == one.told
    assert (one | Ask(frozenset({A}))).told == {B: "1"}
    assert (one | Ask()).causes == frozenset()
