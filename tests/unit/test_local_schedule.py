"""PingSources on one machine."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tenantry.local.cron import next_tick
from tenantry.local.schedule import Schedule, ping_event
from tenantry.local.sinks import NoAnswer
from tenantry.local.specs import PingSpec
from tenantry.model.event import Event


def ping(name: str = "p", **spec: Any) -> PingSpec:
    return PingSpec.model_validate({"name": name, "namespace": "system", "sink": {"uri": "http://unused"}, **spec})


class Heard:
    def __init__(self, *answers: int | Exception) -> None:
        self.events: list[Event] = []
        self.times: list[float] = []
        self.arrived = asyncio.Event()
        self.answers = list(answers)
        self.wanted = 1

    async def __call__(self, event: Event) -> int:
        self.events.append(event)
        self.times.append(datetime.now(ZoneInfo("UTC")).timestamp())
        if len(self.events) >= self.wanted:
            self.arrived.set()
        answer = self.answers.pop(0) if self.answers else 202
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_the_event() -> None:
    """Type, source path, extensions and data are those of Knative; no subject."""
    spec = ping(contentType="application/json", data='{"resync":"all"}', ceOverrides={"extensions": {"resync": "f"}})
    event = ping_event(spec)

    assert (event.type, event.source) == ("dev.knative.sources.ping", "/apis/v1/namespaces/system/pingsources/p")
    assert (event.subject, event.datacontenttype, event.data) == (None, "application/json", {"resync": "all"})
    assert event.extensions == {"resync": "f"}
    assert event.id != ping_event(spec).id


@pytest.mark.parametrize(
    ("spec", "content_type", "data"),
    [
        ({}, None, None),
        ({"contentType": "application/json"}, None, None),
        ({"contentType": "text/plain", "data": "hello"}, "text/plain", b"hello"),
        ({"data": "hello"}, None, b"hello"),
        ({"contentType": "image/png", "dataBase64": "AP8="}, "image/png", b"\x00\xff"),
    ],
)
def test_content_type_only_with_data(spec: dict[str, str], content_type: str | None, data: object) -> None:
    """The content type is sent only with data, which arrives as it is."""
    event = ping_event(ping(**spec))

    assert (event.datacontenttype, event.data) == (content_type, data)


@pytest.mark.parametrize(
    ("schedule", "after", "zone", "tick"),
    [
        ("*/10 * * * * *", "2026-03-01T12:00:03", "UTC", "2026-03-01T12:00:10"),
        ("5 0 * * * *", "2026-03-01T12:00:07", "UTC", "2026-03-01T13:00:05"),
        ("3-59/10 * * * *", "2026-03-01T12:00:00", "UTC", "2026-03-01T12:03:00"),
        ("@hourly", "2026-03-01T12:00:00", "UTC", "2026-03-01T13:00:00"),
        ("0 9 * * MON", "2026-03-01T12:00:00", "Europe/Berlin", "2026-03-02T09:00:00"),
    ],
)
def test_ticks(schedule: str, after: str, zone: str, tick: str) -> None:
    """Five fields, or six with the seconds first, in the time zone of the source, strictly after the moment."""
    began, ticked = (datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)) for text in (after, tick))

    assert next_tick(schedule, began) == ticked


async def test_it_fires_at_every_tick_and_only_then() -> None:
    """A schedule of seconds fires once per second, at its start, without doubles."""
    heard = Heard()
    heard.wanted = 3
    async with Schedule([ping(schedule="* * * * * *")], lambda _: heard):
        await asyncio.wait_for(heard.arrived.wait(), 10)

    gaps = [later - earlier for earlier, later in zip(heard.times, heard.times[1:], strict=False)]
    assert all(0.5 < gap < 1.5 for gap in gaps)
    assert all(at % 1 < 0.5 for at in heard.times)
    assert len({event.id for event in heard.events}) == 3


async def test_fire_now() -> None:
    """A PingSource can be fired out of turn, by name; an unknown name lists the known ones."""
    heard = Heard()
    async with Schedule([ping(schedule="@yearly")], lambda _: heard) as schedule:
        assert await schedule.fire_now("p")
        with pytest.raises(KeyError, match="known are p"):
            await schedule.fire_now("q")
        assert schedule.next_tick("p").month == 1

    assert (len(heard.events), schedule.fired, schedule.lost) == (1, 1, 0)


@pytest.mark.parametrize(("answers", "taken", "tries"), [((503, NoAnswer("x")), True, 3), ((400,), False, 1), ((500,), False, 1)])
async def test_a_failed_send(answers: tuple[int | Exception, ...], taken: bool, tries: int) -> None:
    """A send is tried again with the same event where Knative does; else it is lost, and said so."""
    heard, lines = Heard(*answers), list[str]()
    async with Schedule([ping(schedule="@yearly")], lambda _: heard, say=lines.append) as schedule:
        assert await schedule.fire_now("p") is taken

    assert len(heard.events) == tries
    assert len({event.id for event in heard.events}) == 1
    assert bool(lines) is not taken
