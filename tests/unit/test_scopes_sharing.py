"""Reads that many share: each is as live as one's own, and there are few."""

from __future__ import annotations

import asyncio

import pytest

from scope_binding.scopes.sharing import Shared


async def test_many_who_ask_share_a_read_that_began_after_they_asked() -> None:
    """A hundred who ask while one read is under way cost one more, which sees what they know of."""
    state, reads = 0, 0
    go_on = asyncio.Event()
    shared: Shared[int] = Shared()

    async def read() -> int:
        nonlocal reads
        reads += 1
        seen = state
        await go_on.wait()
        return seen

    first = asyncio.create_task(shared.get(read))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    state = 1
    others = [asyncio.create_task(shared.get(read)) for _ in range(100)]
    await asyncio.sleep(0)
    go_on.set()
    assert await first == 0
    assert set(await asyncio.gather(*others)) == {1}
    assert reads == 2


async def test_a_failure_is_shared_and_forgotten() -> None:
    """Who waited for a read that failed gets its error; the next one reads anew."""
    shared: Shared[int] = Shared()

    async def fail() -> int:
        raise ZeroDivisionError

    async def succeed() -> int:
        return 7

    answers = await asyncio.gather(*(shared.get(fail) for _ in range(3)), return_exceptions=True)
    assert all(isinstance(answer, ZeroDivisionError) for answer in answers)
    assert await shared.get(succeed) == 7
    with pytest.raises(ZeroDivisionError):
        await shared.get(fail)
