"""The locks that are put on together, before any consumer is told why, and who waits for them."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Hashable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from lock_enforcement.access.seen import ConsumerSeen
from tenantry.engine.unit import Owner
from tenantry.model import limits

LOCKED_WITHIN_S = 10.0
"""So long a consumer's own run waits for them, at most."""
AGAIN_WITHIN_S = 0.5
"""So long they wait, after all locks were put on, for the run that an index of meanwhile asks for."""
FOUND_FOR_S = 2.0
"""So long all are locked that a sweep has found, without a further look at lists: each that has changed since is refused."""


@dataclass(slots=True)
class _Run:
    """Runs that follow one another: that it is known of which consumers the last one is, and the end of them all."""

    known: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    number: int = 0
    again: bool = False


class LocksTogether:
    """What a process knows of the runs that put on all locks; all of it hints."""

    def __init__(self) -> None:
        self._run: _Run | None = None
        """While all locks are put on."""
        self.untold: set[Owner] = set()
        """Those that got, or are about to get, their lock with all others, and were not looked at since."""
        self._found: tuple[float, Hashable, tuple[ConsumerSeen, ...]] = (-math.inf, None, ())

    def found(self, rules: Hashable, unlocked: tuple[ConsumerSeen, ...]) -> None:
        """A sweep has just found in its lists that these are to be locked, under these rules."""
        self._found = time.monotonic(), rules, unlocked

    def take_found(self, rules: Hashable) -> tuple[ConsumerSeen, ...] | None:
        """What a sweep has just found under the same rules, once; None where there is nothing like it."""
        (at, before, unlocked), self._found = self._found, (-math.inf, None, ())
        return unlocked if time.monotonic() - at <= FOUND_FOR_S and before == rules else None

    def begin(self) -> None:
        """A run begins; of whom it is is not known yet."""
        self._run = self._run or _Run()
        self._run.number, self._run.again = self._run.number + 1, False
        self._run.known.clear()

    def is_of(self, owners: Iterable[Owner]) -> None:
        """It is known of whom the run is."""
        if len(self.untold) < limits.REMEMBERED:
            self.untold.update(owners)
        if self._run is not None:
            self._run.known.set()

    def asked_again(self) -> None:
        """An index or a profile has come: where a run is under way, another follows."""
        if self._run is not None:
            self._run.again = True

    def end(self) -> None:
        """The run has ended; who waits goes on, unless another follows at once."""
        if self._run is not None and self._run.again:
            asyncio.get_running_loop().call_later(AGAIN_WITHIN_S, self._let_go_on, self._run, self._run.number)
        elif self._run is not None:
            self._let_go_on(self._run, self._run.number)

    def _let_go_on(self, run: _Run, number: int) -> None:
        if self._run is run and run.number == number:
            run.known.set()
            run.ended.set()
            self._run = None

    async def wait(self, owner: Owner) -> None:
        """Wait while locks are put on, where the consumer gets or got its own with others: telling why would keep those back."""
        if self._run is None:
            return
        run = self._run
        with suppress(TimeoutError):
            async with asyncio.timeout(LOCKED_WITHIN_S):
                await run.known.wait()
                if owner in self.untold:
                    await run.ended.wait()
