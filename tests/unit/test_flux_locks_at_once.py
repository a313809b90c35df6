"""The locks of many, as one plan, and who waits for them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from test_flux_lock_plan import MARKS, ROWS, consumer, patched, seen

from lock_enforcement.access import unit
from lock_enforcement.access.plan import FEW, plan_locks
from lock_enforcement.access.seen import ConsumerSeen, kept_consumer
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
    together, alone = locks.handlers[unit.LOCKS.type], locks.handlers[unit.CONSUMER]

    def looks_at(of: ConsumerSeen) -> asyncio.Task[Any]:
        metadata = of.live["metadata"]
        return asyncio.create_task(alone.observe(unit.owner_of(row, metadata["namespace"], metadata["name"]), Live()))

    async def settled() -> list[str]:
        for _ in range(5):
            await asyncio.sleep(0)
        return sorted(looked_at)

    await together.observe(unit.LOCKS, Live())
    tasks = [looks_at(first), looks_at(other)]
    assert await settled() == ["other"]
    together.ended(unit.LOCKS, True)
    unlocked = [second]
    await together.observe(unit.LOCKS, Live())
    tasks += [looks_at(first), looks_at(second)]
    assert await settled() == ["first", "other"]  # the one that waited for the first run
    together.ended(unit.LOCKS, True)
    assert await settled() == ["first", "first", "other", "second"]
    alone.ended(unit.owner_of(row, first.live["metadata"]["namespace"], "first"), True)
    await together.observe(unit.LOCKS, Live())
    tasks += [looks_at(first), looks_at(second)]
    assert await settled() == ["first", "first", "first", "other", "second"]
    together.ended(unit.LOCKS, True)
    await asyncio.gather(*tasks)
