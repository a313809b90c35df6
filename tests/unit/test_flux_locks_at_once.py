"""The locks of many, as one plan, and who waits for them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from test_flux_lock_plan import MARKS, ROWS, consumer, patched, seen

from lock_enforcement.access import together, unit
from lock_enforcement.access.plan import FEW, plan_locks
from lock_enforcement.access.seen import ConsumerSeen, kept_consumer
from lock_enforcement.access.together import LocksTogether
from tenantry.engine.unit import Owner
from tenantry.model.flux.names import LOCK_FINALIZER
from tenantry.model.plan import Edit


@pytest.mark.parametrize(("number", "writes"), [(0, 0), (FEW, 0), (FEW + 1, FEW + 1), (50, 50)])
def test_many_are_locked_before_any_is_told(number: int, writes: int) -> None:
    """One stage of nothing but the updates that lock, each of the version that was seen; few are left to their own runs."""
    plan = plan_locks([seen(kept_consumer(consumer(name=f"c{at}"), ROWS["kustomizations"])) for at in range(number)])
    assert len(plan.stages) == (1 if writes else 0)
    found = [write for write in plan.writes() if isinstance(write, Edit) and not write.subresource]
    assert len(found) == writes
    assert {write.live["metadata"]["name"] for write in found} == {f"c{at}" for at in range(writes)}
    for write in found:
        made = patched(consumer(), write.operations)
        assert made["metadata"]["annotations"] == MARKS
        assert made["spec"]["suspend"] is True
        assert made["metadata"]["finalizers"] == [LOCK_FINALIZER]


class Live:
    """A reader of a run, of which nothing is read."""

    live = True


class Lists:
    """A reader of lists."""

    live = False


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The generations of profile and index, which stay as they are unless the test changes them."""
    now: list[Any] = [1]

    async def rules_of(_: Any) -> Any:
        return now[0]

    monkeypatch.setattr(unit, "_rules_of", rules_of)
    return now


@pytest.mark.usefixtures("rules")
async def test_who_is_locked_with_others_is_told_when_no_such_run_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither that run nor the next one is kept back by telling why; others do not wait, nor does who was looked at since."""
    row = ROWS["kustomizations"]
    first, second, other = (seen(kept_consumer(consumer(name=name), row)) for name in ("first", "second", "other"))
    unlocked = [first]
    looked_at: list[str] = []

    async def observe_unlocked(_: Any) -> tuple[ConsumerSeen, ...]:
        return tuple(unlocked)

    async def observe_consumer(_: str, __: str, name: str, *___: Any, **____: Any) -> None:
        looked_at.append(name)

    monkeypatch.setattr(unit, "observe_unlocked", observe_unlocked)
    monkeypatch.setattr(unit, "observe_consumer", observe_consumer)
    locks = unit.AccessLocks()
    all_locks, alone = locks.handlers[unit.LOCKS.type], locks.handlers[unit.CONSUMER]

    def looks_at(of: ConsumerSeen) -> asyncio.Task[Any]:
        metadata = of.live["metadata"]
        return asyncio.create_task(alone.observe(unit.owner_of(row, metadata["namespace"], metadata["name"]), Live()))

    async def settled() -> list[str]:
        for _ in range(5):
            await asyncio.sleep(0)
        return sorted(looked_at)

    await all_locks.observe(unit.LOCKS, Live())
    tasks = [looks_at(first), looks_at(other)]
    assert await settled() == ["other"]
    all_locks.ended(unit.LOCKS, True)
    unlocked = [second]
    await all_locks.observe(unit.LOCKS, Live())
    tasks += [looks_at(first), looks_at(second)]
    assert await settled() == ["first", "other"]  # the one that waited for the first run
    all_locks.ended(unit.LOCKS, True)
    assert await settled() == ["first", "first", "other", "second"]
    alone.ended(unit.owner_of(row, first.live["metadata"]["namespace"], "first"), True)
    await all_locks.observe(unit.LOCKS, Live())
    tasks += [looks_at(first), looks_at(second)]
    assert await settled() == ["first", "first", "first", "other", "second"]
    all_locks.ended(unit.LOCKS, True)
    await asyncio.gather(*tasks)


async def test_what_a_sweep_has_found_is_locked_without_another_look(monkeypatch: pytest.MonkeyPatch, rules: list[Any]) -> None:
    """Once, under the profile and the index that it was found with, and not for long."""
    looks: list[bool] = []

    async def observe_unlocked(reader: Any) -> tuple[ConsumerSeen, ...]:
        looks.append(reader.live)
        return (seen(kept_consumer(consumer(name=f"c{len(looks)}"), ROWS["kustomizations"])),)

    monkeypatch.setattr(unit, "observe_unlocked", observe_unlocked)
    handler = unit.AccessLocks().handlers[unit.LOCKS.type]
    found = await handler.observe(unit.LOCKS, Lists())
    assert await handler.observe(unit.LOCKS, Live()) is found
    assert await handler.observe(unit.LOCKS, Live()) is not found
    assert looks == [False, True]
    await handler.observe(unit.LOCKS, Lists())
    rules[0] = 2
    await handler.observe(unit.LOCKS, Live())
    assert looks == [False, True, False, True]
    await handler.observe(unit.LOCKS, Lists())
    monkeypatch.setattr(together, "FOUND_FOR_S", -1)
    await handler.observe(unit.LOCKS, Live())
    assert looks == [False, True, False, True, False, True]


async def test_who_waits_for_locks_waits_for_the_run_that_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where an index came meanwhile; not for long where none follows, and not where none came."""
    owner, other = Owner("consumer", "kustomizations:a", "n"), Owner("consumer", "kustomizations:b", "n")
    locks = LocksTogether()

    async def waits(of: Owner = owner) -> asyncio.Task[None]:
        task = asyncio.create_task(locks.wait(of))
        await asyncio.sleep(0.01)
        return task

    assert (await waits()).done()
    locks.asked_again()  # by nobody's run
    locks.begin()
    locks.is_of([owner])
    locks.asked_again()
    task = await waits()
    locks.end()
    locks.begin()
    late = await waits(other)
    assert not task.done()
    assert not late.done()
    locks.is_of([])
    assert not task.done()
    assert not late.done()
    await asyncio.sleep(0.01)
    assert not task.done()
    assert late.done()
    locks.end()
    await task
    locks.begin()
    locks.is_of([owner])
    locks.asked_again()
    monkeypatch.setattr(together, "AGAIN_WITHIN_S", 0.02)
    task = await waits()
    locks.end()
    assert not task.done()
    await asyncio.wait_for(task, 5)
