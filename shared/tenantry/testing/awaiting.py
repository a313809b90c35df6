"""Waiting for a condition, bounded, and never for a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from typing import TypeVar

Found = TypeVar("Found")
POLL_S = 0.03
_LONGEST_POLL_S = 0.2
WITHIN_S = 5.0
"""The shortest time that the acceptance checks give; who needs longer says why."""

_ends_at: ContextVar[float] = ContextVar("ends_at", default=inf)


async def eventually(
    check: Callable[[], Awaitable[Found]],
    holds: Callable[[Found], object] = bool,
    *,
    within: float = WITHIN_S,
    what: str = "",
) -> Found:
    """The first value of ``check`` that holds; without ``holds`` the first true one.

    Raises:
        AssertionError: it did not hold in time; the message has the last value.
    """
    began_at = time.monotonic()
    give_up_at = min(began_at + within, _ends_at.get())
    pause = POLL_S
    while True:
        asked_at = time.monotonic()
        found = await check()
        if holds(found):
            return found
        if asked_at > give_up_at:
            allowed = max(0.0, give_up_at - began_at)
            raise AssertionError(f"not within {allowed:.3g} s: {what or check.__name__}; last seen: {found!r}")
        await asyncio.sleep(pause)
        pause = min(1.3 * pause, _LONGEST_POLL_S)  # who waits for long asks less often: the asking slows down what he waits for


@contextmanager
def deadline(seconds: float = WITHIN_S) -> Iterator[None]:
    """All that is waited for inside has to come within this time, counted from here: one after the other adds nothing."""
    before = _ends_at.set(min(time.monotonic() + seconds, _ends_at.get()))
    try:
        yield
    finally:
        _ends_at.reset(before)
