"""One read for many who ask at the same time.

A hundred namespaces that come at once make a hundred events, each of which has to know all instances.  Who
asks gets an answer to a read that began after he asked, so it is as live as one of his own; but at most one
read is under way and one more waits, whatever the number of those who ask.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

Answer = TypeVar("Answer")


class Shared(Generic[Answer]):
    """Shares one kind of read."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._next: asyncio.Task[Answer] | None = None

    async def get(self, read: Callable[[], Awaitable[Answer]]) -> Answer:
        """The answer of a read that begins now or later; a failure is everybody's who waited for it."""
        if self._next is None:
            self._next = asyncio.create_task(self._read(read))
        return await asyncio.shield(self._next)

    async def _read(self, read: Callable[[], Awaitable[Answer]]) -> Answer:
        async with self._turn:
            self._next = None  # who asks from now on may know of something that this read does not see
            return await read()
