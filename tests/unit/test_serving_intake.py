"""What one process takes in at a time: JSON is counted before it is parsed, large bodies come a few at a time (a-12)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenantry.model import limits
from tenantry.serving.attributes import BadEvent
from tenantry.serving.cloudevents import parse_event, read_body
from tenantry.serving.intake import Gate, has_more_values

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(), inner, max_size=6),
    max_leaves=40,
)
HEADERS = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "s", "ce-type": "t", "content-type": "application/json"}


def values_in(value: Any) -> int:
    """Values of all kinds, the whole included."""
    inner = value if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else []
    return 1 + sum(values_in(each) for each in inner)


@given(JSON)
def test_values_are_never_counted_too_low_by_much(value: Any) -> None:
    """What has more values than allowed is found; each empty list or map counts as one more at most."""
    text, true = json.dumps(value).encode(), values_in(value)

    assert has_more_values(text, most=true // 2 - 1)
    assert not has_more_values(text, most=2 * true)


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        (b"[" + b"[]," * limits.EVENT_VALUES + b"[]]", True),
        (b"[" * (limits.EVENT_VALUES + 1), True),
        (b"{" + b",".join(b'"%d":1' % number for number in range(limits.EVENT_VALUES + 1)) + b"}", True),
        (b"[" + b'"",' * (3 * limits.EVENT_VALUES) + b'""]', True),
        (b"[" + b'"\\\\",' * (3 * limits.EVENT_VALUES) + b'""]', True),
        (b'{"csv": "' + b"1,2,3,[{" * limits.EVENT_VALUES + b'"}', False),
        (b'{"quoted": "' + b'\\"a\\",' * limits.EVENT_VALUES + b'"}', False),
        (b"[" + b"1," * (limits.EVENT_VALUES // 2) + b"1]", False),
    ],
    ids=["lists", "depth", "keys", "empty texts", "backslashes", "commas in a text", "quotes in a text", "half of it"],
)
def test_values_are_counted_outside_of_texts(text: bytes, refused: bool) -> None:
    """Commas and brackets in a text, as in a table or in JSON inside a text, are no values."""
    assert has_more_values(text) is refused


@pytest.mark.parametrize("charset", ["utf-8", "utf-16"])
def test_too_many_values_are_413(charset: str) -> None:
    """The status says that it is too large, whatever the charset."""
    body = ("[" + "1," * limits.EVENT_VALUES + "1]").encode(charset)
    with pytest.raises(BadEvent) as refused:
        parse_event({**HEADERS, "content-type": f"application/json; charset={charset}"}, body)

    assert (refused.value.status, refused.value.reason) == (413, f"more than {limits.EVENT_VALUES} JSON values")


class Sender:
    """A request whose body comes in two parts, the second when `go` is set; ``length`` is what it says of itself."""

    def __init__(self, size: int, go: asyncio.Event, *, length: int | None) -> None:
        self.size = size
        self.headers = {} if length is None else {"content-length": str(length)}
        self.begun = asyncio.Event()
        self._go = go

    async def stream(self) -> AsyncIterator[bytes]:
        self.begun.set()
        yield b"x" * (self.size - 1)
        await self._go.wait()
        yield b"x"


async def test_large_bodies_wait_and_small_ones_pass() -> None:
    """With all places taken a further large body waits, and so does one of unknown size once it is large; small ones do not."""
    gate, go, now = Gate(), asyncio.Event(), asyncio.Event()
    now.set()
    large = limits.EVENT_SMALL_BYTES + 2
    first = [Sender(large, go, length=large) for _ in range(limits.EVENTS_LARGE_AT_ONCE)]
    declared, unknown = Sender(large, now, length=large), Sender(large, now, length=None)
    small = [Sender(limits.EVENT_SMALL_BYTES, now, length=length) for length in (limits.EVENT_SMALL_BYTES, None)]
    async with asyncio.TaskGroup() as group:
        reading = [group.create_task(read_body(each, gate=gate)) for each in first]
        for each in first:
            await each.begun.wait()
        waiting = [group.create_task(read_body(each, gate=gate)) for each in (declared, unknown)]
        assert [len(await read_body(each, gate=gate)) for each in small] == [limits.EVENT_SMALL_BYTES, limits.EVENT_SMALL_BYTES]
        await unknown.begun.wait()
        assert not declared.begun.is_set()
        assert not any(each.done() for each in waiting)
        go.set()

    assert [len(each.result()) for each in (*reading, *waiting)] == [large] * (limits.EVENTS_LARGE_AT_ONCE + 2)


@pytest.mark.parametrize("length", [limits.EVENT_SMALL_BYTES + 2, None], ids=["declared", "unknown"])
async def test_a_slow_sender_loses_its_place(monkeypatch: pytest.MonkeyPatch, length: int | None) -> None:
    """A large body that does not come in time ends in 408, and its place is free."""
    monkeypatch.setattr(limits, "EVENT_READ_S", 0.01)
    gate = Gate()
    for _ in range(limits.EVENTS_LARGE_AT_ONCE + 1):
        with pytest.raises(BadEvent) as refused:
            await read_body(Sender(limits.EVENT_SMALL_BYTES + 2, asyncio.Event(), length=length), gate=gate)
        assert refused.value.status == 408
