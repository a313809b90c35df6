"""Single flight: who shares which run, who is answered when, and what survives cancellation and failure."""

from __future__ import annotations

import asyncio
import time

import pytest
from flights import OBJECT, A, B, C, Recorder, recorder, settle, until

from tenantry.engine.flight import Ask, JustRead, SingleFlight
from tenantry.engine.verdict import Verdict
from tenantry.model.kinds import Key

__all__ = ["recorder"]


async def test_a_run_has_its_cause_and_what_was_read_for_it(recorder: Recorder) -> None:
    """The first run begins at once, with the caller's cause and reads."""
    first = recorder.arrive(A, known={A: OBJECT})
    run = await recorder.begun(1)
    assert run.causes == {A}
    assert run.known == {A: OBJECT}
    run.finish()
    assert (await first).writes == 1


async def test_all_who_arrive_meanwhile_share_one_trailing_run(recorder: Recorder) -> None:
    """The trailing run sees every cause that waited, reads everything anew, and answers all of them alike."""
    first = recorder.arrive(A)
    run = await recorder.begun(1)
    waiting = [recorder.arrive(cause, known={cause: OBJECT}) for cause in (B, C, B)]
    await settle()
    assert len(recorder.runs) == 1
    run.finish()
    trailing = await recorder.begun(2)
    assert trailing.causes == {B, C}
    assert trailing.known == {}
    assert (await first).writes == 1
    assert not any(task.done() for task in waiting)
    trailing.finish()
    assert {verdict.writes for verdict in await asyncio.gather(*waiting)} == {2}
    assert recorder.most == 1


async def test_who_waits_for_runs_to_end_waits_for_those_that_follow(recorder: Recorder) -> None:
    """Not for an owner that does not run, nor longer than asked."""
    await recorder.flight.landed(["o"], 60)
    recorder.arrive(A)
    first = await recorder.begun(1)
    recorder.arrive(B)
    waiting = asyncio.create_task(recorder.flight.landed(["other", "o"], 60))
    await recorder.flight.landed(["o"], 0.01)
    first.finish()
    second = await recorder.begun(2)
    await settle()
    assert not waiting.done()
    second.finish()
    await waiting
    assert recorder.active == 0


@pytest.mark.parametrize("order", [(A, None), (None, A), (A, None, B)])
async def test_who_asks_for_everything_is_not_served_by_a_part(recorder: Recorder, order: tuple[Key | None, ...]) -> None:
    """A sweep, or a request for the owner, that joins events which wait, or is joined by them, has everything looked at."""
    recorder.arrive(C)
    run = await recorder.begun(1)
    waiting = [recorder.arrive(*(() if cause is None else (cause,))) for cause in order]
    await settle()
    run.finish()
    trailing = await recorder.begun(2)
    assert trailing.causes == frozenset()
    trailing.finish()
    await asyncio.gather(*waiting)


@pytest.mark.parametrize("first", [True, False])
async def test_who_wants_to_be_sure_is_not_served_by_less(recorder: Recorder, first: bool) -> None:
    """An event that shares its run with a sweep has its inputs verified, whoever of them came first; a sweep alone has not."""
    recorder.arrive(A)
    run = await recorder.begun(1)
    waiting = [recorder.arrive(B, verify=first), recorder.arrive(verify=not first)]
    await settle()
    run.finish()
    trailing = await recorder.begun(2)
    assert trailing.ask.verify
    alone = recorder.arrive(verify=False)
    await settle()
    trailing.finish()
    last = await recorder.begun(3)
    assert not last.ask.verify
    last.finish()
    await asyncio.gather(*waiting, alone)


async def test_nobody_is_answered_before_a_run_that_began_after_their_arrival(recorder: Recorder) -> None:
    """Who arrives during the trailing run waits for yet another, since that run may not have seen what they saw."""
    recorder.arrive(A)
    first = await recorder.begun(1)
    second_caller = recorder.arrive(B)
    await settle()
    first.finish()
    second = await recorder.begun(2)
    third_caller = recorder.arrive(C)
    await settle()
    second.finish()
    third = await recorder.begun(3)
    assert (await second_caller).writes == 2
    assert not third_caller.done()
    assert third.causes == {C}
    third.finish()
    assert (await third_caller).writes == 3


