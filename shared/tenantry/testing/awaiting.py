"""Waiting for a condition, bounded, and never for a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

Found = TypeVar("Found")
POLL_S = 0.03
_LONGEST_POLL_S = 0.2


async def eventually(check: Callable[[], Awaitable[Found]], *, within: float = 20.0, what: str = "") -> Found:
    """The first true value of ``check``.

    Raises:
        AssertionError: it did not become true in time; the message has its last value.
    """
    give_up_at = time.monotonic() + within
    pause = POLL_S
    while True:
        found = await check()
        if found:
            return found
        if time.monotonic() > give_up_at:
            raise AssertionError(f"not within {within:g} s: {what or check.__name__}; last seen: {found!r}")
        await asyncio.sleep(pause)
        pause = min(1.3 * pause, _LONGEST_POLL_S)  # who waits for long asks less often: the asking slows down what he waits for
