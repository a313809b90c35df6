"""Reads that many runs want at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from typing import Any


def started(run: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    """A task whose failure is nobody's when nobody waits for it any more."""
    task = asyncio.create_task(run)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return task


class Shared:
    """Reads that many runs want at the same time: who asks while one is under way shares the next one.

    So every answer is as live as a read of one's own, and a hundred runs in parallel cost a few requests.
    """

    def __init__(self) -> None:
        self._under_way: dict[Hashable, asyncio.Task[Any]] = {}
        self._next: dict[Hashable, asyncio.Task[Any]] = {}

    async def read(self, name: Hashable, fetch: Callable[[], Awaitable[Any]]) -> Any:
        """The result of a ``fetch`` that begins after this call."""
        if name not in self._under_way:
            task = self._under_way[name] = started(self._run(name, fetch, None))
        elif name not in self._next:
            task = self._next[name] = started(self._run(name, fetch, self._under_way[name]))
        else:
            task = self._next[name]
        return await asyncio.shield(task)

    async def _run(self, name: Hashable, fetch: Callable[[], Awaitable[Any]], before: asyncio.Task[Any] | None) -> Any:
        if before is not None:
            await asyncio.wait({before})
            self._under_way[name] = self._next.pop(name)
        try:
            return await fetch()
        finally:
            if name not in self._next:
                del self._under_way[name]
