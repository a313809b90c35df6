"""Reads of one sort that many runs want at the same time become one read of several.

Who asks while few are under way reads alone, at once: where little happens nothing waits.  While as many are under way as may be
at a time, those who ask wait, and when one ends they are read one by one or all together, whichever ends sooner by what the last
reads of either way took.  No read begins before it was asked for, so each answer is as live as a read of one's own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from contextvars import Context, copy_context
from typing import Any, NamedTuple

from tenantry.api.turns import SHARED, party
from tenantry.engine.tasks import started
from tenantry.model import limits

One = Callable[[], Awaitable[Any]]
Many = Callable[[Sequence[str]], Awaitable[Mapping[str, Any]]]
"""Reads several by their names; the answer has each of them."""
_UNKNOWN_COST = 4
"""So many single reads a read of several is taken to last before there was one."""
_WEIGHT = 0.2
"""Of the last read in the mean of all."""


class _Waiting(NamedTuple):
    """A read that waits, and for whom."""

    one: One
    answer: asyncio.Future[Any]
    context: Context


class _Sort:
    """Reads of one sort: those under way, and those who wait."""

    def __init__(self) -> None:
        self.alone = 0
        self.together = False
        self.waiting: dict[str, _Waiting] = {}
        self.one_s = 0.0
        self.many_s = 0.0

    @property
    def is_idle(self) -> bool:
        return not (self.alone or self.together or self.waiting)

    def pays(self) -> bool:
        """Whether all who wait have their answers sooner from one read of several."""
        count = len(self.waiting)
        cost = self.many_s or _UNKNOWN_COST * self.one_s
        return count > 1 and count * self.one_s > cost * limits.READS_APART

    async def timed(self, read: Awaitable[Any], mean: str) -> Any:
        begun = time.monotonic()
        found = await read
        took, before = time.monotonic() - begun, getattr(self, mean)
        setattr(self, mean, took if not before else before + _WEIGHT * (took - before))
        return found


class Together:
    """Reads by sort."""

    def __init__(self) -> None:
        self._sorts: dict[Hashable, _Sort] = {}

    async def read(self, sort: Hashable, name: str, one: One, many: Many) -> Any:
        """What ``one`` gives, or what ``many`` gives for the name; either begins after this call.

        The answer may be another caller's, too: it is not to be changed.
        """
        found = self._sorts.get(sort)
        if found is None:
            if len(self._sorts) >= limits.REMEMBERED:
                self._sorts = {key: each for key, each in self._sorts.items() if not each.is_idle}
            found = self._sorts[sort] = _Sort()
        if not found.waiting and found.alone < limits.READS_APART:
            found.alone += 1
            return await self._apart(found, one, many)
        if name not in found.waiting:
            found.waiting[name] = _Waiting(one, asyncio.get_running_loop().create_future(), copy_context())
        answer = found.waiting[name].answer
        if found.alone < limits.READS_APART:
            self._next(found, many)
        return await asyncio.shield(answer)

    async def _apart(self, sort: _Sort, one: One, many: Many) -> Any:
        """A read that is counted among those under way; when it ends, those go on who have come meanwhile."""
        try:
            return await sort.timed(one(), "one_s")
        finally:
            sort.alone -= 1
            if sort.waiting:
                self._next(sort, many)

    def _next(self, sort: _Sort, many: Many) -> None:
        """Those who wait go on, as many as may."""
        if sort.pays():
            if not sort.together:
                sort.together = True
                started(self._all(sort, many))
            return
        while sort.waiting and sort.alone < limits.READS_APART:
            name = next(iter(sort.waiting))
            waiting = sort.waiting.pop(name)
            sort.alone += 1  # before the task runs: no more may begin than there is room for
            started(self._one(sort, waiting, many), waiting.context)

    async def _one(self, sort: _Sort, waiting: _Waiting, many: Many) -> None:
        try:
            _hand(waiting.answer, await self._apart(sort, waiting.one, many))
        except BaseException as error:
            _fail(waiting.answer, error)
            raise

    async def _all(self, sort: _Sort, many: Many) -> None:
        party.set(SHARED)
        names = list(sort.waiting)[: limits.READ_TOGETHER]
        waiting = {name: sort.waiting.pop(name).answer for name in names}
        try:
            found = await sort.timed(many(names), "many_s")
            for name, future in waiting.items():
                _hand(future, found[name])
        except BaseException as error:
            for future in waiting.values():
                _fail(future, error)
            raise
        finally:
            sort.together = False
            self._next(sort, many)


def _hand(future: asyncio.Future[Any], found: Any) -> None:
    if not future.done():
        future.set_result(found)


def _fail(future: asyncio.Future[Any], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error if isinstance(error, Exception) else asyncio.CancelledError())
        future.exception()  # who asked may have gone away
