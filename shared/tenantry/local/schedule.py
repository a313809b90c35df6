"""PingSources on one machine: each fires its event at every tick of its schedule.

The event is the one of Knative's ``mtping``: type, source path, random id, time of sending, no subject, extensions of
``ceOverrides``, content type only with data.  JSON data is decoded on the way, so its white space may differ.  Without its
jitter of up to half a second.  A tick that passed while the machine slept, or while the clock jumped, is not made up, as
there.  A send that fails is tried again five times (0.1 s to 1.6 s), then it is lost and said so: the next tick comes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from datetime import datetime
from types import TracebackType
from typing import Self
from uuid import uuid4
from zoneinfo import ZoneInfo

from pydantic_core import from_json

from tenantry.local.backlog import RETRIED
from tenantry.local.cron import next_tick
from tenantry.local.delivery import is_success, timestamp
from tenantry.local.sinks import NoAnswer, Sink
from tenantry.local.specs import PingSpec
from tenantry.model.event import PING_TYPE, Event
from tenantry.serving.attributes import BadEvent, media_type

_log = logging.getLogger(__name__)

RETRIES = 5
FIRST_DELAY_S = 0.1
_LONGEST_SLEEP_S = 30.0  # looks at the clock again after this, in case it was set or the machine slept
_LATE_S = 5.0  # a tick that is later than this has passed


def ping_event(spec: PingSpec) -> Event:
    """The event of one tick."""
    body: object = spec.body
    if isinstance(body, bytes) and _is_json(spec.content_type):
        body = from_json(body)
    return Event(
        id=str(uuid4()),
        source=f"/apis/v1/namespaces/{spec.namespace}/pingsources/{spec.name}",
        type=PING_TYPE,
        time=timestamp(),
        datacontenttype=(spec.content_type or None) if body is not None else None,
        extensions=dict(spec.ce_overrides.extensions),
        data=body,
    )


def _is_json(content_type: str) -> bool:
    try:
        return bool(content_type) and media_type(content_type).is_json
    except BadEvent:
        return False


class Schedule:
    """Fires PingSources into a sink.  Runs between ``async with`` and its end."""

    def __init__(
        self,
        pings: Iterable[PingSpec],
        sink_of: Callable[[PingSpec], Sink],
        *,
        say: Callable[[str], None] = _log.info,
    ) -> None:
        self.pings = {ping.name: ping for ping in pings}
        self.fired = 0
        self.lost = 0
        self._sinks = {name: sink_of(ping) for name, ping in self.pings.items()}
        self._say = say
        self._tasks: set[asyncio.Task[object]] = set()

    async def __aenter__(self) -> Self:
        for ping in self.pings.values():
            self._spawn(asyncio.create_task(self._run(ping)))
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def fire_now(self, name: str) -> bool:
        """Fire out of turn; returns whether the sink took it.  Raises `KeyError`, with the known names."""
        if name not in self.pings:
            raise KeyError(f"no PingSource {name}; known are {', '.join(self.pings) or 'none'}")
        return await self._fire(self.pings[name])

    def next_tick(self, name: str) -> datetime:
        """When the PingSource fires next, in its own time zone."""
        ping = self.pings[name]
        return next_tick(ping.schedule, datetime.now(ZoneInfo(ping.timezone)))

    async def _run(self, ping: PingSpec) -> None:
        zone = ZoneInfo(ping.timezone)
        last = datetime.now(zone)
        while True:
            # From the later of both: a timer that rings a little early must not ring twice.
            tick = next_tick(ping.schedule, max(last, datetime.now(zone)))
            last = tick
            while (seconds := tick.timestamp() - datetime.now(zone).timestamp()) > 0:  # noqa: ASYNC110 (waits for a clock)
                await asyncio.sleep(min(seconds, _LONGEST_SLEEP_S))
            if seconds < -_LATE_S:
                continue
            # Not waited for: a sink that hangs must not hold up the next tick.
            self._spawn(asyncio.create_task(self._fire(ping)))

    async def _fire(self, ping: PingSpec) -> bool:
        event, sink = ping_event(ping), self._sinks[ping.name]
        delay, problem = FIRST_DELAY_S, ""
        for retry in range(RETRIES + 1):
            if retry:
                await asyncio.sleep(delay)
                delay *= 2
            try:
                status = await sink(event)
                problem = f"the sink answered {status}"
            except NoAnswer as error:
                status, problem = 503, str(error)
            if is_success(status):
                self.fired += 1
                return True
            if status not in RETRIED:
                break
        self.lost += 1
        self._say(f"schedule {ping.name}: the event of this tick is lost: {problem}")
        return False

    def _spawn(self, task: asyncio.Task[object] | asyncio.Task[None] | asyncio.Task[bool]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
