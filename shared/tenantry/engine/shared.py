"""Reads that many runs want at the same time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Any

from tenantry.api.turns import SHARED, party
from tenantry.engine.tasks import started
from tenantry.engine.together import Together
from tenantry.model.kinds import Kind

REST = 5
"""So many times as long as a read took nobody reads the same again: who asks meanwhile shares the next one."""
LONGEST_REST_S = 0.1
MANY_S = 10.0
"""Seconds for which a kind that has many objects is taken to have them still."""


class _Read:
    """One read, and the rest after it."""

    def __init__(self) -> None:
        self.task: asyncio.Task[Any] | None = None
        self.rested = asyncio.Event()


class Shared:
    """Reads that many runs want at the same time: who asks while one is under way shares the next one.

    So every answer is as live as a read of one's own, and a hundred runs in parallel cost a few requests.  After a read the same
    is not read again for a while, so that what is asked for without end leaves time for the rest.

    ``listed`` are kinds that the function may list as a whole; ``together`` are reads that differ in one name.
    """

    def __init__(self, listed: frozenset[Kind] = frozenset()) -> None:
        self.listed = listed
        self.together = Together()
        self._under_way: dict[Hashable, _Read] = {}
        self._next: dict[Hashable, _Read] = {}
        self._many: dict[tuple[Kind, int], float] = {}

    def found_many(self, kind: Kind, more_than: int) -> None:
        """There were more objects of a kind than that."""
        self._many[kind, more_than] = time.monotonic() + MANY_S

    def has_many(self, kind: Kind, more_than: int) -> bool:
        """Whether there were more lately."""
        return time.monotonic() < self._many.get((kind, more_than), 0.0)

    async def read(self, name: Hashable, fetch: Callable[[], Awaitable[Any]]) -> Any:
        """The result of a ``fetch`` that begins after this call."""
        before = self._under_way.get(name)
        if before is None:
            read = self._under_way[name] = _Read()
            read.task = started(self._run(name, fetch, read))
        elif name not in self._next:
            read = self._next[name] = _Read()
            read.task = started(self._after(before, name, fetch, read))
        else:
            read = self._next[name]
        assert read.task is not None
        return await asyncio.shield(read.task)

    async def _after(self, before: _Read, name: Hashable, fetch: Callable[[], Awaitable[Any]], read: _Read) -> Any:
        await before.rested.wait()
        self._under_way[name] = self._next.pop(name)
        return await self._run(name, fetch, read)

    async def _run(self, name: Hashable, fetch: Callable[[], Awaitable[Any]], read: _Read) -> Any:
        party.set(SHARED)
        begun = time.monotonic()
        try:
            return await fetch()
        finally:
            rest_s = min(REST * (time.monotonic() - begun), LONGEST_REST_S)
            asyncio.get_running_loop().call_later(rest_s, self._rested, name, read)

    def _rested(self, name: Hashable, read: _Read) -> None:
        if name not in self._next:
            del self._under_way[name]
        read.rested.set()