async def test_who_arrives_after_the_end_begins_a_first_run(recorder: Recorder) -> None:
    """An owner at rest keeps nothing: the next run begins at once with what its caller read."""
    first = recorder.arrive(A)
    (await recorder.begun(1)).finish()
    await first
    await until(lambda: recorder.flight._lanes == {})
    second = recorder.arrive(B, known={B: None})
    run = await recorder.begun(2)
    assert run.causes == {B}
    assert run.known == {B: None}
    run.finish()
    await second


async def test_owners_do_not_wait_for_each_other(recorder: Recorder) -> None:
    """Two owners run at the same time."""
    tasks = [recorder.arrive(A, owner="x"), recorder.arrive(A, owner="y")]
    await recorder.begun(2)
    assert recorder.active == 2
    for run in recorder.runs:
        run.finish()
    await asyncio.gather(*tasks)


async def test_a_caller_that_goes_away_does_not_end_the_run(recorder: Recorder) -> None:
    """A sender that hangs up takes neither the run nor the other waiters with it."""
    first = recorder.arrive(A)
    run = await recorder.begun(1)
    second, third = recorder.arrive(B), recorder.arrive(C)
    await settle()
    for task in (first, second):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    run.finish()
    trailing = await recorder.begun(2)
    assert trailing.causes == {B, C}
    trailing.finish()
    assert (await third).writes == 2


async def test_a_trailing_run_happens_though_all_who_waited_are_gone(recorder: Recorder) -> None:
    """What was asked for is done even when nobody waits for the answer any more."""
    recorder.arrive(A)
    run = await recorder.begun(1)
    waiting = recorder.arrive(B)
    await settle()
    waiting.cancel()
    run.finish()
    (await recorder.begun(2)).finish()


class Broken(Exception):
    """A failure of the work."""


async def test_a_failure_reaches_those_who_waited_for_that_run_only(recorder: Recorder) -> None:
    """The trailing run begins after a failure too, and its waiters get its end."""
    first = recorder.arrive(A)
    run = await recorder.begun(1)
    second = recorder.arrive(B)
    await settle()
    run.end.set_exception(Broken("no"))
    with pytest.raises(Broken):
        await first
    (await recorder.begun(2)).finish()
    assert (await second).writes == 2


async def test_a_failure_is_told_to_all_who_share_it(recorder: Recorder) -> None:
    """Every waiter of a failed trailing run gets the failure, and the owner can be run again."""
    recorder.arrive(A)
    run = await recorder.begun(1)
    waiting = [recorder.arrive(B), recorder.arrive(C)]
    await settle()
    run.finish()
    (await recorder.begun(2)).end.set_exception(Broken("no"))
    assert [type(found) for found in await asyncio.gather(*waiting, return_exceptions=True)] == [Broken, Broken]
    again = recorder.arrive(A)
    (await recorder.begun(3)).finish()
    assert (await again).writes == 3


async def test_a_failure_that_nobody_waits_for_is_no_warning(recorder: Recorder) -> None:
    """A run that fails after its caller went away leaves no unretrieved exception behind."""
    task = recorder.arrive(A)
    run = await recorder.begun(1)
    task.cancel()
    await settle()
    run.end.set_exception(Broken("no"))


async def test_what_arrives_in_the_pause_shares_the_next_run(recorder: Recorder) -> None:
    """The first answer does not wait for the pause; the next run begins when it ends, once for all."""
    first = recorder.arrive(A, pause_s=0.05)
    (await recorder.begun(1)).finish()
    assert (await first).writes == 1
    loop = asyncio.get_running_loop()
    ended = loop.time()
    waiting = [recorder.arrive(B, pause_s=0.05), recorder.arrive(C, pause_s=0.05)]
    await settle()
    assert len(recorder.runs) == 1
    run = await recorder.begun(2)
    assert loop.time() - ended >= 0.045
    assert run.causes == {B, C}
    assert run.known == {}
    run.finish()
    assert {verdict.writes for verdict in await asyncio.gather(*waiting)} == {2}


