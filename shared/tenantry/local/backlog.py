"""The queue between a watch and a sink: per object only the newest state waits, and nothing is lost.

A watch must never wait for a sink (the server would end it), and a sink must never make the queue grow without bound. Both
hold because the queue has at most one entry per object: a newer change takes the place of an older one that was not sent
yet.  Per object at most one send runs at a time, so its changes arrive in order; over all objects up to ``concurrency``
run at once, so one that hangs holds up nobody else.

Invariant: after the last change of an object, its newest state is sent until the sink takes or refuses it.  No answer and
the statuses that Knative's sources try again (404, 413, 425, 429, 502, 503, 504) are tried for ever, with growing delay,
unlike there, where five retries are all; any other status ends the event, as there.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from tenantry.local.sinks import NoAnswer, Sink
from tenantry.model.event import Event
from tenantry.model.kinds import Key, Object

Verb = Literal["add", "update", "delete"]

RETRIED = frozenset((404, 413, 425, 429, 502, 503, 504))
FIRST_DELAY_S = 0.1
LONGEST_DELAY_S = 5.0
_BREATH = 64  # events after which a worker lets others run, should the sink never wait


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one object; ``subject`` is made once, where the kind's plural is known."""

    verb: Verb
    key: Key
    subject: str
    obj: Object | None


def merge(waiting: Change, newer: Change) -> Change:
    """The one change that stands for two: the newest state, and ``add`` while nobody was told of the object."""
    if newer.verb == "update" and waiting.verb == "add":
        return replace(newer, verb="add")
    return newer


class Backlog:
    """Sends changes to a sink; `put` never waits.

    ``event_of`` makes the event, at the moment of sending; one emission keeps its event (and id) through all its tries.
    """

    def __init__(
        self,
        sink: Sink,
        event_of: Callable[[Change], Event],
        *,
        concurrency: int = 64,
        say: Callable[[str], None],
    ) -> None:
        self.sent = 0
        self.refused = 0
        self.retried = 0
        self._sink = sink
        self._event_of = event_of
        self._concurrency = concurrency
        self._say = say
        self._waiting: dict[Key, Change] = {}
        self._ready: deque[Key] = deque()
        self._sending: set[Key] = set()
        self._workers: set[asyncio.Task[None]] = set()
        self._idle = 0
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._unreachable = False

    @property
    def waiting(self) -> int:
        """Objects whose newest state is not sent yet."""
        return len(self._waiting) + len(self._sending)

    def put(self, change: Change) -> None:
        """Queue a change, in place of an older one of the same object."""
        key = change.key
        older = self._waiting.get(key)
        if older is not None:
            self._waiting[key] = merge(older, change)
            return
        self._waiting[key] = change
        self._quiet.clear()
        if key in self._sending:
            return  # its worker looks again when it is done
        self._ready.append(key)
        if len(self._workers) < self._concurrency and len(self._ready) > self._idle:
            worker = asyncio.create_task(self._work())
            self._idle += 1
            self._workers.add(worker)
            worker.add_done_callback(self._workers.discard)

    async def drain(self) -> None:
        """Wait until everything is sent."""
        await self._quiet.wait()

    async def close(self) -> None:
        """Stop sending; what waits is dropped."""
        workers = list(self._workers)
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        self._waiting.clear()
        self._ready.clear()
        self._sending.clear()
        self._idle = 0
        self._quiet.set()

    async def _work(self) -> None:
        done = 0
        self._idle -= 1
        while self._ready:
            key = self._ready.popleft()
            self._sending.add(key)
            try:
                await self._send(self._waiting.pop(key))
            finally:
                self._sending.discard(key)
            if key in self._waiting:
                self._ready.append(key)
            done += 1
            if done % _BREATH == 0:
                await asyncio.sleep(0)
        if not self._waiting and not self._sending:
            self._quiet.set()

    async def _send(self, change: Change) -> None:
        event = self._event_of(change)
        delay = FIRST_DELAY_S
        while True:
            try:
                status = await self._sink(event)
                problem = "" if 200 <= status < 300 else f"the sink answered {status}"
            except NoAnswer as error:
                status, problem = 0, str(error)
            except Exception as error:  # a bug of the sink must cost one event, not the worker
                status, problem = 500, f"the sink failed: {error!r}"
            if not problem:
                self.sent += 1
                if self._unreachable:
                    self._unreachable = False
                    self._say("the sink takes events again")
                return
            if status and status not in RETRIED:
                self.refused += 1
                self._say(f"dropped {change.verb} of {change.key}: {problem}, which is not tried again")
                return
            if not self._unreachable:
                self._unreachable = True
                self._say(f"{problem}; events wait and are tried again")
            self.retried += 1
            await asyncio.sleep(delay * random.uniform(0.8, 1.2))  # noqa: S311 (spreads load, guards nothing)
            delay = min(delay * 2, LONGEST_DELAY_S)
            newer = self._waiting.pop(change.key, None)
            if newer is not None:
                change = merge(change, newer)
                event = self._event_of(change)
