"""Decisions on their way out: a bounded queue beside the runs, sent one after the other to the broker that ``K_SINK`` names.

No run waits for it, and none fails by it.  What cannot be sent after `TRIES` tries, or has no room, is dropped, counted
(``tenantry.decisions``) and said.  Each event has the name of its process and a number; numbers follow each other without a
gap, so whoever keeps them knows what is missing.  The first event of a process (number 0) says that it begins, the last one that
it ends and how many there were: one that was killed has no last one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import socket
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from opentelemetry import metrics

from tenantry.api.errors import TransientError
from tenantry.engine.engine import Emit
from tenantry.model import limits
from tenantry.model.decision import DecisionMade
from tenantry.model.event import DECISION_TYPE, DECISIONS_BEGUN_TYPE, DECISIONS_ENDED_TYPE, Event
from tenantry.model.kinds import Object
from tenantry.serving.signing import SIGNATURE, NoKey, key_from_environment, signature

log = logging.getLogger("tenantry")

TRIES = 6
FIRST_PAUSE_S = 0.2
AT_ONCE = 4
"""Events that are being sent."""
CLOSE_S = 5.0
"""How long the end of a process waits for what is still to be sent."""

_told = metrics.get_meter("tenantry").create_counter(
    "tenantry.decisions", unit="{event}", description="Decisions as events, by function and outcome: sent, or dropped"
)


@dataclass(frozen=True, slots=True)
class _Waiting:
    """Events to ``make`` of one decision, or of the beginning or end of the process, with the number of the first."""

    first: int
    numbers: int
    names: int
    make: Callable[[int], list[Event]]

    def __str__(self) -> str:
        return str(self.first) if self.numbers == 1 else f"{self.first}..{self.first + self.numbers - 1}"


class Outbox:
    """What one process has to tell; between `open` and `close`.

    ``send`` is None where there is no broker: then all is dropped, which is said once.
    """

    def __init__(self, send: Emit | None, function: str, service: str) -> None:
        self.instance = f"{service}-{secrets.token_hex(5)}"
        self.dropped = 0
        self._send = send
        self._function = function
        self._service = service
        self._key = b""
        self._next = 0
        self._queue: deque[_Waiting] = deque()
        self._names = 0
        self._wake = asyncio.Event()
        self._closing = False
        self._workers: list[asyncio.Task[None]] = []
        self._said = False

    def open(self) -> None:
        """Begin: the first event says that the process is there."""
        try:
            self._key = key_from_environment()
        except NoKey as error:
            log.error("decisions are sent without a signature, which the ledger does not take: %s", error)
        if self._send is None:
            log.warning("decisions are switched on and K_SINK names no broker: they are not sent")
            return
        self._workers = [asyncio.create_task(self._work()) for _ in range(AT_ONCE)]
        self._put(1, 0, lambda first: [self._event(DECISIONS_BEGUN_TYPE, first, {"host": socket.gethostname()})])

    async def close(self) -> None:
        """Say that the process ends, send what is left for `CLOSE_S`, and end."""
        if not self._workers:
            return
        self._closing = True
        self._put(1, 0, lambda first: [self._event(DECISIONS_ENDED_TYPE, first, {"dropped": self.dropped})])
        _, late = await asyncio.wait(self._workers, timeout=CLOSE_S)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        while self._queue:
            self._drop(self._pop(), "the process ends")

    def take(self, decision: DecisionMade) -> None:
        """Queue a decision: the newest is kept, and of too many the oldest go."""
        if not self._workers:
            _told.add(1, {"function": self._function, "outcome": "dropped"})
            return
        parts = decision.parts()
        self._put(len(parts), len(decision.inputs) + len(decision.writes), lambda first: self._events(decision, first))
        while len(self._queue) > limits.DECISIONS_WAITING or (
            self._names > limits.DECISIONS_WAITING_NAMES and len(self._queue) > 1
        ):
            self._drop(self._pop(), "too many wait to be sent")

    def _put(self, numbers: int, names: int, make: Callable[[int], list[Event]]) -> None:
        first, self._next = self._next, self._next + numbers
        self._queue.append(_Waiting(first, numbers, names, make))
        self._names += names
        self._wake.set()

    def _pop(self) -> _Waiting:
        found = self._queue.popleft()
        self._names -= found.names
        return found

    def _events(self, decision: DecisionMade, first: int) -> list[Event]:
        trace = {"traceparent": decision.traceparent} if decision.traceparent else {}
        more = {"unit": decision.unit, "owner": decision.owner, "partitionkey": decision.owner, **trace}
        return [
            self._event(DECISION_TYPE, number, data, subject=decision.owner, extensions=more)
            for number, data in enumerate(decision.documents(), first)
        ]

    def _event(
        self, kind: str, number: int, data: Object, *, subject: str | None = None, extensions: dict[str, str] | None = None
    ) -> Event:
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        whole = {
            "type": kind,
            "instance": self.instance,
            "sequence": number,
            "function": self._function,
            "service": self._service,
            "time": now,
            **data,
        }
        signed = {SIGNATURE: signature(self._key, whole)} if self._key else {}
        named = {"function": self._function, "instance": self.instance, "sequence": str(number)}
        return Event(
            id=f"{self.instance}-{number}",
            source=f"/tenantry/{self._service}/{self.instance}",
            type=kind,
            subject=subject,
            time=now,
            datacontenttype="application/json",
            extensions={**named, **(extensions or {}), **signed},
            data=whole,
        )

    async def _work(self) -> None:
        while True:
            while self._queue:
                waiting = self._pop()
                try:
                    problem = await self._deliver(waiting.make(waiting.first))
                except asyncio.CancelledError:
                    self._drop(waiting, "the process ends")
                    raise
                except Exception as error:
                    log.exception("a bug: a decision could not be sent")
                    problem = repr(error)
                if problem:
                    self._drop(waiting, problem)
            if self._closing:
                return
            self._wake.clear()
            await self._wake.wait()

    async def _deliver(self, events: list[Event]) -> str:
        """Send them; returns why that failed, or an empty string."""
        assert self._send is not None
        for event in events:
            for attempt in range(TRIES):
                try:
                    await self._send(event)
                except TransientError as error:
                    if attempt + 1 == TRIES:
                        return error.message
                    await asyncio.sleep(FIRST_PAUSE_S * 2**attempt)
                else:
                    _told.add(1, {"function": self._function, "outcome": "sent"})
                    break
        if self._said:
            self._said = False
            log.info("decisions are sent again; %d of process %s are missing so far", self.dropped, self.instance)
        return ""

    def _drop(self, waiting: _Waiting, reason: str) -> None:
        self.dropped += waiting.numbers
        _told.add(waiting.numbers, {"function": self._function, "outcome": "dropped"})
        level = logging.DEBUG if self._said else logging.WARNING  # of an outage the first, and how many at its end
        self._said = True
        with contextlib.suppress(Exception):
            log.log(level, "decision %s of process %s is dropped: %s", waiting, self.instance, reason)
