"""Whose request goes next, while more are wanted than may be under way: that of the party that had the least lately.

A party is whom a request is made for, mostly a namespace.  A tenant who changes five thousand objects is one party among many,
and what a person does elsewhere does not wait behind him (a-19).  What a party holds and waits for counts as if it had had it:
where places are held for seconds, nobody has had anything yet when the line has become long.  Parties that had about as much
lately go in the order in which they asked.  Every fourth place goes to who has waited longest, so that everybody goes on.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from heapq import heappop, heappush

from tenantry.model import limits

SHARED = ""
"""The party of what is read for several at once, which all of them wait for: it always goes first."""
LITTLE_S = 0.1
"""Seconds of places up to which a party counts as one that had nothing; above that, up to twice as much counts as the same."""
HALF_LIFE_S = 2.0
"""Seconds after which half of what a party had is forgotten."""
OLDEST_EACH = 4
"""Each so many places goes to who has waited longest."""

_WEIGHT = 0.1
"""Of the last place in the mean of how long places are held."""

party: ContextVar[str] = ContextVar("party", default=SHARED)
"""For whom the requests of this task are made."""


@dataclass(slots=True)
class _Use:
    """The seconds of places that a party had until a moment, less what is forgotten."""

    seconds: float = 0.0
    at: float = 0.0

    def by(self, now: float) -> float:
        return self.seconds * math.exp2((self.at - now) / HALF_LIFE_S)

    def add(self, seconds: float, now: float) -> None:
        self.seconds, self.at = self.by(now) + seconds, now


@dataclass(order=True, slots=True)
class _Waiting:
    level: int
    number: int
    given: asyncio.Future[None] = field(compare=False)


class Turns:
    """Places for requests that are under way at the same time.

    Of those that a party holds and waits for ``uncounted`` do not count yet: an event may need two runs, each several requests.
    """

    def __init__(self, places: int, uncounted: int = 1) -> None:
        self._free = places
        self._uncounted = uncounted
        self._numbers = itertools.count()
        self._by_level: list[_Waiting] = []
        self._by_age: deque[_Waiting] = deque()
        self._given = 0
        self._uses: dict[str, _Use] = {}
        self._wanted: Counter[str] = Counter()
        self._mean_s = 0.0

    @asynccontextmanager
    async def turn(self, who: str) -> AsyncIterator[None]:
        """Hold a place for a party; waits until there is one."""
        level = 0 if self._free else self._level(who)
        self._wanted[who] += 1
        try:
            if self._free:
                self._free -= 1
            else:
                await self._wait(level)
            begun = time.monotonic()
            try:
                yield
            finally:
                self._had(who, begun, time.monotonic())
                self._leave()
        finally:
            self._wanted[who] -= 1
            if not self._wanted[who]:
                del self._wanted[who]

    @property
    def is_full(self) -> bool:
        """Whether who wants a place now has to wait for it."""
        return not self._free

    def least(self, parties: Iterable[str]) -> str:
        """Which of these parties had the least lately; `SHARED` of none."""
        return min(parties, key=self._level, default=SHARED)

    def _level(self, who: str) -> int:
        if who == SHARED:
            return 0
        use, seconds = self._uses.get(who), max(0, self._wanted[who] - self._uncounted) * self._mean_s
        if use is not None:
            seconds += use.by(time.monotonic())
        return max(0, math.frexp(seconds / LITTLE_S)[1])

    def _had(self, who: str, begun: float, ended: float) -> None:
        self._mean_s += _WEIGHT * (ended - begun - self._mean_s)
        if who == SHARED:
            return
        use = self._uses.get(who)
        if use is None:
            if len(self._uses) >= limits.PARTIES:
                self._forget(ended)
            use = self._uses[who] = _Use()
        use.add(ended - begun, ended)

    def _forget(self, now: float) -> None:
        """Forget the parties that count as if they had nothing; all of them, where half or more had something."""
        left = {who: use for who, use in self._uses.items() if use.by(now) > LITTLE_S}
        self._uses = left if 2 * len(left) < limits.PARTIES else {}

    async def _wait(self, level: int) -> None:
        waiting = _Waiting(level, next(self._numbers), asyncio.get_running_loop().create_future())
        heappush(self._by_level, waiting)
        self._by_age.append(waiting)
        try:
            await waiting.given
        except asyncio.CancelledError:
            if not waiting.given.cancelled():
                self._leave()  # the place was given in the same moment
            raise

    def _leave(self) -> None:
        """Give the place on, or have it free."""
        found = self._next()
        if found is None:
            self._free += 1
        else:
            found.given.set_result(None)

    def _next(self) -> _Waiting | None:
        """Who is next, of those who have no place yet and still want one."""
        while self._by_age and self._by_age[0].given.done():
            self._by_age.popleft()
        while self._by_level and self._by_level[0].given.done():
            heappop(self._by_level)
        if not self._by_age:
            return None
        self._given += 1
        return self._by_age[0] if self._given % OLDEST_EACH == 0 else self._by_level[0]
