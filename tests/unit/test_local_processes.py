"""What a function says is read to its end, however long its lines are."""

from __future__ import annotations

import asyncio

import pytest

from tenantry.local.processes import lines


async def heard(*said: bytes, limit: int = 8) -> list[bytes]:
    stream = asyncio.StreamReader(limit=limit)
    for each in said:
        stream.feed_data(each)
    stream.feed_eof()
    return [line async for line in lines(stream)]


async def test_each_line_comes_whole() -> None:
    assert await heard(b"one\ntw", b"o\n\nthree\n") == [b"one\n", b"two\n", b"\n", b"three\n"]


async def test_what_has_no_end_of_line_comes_too() -> None:
    assert await heard(b"one\ntwo") == [b"one\n", b"two"]


@pytest.mark.parametrize("end", [b"\n", b""])
async def test_a_long_line_comes_in_parts_and_ends_nothing(end: bytes) -> None:
    """Nothing is lost, and the lines after it are whole."""
    long = bytes(range(ord("a"), ord("z") + 1)) * 3
    found = await heard(b"one\n", long + b"\n", b"two", end)
    assert found[0] == b"one\n"
    assert found[-1] == b"two" + end
    assert b"".join(found[1:-1]) == long + b"\n"


async def test_a_long_line_that_comes_bit_by_bit() -> None:
    stream = asyncio.StreamReader(limit=8)
    reading = asyncio.ensure_future(anext(lines(stream)))
    for _ in range(5):
        await asyncio.sleep(0)
        stream.feed_data(b"12345")
    assert set(await reading) <= set(b"12345")
