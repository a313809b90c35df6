"""Reads of one sort: at once while few are under way, and one for several when many wait."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tenantry.engine.together import Together
from tenantry.model import limits


class Server:
    """Answers when it is let; notes what was asked, and how far things were then."""

    def __init__(self) -> None:
        self.together = Together()
        self.asked: list[Any] = []
        self.moment = 0
        self._open: dict[Any, asyncio.Future[None]] = {}

    async def _answer(self, what: Any) -> int:
        self.asked.append(what)
        began = self.moment
        self._open[what] = asyncio.get_running_loop().create_future()
        await self._open[what]
        return began

    def read(self, name: str, sort: str = "s") -> asyncio.Task[Any]:
        """Ask for one; the result is the name with the moment at which the read began."""

        async def one() -> tuple[str, int]:
            return name, await self._answer(name)

        async def many(names: Sequence[str]) -> Mapping[str, tuple[str, int]]:
            began = await self._answer(tuple(names))
            return {each: (each, began) for each in names}

        return asyncio.create_task(self.together.read(sort, name, one, many))

    async def let(self, what: Any, error: Exception | None = None) -> None:
        """A read has its answer."""
        done = self._open.pop(what)
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)
        await settle()

    async def busy(self) -> list[asyncio.Task[Any]]:
        """As many reads as may be under way apart."""
        tasks = [self.read(f"first-{number}") for number in range(limits.READS_APART)]
        await settle()
        return tasks


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few under way are enough to see who waits."""
    monkeypatch.setattr(limits, "READS_APART", 4)


async def settle() -> None:
    for _ in range(30):
        await asyncio.sleep(0)


async def test_where_little_happens_nobody_waits() -> None:
    server = Server()
    await server.busy()
    assert server.asked == [f"first-{number}" for number in range(limits.READS_APART)]


async def test_few_who_wait_are_read_one_by_one() -> None:
    """A read of several would keep them longer."""
    server = Server()
    await server.busy()
    late = server.read("late")
    await settle()
    assert "late" not in server.asked
    server.moment = 1
    await server.let("first-0")
    await server.let("late")
    assert late.result() == ("late", 1)


async def test_many_who_wait_are_read_together() -> None:
    """Each has its own part of one answer, which began after all had asked."""
    server = Server()
    await server.busy()
    names = [f"n-{number}" for number in range(30)]
    tasks = [server.read(name) for name in names]
    await settle()
    server.moment = 1
    await server.let("first-0")
    assert server.asked[-1] == tuple(names)
    await server.let(tuple(names))
    assert [task.result() for task in tasks] == [(name, 1) for name in names]


async def test_who_comes_while_several_are_read_is_not_given_that_answer() -> None:
    """It began before he asked."""
    server = Server()
    await server.busy()
    names = [f"n-{number}" for number in range(30)]
    for name in names:
        server.read(name)
    await settle()
    await server.let("first-0")
    server.moment = 1
    late = server.read("n-0")
    await settle()
    await server.let(tuple(names))
    assert not late.done()
    await server.let("n-0")
    assert late.result() == ("n-0", 1)


async def test_who_asks_for_the_same_while_it_waits_shares_the_read() -> None:
    server = Server()
    await server.busy()
    both = [server.read("same"), server.read("same")]
    await settle()
    await server.let("first-0")
    await server.let("same")
    assert [task.result() for task in both] == [("same", 0)] * 2
    assert server.asked.count("same") == 1


async def test_a_read_asks_for_so_many_at_most() -> None:
    server = Server()
    await server.busy()
    names = [f"n-{number}" for number in range(limits.READ_TOGETHER + 20)]
    tasks = [server.read(name) for name in names]
    await settle()
    await server.let("first-0")
    assert server.asked[-1] == tuple(names[: limits.READ_TOGETHER])
    for each in list(server._open):
        await server.let(each)
    while server._open:
        await server.let(next(iter(server._open)))
    assert [task.result()[0] for task in tasks] == names


async def test_an_error_is_for_those_who_asked_together_and_for_nobody_else() -> None:
    server = Server()
    await server.busy()
    names = [f"n-{number}" for number in range(30)]
    tasks = [server.read(name) for name in names]
    await settle()
    await server.let("first-0")
    await server.let(tuple(names), OSError("away"))
    for task in tasks:
        with pytest.raises(OSError, match="away"):
            task.result()
    after = server.read("after")
    await settle()
    await server.let("after")
    assert after.result()[0] == "after"


async def test_who_goes_away_takes_nothing_from_others() -> None:
    """A run that was cancelled while it waited leaves the read to whoever asked for the same."""
    server = Server()
    await server.busy()
    gone, stays = server.read("same"), server.read("same")
    await settle()
    gone.cancel()
    await settle()
    await server.let("first-0")
    await server.let("same")
    assert stays.result() == ("same", 0)


async def test_sorts_do_not_wait_for_each_other() -> None:
    server = Server()
    await server.busy()
    other = server.read("other", sort="another")
    await settle()
    await server.let("other")
    assert other.result() == ("other", 0)