async def test_drain_waits_for_what_runs_and_what_waits(recorder: Recorder) -> None:
    """Draining ends after the trailing run, not before; with nothing to wait for it ends at once."""
    await recorder.flight.drain()
    recorder.arrive(A, pause_s=0.01)
    run = await recorder.begun(1)
    waiting = recorder.arrive(B)
    await settle()
    draining = asyncio.create_task(recorder.flight.drain())
    run.finish()
    trailing = await recorder.begun(2)
    await settle()
    assert not draining.done()
    trailing.finish()
    await draining
    assert waiting.done()


async def test_draining_ends_without_a_pause(recorder: Recorder) -> None:
    """At the end nobody waits for a pause that has no run behind it."""
    task = recorder.arrive(A, pause_s=60)
    run = await recorder.begun(1)
    draining = asyncio.create_task(recorder.flight.drain())
    await settle()
    run.finish()
    await asyncio.wait_for(draining, 5)
    assert (await task).writes == 1


async def test_draining_cuts_a_pause_short() -> None:
    """A pause that had begun before the drain does not hold it up either."""
    recorder = Recorder()
    task = recorder.arrive(A, pause_s=0.5)
    (await recorder.begun(1)).finish()
    await task
    try:
        await asyncio.wait_for(recorder.flight.drain(), 0.2)
    finally:
        await recorder.flight.drain()


async def test_cancelling_the_run_itself_ends_it() -> None:
    """When the loop goes down the run's waiter is cancelled with it, and no further run begins."""
    recorder = Recorder()
    first = recorder.arrive(A)
    await recorder.begun(1)
    second = recorder.arrive(B)
    await recorder.begun(1)
    await settle()
    (task,) = recorder.flight._tasks
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    await settle()
    assert len(recorder.runs) == 1
    second.cancel()


async def test_cancelling_the_run_frees_its_owner() -> None:
    """Those who wait for a trailing run that will not come are told so, and the owner can be run again."""
    recorder = Recorder()
    recorder.arrive(A)
    second = recorder.arrive(B)
    await recorder.begun(1)
    await settle()
    (task,) = recorder.flight._tasks
    task.cancel()
    await settle()
    try:
        assert recorder.flight._lanes == {}
        assert second.done()
    finally:
        second.cancel()


async def test_many_arrivals_cost_few_runs() -> None:
    """A hundred arrivals in a burst are two runs, however they interleave, and every answer is of a later run."""
    flight, begun, answered = SingleFlight(), [0], []

    async def work(ask: Ask, known: JustRead) -> Verdict:
        begun[0] += 1
        number = begun[0]
        for _ in range(5):
            await asyncio.sleep(0)
        return Verdict(204, writes=number)

    async def caller(steps: int) -> None:
        for _ in range(steps % 3):
            await asyncio.sleep(0)
        seen = begun[0]
        verdict = await flight.run("o", Ask(), {}, work)
        answered.append(verdict.writes > seen)

    await asyncio.gather(*(caller(steps) for steps in range(100)))
    await flight.drain()
    assert answered == [True] * 100
    assert begun[0] <= 3


async def test_a_slow_run_has_a_longer_pause(recorder: Recorder) -> None:
    """The pause lasts as long as the run did: an owner never takes more than half of the time."""
    began = time.monotonic()
    first = recorder.arrive(A, pause_s=0.001)
    run = await recorder.begun(1)
    await asyncio.sleep(0.1)
    run.finish()
    await first
    second = recorder.arrive(B, pause_s=0.001)
    run = await recorder.begun(2)
    assert time.monotonic() - began >= 2 * 0.1
    run.finish()
    await second
