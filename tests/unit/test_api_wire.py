"""Large answers of the API server: what else is ready goes between two of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tenantry.api import wire
from tenantry.api.official import Configuration
from tenantry.api.wire import Wire
from tenantry.model import limits
from tenantry.model.kinds import Object

SMALL = json.dumps({"a": "small"}).encode()
LARGE = json.dumps({"a": "x" * limits.ANSWER_SMALL_BYTES}).encode()


@pytest_asyncio.fixture
async def connection() -> AsyncIterator[Wire]:
    """A connection that nothing is sent through."""
    async with Wire(Configuration(host="http://127.0.0.1:1"), "test", None, 4, 1.0) as made:
        yield made


async def test_a_small_answer_goes_between_large_ones(connection: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever comes after many large ones waits for one of them, not for all."""
    order: list[int] = []
    plain = wire.decode

    def noted(raw: bytes) -> Object:
        order.append(len(raw))
        return plain(raw)

    monkeypatch.setattr(wire, "decode", noted)
    asked = [connection._decode(LARGE) for _ in range(5)] + [connection._decode(SMALL)]
    found = await asyncio.gather(*asked)
    assert found[-1] == {"a": "small"}
    assert [each == json.loads(LARGE) for each in found] == [True] * 5 + [False]
    assert order.index(len(SMALL)) == 1
