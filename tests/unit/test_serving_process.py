"""What a process that serves sets up for all of its events."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from tenantry.serving import garbage
from tenantry.serving.server import _identified

EXECUTION = b"function-execution-id"


@pytest.fixture
def thresholds() -> Iterator[None]:
    """The collector is as it was afterwards."""
    before = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


async def headers_of(*sent: tuple[bytes, bytes], kind: str = "http") -> list[tuple[bytes, bytes]]:
    """The headers with which the application is called."""
    seen: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope)

    await _identified(app)({"type": kind, "headers": list(sent)}, None, None)
    return list(seen[0]["headers"])


async def test_an_execution_has_the_id_of_its_event() -> None:
    sent = (b"ce-id", b"abc")
    assert await headers_of(sent) == [sent, (EXECUTION, b"abc")]


async def test_an_id_of_the_sender_stays() -> None:
    sent = ((EXECUTION, b"his"), (b"ce-id", b"abc"))
    assert await headers_of(*sent) == list(sent)


async def test_a_request_without_event_has_an_id_too() -> None:
    assert await headers_of() == [(EXECUTION, b"-")]


async def test_a_long_id_is_cut() -> None:
    (_, (name, value)) = await headers_of((b"ce-id", b"x" * 5000))
    assert (name, len(value)) == (EXECUTION, 100)


def test_what_is_loaded_is_left_alone(thresholds: None) -> None:
    garbage.settle()
    assert gc.get_threshold() == garbage.THRESHOLDS
    assert gc.get_freeze_count() > 1000
