"""Reads that many runs want at the same time."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Any

from tenantry.api.turns import SHARED, party
from tenantry.engine.tasks import started
from tenantry.engine.together import Together
from tenantry.model.kinds import Kind, Object

REST = 5
"""So many times as long as a read took nobody reads the same again: who asks meanwhile shares the next one."""
LONGEST_REST_S = 0.1
SAME_AGE_S = 2.0
"""Objects that are made within a second of each other can have the same creationTimestamp."""
MANY_S = 10.0
"""Seconds for which a kind that has many objects is taken to have them still."""


OFTEN_S = LONGEST_REST_S / 2
"""What is asked for more often than that, on average, is read less often together than by each who asks."""
_WEIGHT = 0.2
"""Of the last time between two who ask in the mean of all."""


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
        self._chosen: dict[Kind, tuple[str, str, float]] = {}
        self._asked: dict[Hashable, tuple[float, float]] = {}

    def found_many(self, kind: Kind, more_than: int) -> None:
        """There were more objects of a kind than that."""
        self._many[kind, more_than] = time.monotonic() + MANY_S

    def has_many(self, kind: Kind, more_than: int) -> bool:
        """Whether there were more lately."""
        return time.monotonic() < self._many.get((kind, more_than), 0.0)

    def note_chosen(self, kind: Kind, obj: Object | None) -> None:
        """The object that counts of all of a kind, as a list of them showed."""
        before = self._chosen.pop(kind, None)
        if obj is not None:
            name, uid = obj["metadata"]["name"], obj["metadata"]["uid"]
            since = before[2] if before is not None and before[1] == uid else time.monotonic()
            self._chosen[kind] = (name, uid, since)

    def chosen(self, kind: Kind) -> tuple[str, str] | None:
        """Name and uid of the object that counted, once nothing can be made any more that is as old."""
        name, uid, since = self._chosen.get(kind, ("", "", math.inf))
        return (name, uid) if time.monotonic() - since > SAME_AGE_S else None

    def is_often(self, name: Hashable) -> bool:
        """Note that something is asked for; whether that is often the case, lately."""
        now = time.monotonic()
        last, mean = self._asked.get(name, (-math.inf, MANY_S))
        mean += _WEIGHT * (min(now - last, MANY_S) - mean)
        self._asked[name] = now, mean
        return mean < OFTEN_S

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
