"""Whoever wants the same at the same time shares one read."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import ClassVar, cast

import pytest
from engine_units import OBJECT, Still, Stub, make, settle

from tenantry.api import Api
from tenantry.api.client import Listing
from tenantry.api.errors import TransientError
from tenantry.engine.reader import Reader
from tenantry.engine.shared import REST, Shared
from tenantry.engine.snapshot import Prefetch, Snapshot
from tenantry.engine.unit import Owner
from tenantry.model.kinds import CONFIG_MAP, Kind, Object


async def test_shared_reads_begin_after_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asks during a read gets the next one, together with all others who ask meanwhile."""
    monkeypatch.setattr("tenantry.engine.shared.REST", 0)
    shared, begun, go = Shared(), [], [asyncio.Event() for _ in range(3)]

    async def fetch() -> int:
        number = len(begun)
        begun.append(number)
        await go[number].wait()
        return number

    first = asyncio.create_task(shared.read("x", fetch))
    await settle()
    later = [asyncio.create_task(shared.read("x", fetch)) for _ in range(10)]
    await settle()
    assert begun == [0]
    go[0].set()
    assert await first == 0
    await settle()
    last = asyncio.create_task(shared.read("x", fetch))
    await settle()
    assert begun == [0, 1]
    go[1].set()
    go[2].set()
    assert [await task for task in later] == [1] * 10
    assert await last == 2
    assert await shared.read("other", lambda: asyncio.sleep(0, "own")) == "own"


async def test_a_shared_read_rests_for_a_few_times_as_long_as_it_took() -> None:
    """Who asks in that time shares the next one, and nobody waits longer than that."""
    shared, begun = Shared(), list[float]()
    clock = asyncio.get_running_loop().time

    async def fetch() -> int:
        begun.append(clock())
        await asyncio.sleep(0.01)
        return len(begun)

    assert await shared.read("x", fetch) == 1
    ended = clock()
    assert await asyncio.gather(*(shared.read("x", fetch) for _ in range(10))) == [2] * 10
    assert begun[1] >= ended + 0.9 * REST * 0.01


async def test_a_shared_read_that_fails_fails_those_who_shared_it() -> None:
    """The next one is tried anew."""
    shared, answers = Shared(), iter([TransientError("away"), 7])

    async def fetch() -> object:
        await asyncio.sleep(0)
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    first, second = (asyncio.create_task(shared.read("x", fetch)) for _ in range(2))
    with pytest.raises(TransientError):
        await first
    assert await second == 7


async def test_units_of_a_sweep_share_their_lists() -> None:
    """What two units want of one moment is read and kept once; one that cannot be read concerns those who want it."""

    class Listed(Stub):
        asked: ClassVar[list[str]] = []

        async def list(self, kind: Kind, namespace: str, **_: object) -> Listing:
            Listed.asked.append(kind.kind)
            return Listing([OBJECT], "1")

    class Wanting(Still):
        seen: ClassVar[list[Object]] = []

        def prefetch(self) -> Sequence[Prefetch]:
            return [Prefetch(CONFIG_MAP)]

        async def observe(self, of: Owner, reader: Reader) -> tuple[str, bool]:
            Wanting.seen += await reader.list(CONFIG_MAP)
            return await super().observe(of, reader)

    units = [Wanting(name="one"), Wanting(name="other")]
    assert (await make(*units, api=Listed()).sweep()).status == 204
    assert Listed.asked == ["ConfigMap"]
    assert [id(each) for each in Wanting.seen] == [id(OBJECT)] * 2


async def test_a_snapshot_asks_once_for_an_object() -> None:
    """Many owners that are looked at together share a read that no list answers."""

    class Asked(Stub):
        asked = 0

        async def get(self, kind: Kind, name: str, namespace: str) -> Object:
            Asked.asked += 1
            await asyncio.sleep(0)
            return OBJECT

    snapshot = await Snapshot.take(cast(Api, Asked()), [])
    found = await asyncio.gather(*(snapshot.get(CONFIG_MAP, "c", "n") for _ in range(50)))
    assert (found, Asked.asked) == ([OBJECT] * 50, 1)


def test_what_is_asked_for_often_is_told_apart_from_what_comes_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred in a second are often, a few at once are not, and after a pause nothing is."""
    now = 100.0
    monkeypatch.setattr("tenantry.engine.shared.time.monotonic", lambda: now)
    shared = Shared()

    def asked(times: int, apart_s: float) -> list[bool]:
        nonlocal now
        found = []
        for _ in range(times):
            now += apart_s
            found.append(shared.is_often("x"))
        return found

    assert not any(asked(10, 1.0) + asked(5, 0.01))
    assert asked(40, 0.01)[-1]
    assert not any(asked(1, 5.0) + asked(5, 0.01))
