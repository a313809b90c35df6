"""The local broker delivers as Knative's channel-based broker does, shown with real HTTP subscribers."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from brokering import QUICK, broker_of, event, trigger
from local_subscriber import Subscriber, subscriber

from tenantry.local.broker import Broker
from tenantry.local.filters import parse_filters
from tenantry.local.sinks import Poster
from tenantry.local.specs import TriggerSpec

REPLY = {"ce-specversion": "1.0", "ce-id": "r", "ce-source": "/function", "ce-type": "reply"}


@pytest.fixture
async def other() -> AsyncIterator[Subscriber]:
    async with subscriber() as running:
        yield running


Deliver = Callable[..., Awaitable[Broker]]


@pytest.fixture
def deliver(poster: Poster, function: Subscriber) -> Deliver:
    """``await deliver(trigger())``: a broker that has taken one event and done all it does with it."""

    async def delivered(*triggers: TriggerSpec, **options: Any) -> Broker:
        async with broker_of(poster, function, *triggers, **options) as broker:
            assert await broker.accept(event()) == 202
            await broker.drain()
        return broker

    return delivered


@pytest.fixture
def dls(tmp_path: Path) -> Path:
    """Where dead letters go."""
    return tmp_path / "dead.jsonl"


def letters(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.mark.parametrize(("status", "body"), [(204, b""), (202, b""), (200, b"")], ids=["204", "202", "200 empty"])
async def test_empty_success_is_delivered_once(deliver: Deliver, function: Subscriber, status: int, body: bytes) -> None:
    """An empty 2xx ends the delivery at the first try."""
    function.answer = lambda _: web.Response(status=status, body=body)
    broker = await deliver(trigger())

    assert len(function.calls) == 1
    assert (broker.counters.delivered, broker.counters.retried, broker.counters.in_flight) == (1, 0, 0)


@pytest.mark.parametrize("body", [b"OK", b"{}", b"\n"])
@pytest.mark.parametrize("status", [200, 202])
async def test_text_on_success_counts_as_502(deliver: Deliver, function: Subscriber, dls: Path, status: int, body: bytes) -> None:
    """A 2xx whose body is no CloudEvent is tried again and dead-lettered as 502, without its body."""
    function.answer = lambda _: web.Response(status=status, body=body)
    await deliver(trigger(dls=dls.as_uri()))

    assert len(function.calls) == 4
    [letter] = letters(dls)
    assert letter["knativeerrorcode"] == "502"
    assert "knativeerrordata" not in letter


@pytest.mark.parametrize("status", [400, 401, 403, 405, 410, 413, 415, 422, 425, 304, 302, 307])
async def test_client_errors_and_redirects_are_not_retried(
    deliver: Deliver, function: Subscriber, dls: Path, status: int
) -> None:
    """Any 4xx but 404, 408, 409, 429, and any 3xx, goes to the dead letters after one try."""
    function.answer = lambda _: web.Response(status=status, headers={"Location": "/elsewhere"})
    broker = await deliver(trigger(dls=dls.as_uri()))

    assert len(function.calls) == 1
    assert [letter["knativeerrorcode"] for letter in letters(dls)] == [str(status)]
    assert (broker.counters.dead_lettered, broker.counters.lost, broker.counters.delivered) == (1, 0, 0)


@pytest.mark.parametrize("status", [404, 408, 409, 429, 500, 501, 502, 503, 504])
async def test_transient_statuses_are_retried(deliver: Deliver, function: Subscriber, dls: Path, status: int) -> None:
    """404, 408, 409, 429 and every 5xx are tried as often as the delivery says, then dead-lettered."""
    function.answer = lambda _: web.Response(status=status, text="busy")
    seen: list[tuple[str, int, int]] = []
    await deliver(trigger(dls=dls.as_uri()), on_delivery=lambda name, _, code, n, __: seen.append((name, code, n)))

    assert seen == [("all", status, attempt) for attempt in (1, 2, 3, 4)]
    [letter] = letters(dls)
    assert letter["knativeerrordest"] == function.url
    assert letter["knativeerrorcode"] == str(status)
    assert base64.b64decode(letter["knativeerrordata"]) == b"busy"
    assert (letter["id"], letter["type"], letter["data"]) == ("1", "request", {"a": 1})
    assert len({call.headers["ce-id"] for call in function.calls}) == 1


async def test_recovery_after_one_503(deliver: Deliver, function: Subscriber) -> None:
    """A delivery that fails once and then succeeds is delivered, with one retry."""
    function.answer = lambda number: web.Response(status=204 if number else 503)
    broker = await deliver(trigger())

    assert (broker.counters.delivered, broker.counters.retried, broker.counters.dead_lettered) == (1, 1, 0)


@pytest.mark.parametrize(
    ("delivery", "expected"),
    [
        ({"retry": 3, "backoffPolicy": "exponential", "backoffDelay": "PT0.1S"}, [0, 0.1, 0.3, 0.7]),
        ({"retry": 3, "backoffPolicy": "linear", "backoffDelay": "PT0.1S"}, [0, 0, 0.1, 0.3]),
        ({"retry": 3}, [0, 0, 0, 0]),
        ({"retry": 3, "backoffPolicy": "exponential"}, [0, 0, 0, 0]),
        ({}, [0]),
    ],
    ids=["exponential", "linear", "no policy", "no delay", "no delivery"],
)
async def test_tries_come_at_the_times_of_the_table(
    deliver: Deliver, function: Subscriber, delivery: dict[str, Any], expected: list[float]
) -> None:
    """Tries come after delay * 2^n, after delay * n, or at once, as policy and delay say."""
    function.answer = lambda _: web.Response(status=503)
    broker = await deliver(trigger(delivery=delivery))

    assert len(function.times) == len(expected)
    for at, wanted in zip(function.times, expected, strict=True):
        assert wanted - 0.01 <= at
    assert broker.counters.lost == 1


async def test_no_answer_is_retried_and_dead_lettered_as_500(deliver: Deliver, function: Subscriber, dls: Path) -> None:
    """A refused connection counts as 500 on the dead letter, after all tries."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    statuses: list[int] = []
    await deliver(
        trigger(dls=dls.as_uri(), to="nobody"),
        addresses={"nobody": f"http://127.0.0.1:{port}/"},
        on_delivery=lambda _, __, status, *___: statuses.append(status),
    )

    assert statuses == [0, 0, 0, 0]
    assert [letter["knativeerrorcode"] for letter in letters(dls)] == ["500"]


async def test_timeouts_overlap_runs(poster: Poster, function: Subscriber, dls: Path) -> None:
    """A request that is too slow is tried again while the subscriber still works on the former one."""
    function.gate = asyncio.Event()
    delivery = {**QUICK, "retry": 2, "timeout": "PT1S"}
    async with broker_of(poster, function, trigger(delivery=delivery, dls=dls.as_uri())) as broker:
        await broker.accept(event())
        await broker.drain()
        assert function.running == 3
        function.gate.set()

    assert len(function.calls) == 3
    assert [letter["knativeerrorcode"] for letter in letters(dls)] == ["500"]


@pytest.mark.parametrize("status", [200, 202])
async def test_a_reply_event_goes_round(deliver: Deliver, function: Subscriber, other: Subscriber, status: int) -> None:
    """A CloudEvent on a 2xx enters the broker again and reaches the Trigger that matches it, once."""
    function.answer = lambda _: web.Response(status=status, headers=REPLY)
    triggers = (
        trigger("requests", filters=[{"exact": {"type": "request"}}]),
        trigger("replies", filters=[{"exact": {"type": "reply"}}], to="other"),
    )
    broker = await deliver(*triggers, addresses={"other": other.url})

    assert len(function.calls) == 1
    assert [call.headers["ce-id"] for call in other.calls] == ["r"]
    assert broker.counters.replies == 1


async def test_a_broken_reply_is_a_400(deliver: Deliver, function: Subscriber, dls: Path) -> None:
    """A 2xx with an incomplete CloudEvent fails at once, with 400."""
    function.answer = lambda _: web.Response(status=200, headers={"ce-specversion": "1.0"})
    await deliver(trigger(dls=dls.as_uri()))

    assert len(function.calls) == 1
    assert [letter["knativeerrorcode"] for letter in letters(dls)] == ["400"]


async def test_a_reply_loop_ends(poster: Poster, function: Subscriber) -> None:
    """A subscriber that replies with what it consumes is called once per hop, then the loop is cut and said."""
    function.answer = lambda _: web.Response(status=200, headers={**REPLY, "ce-type": "request"})
    lines: list[str] = []
    async with broker_of(poster, function, trigger(), say=lines.append) as broker:
        assert await broker.accept(event(extensions={"knativebrokerttl": "7"})) == 202
        await broker.drain()

    assert len(function.calls) == 6
    assert any("loop" in line for line in lines)


async def test_one_failing_trigger_does_not_touch_the_other(
    deliver: Deliver, function: Subscriber, other: Subscriber, tmp_path: Path
) -> None:
    """Of two matching Triggers the healthy one is served once, whatever the other one does."""
    function.answer = lambda _: web.Response(status=503)
    triggers = (trigger("bad", dls=(tmp_path / "dead.jsonl").as_uri()), trigger("good", to="other"))
    broker = await deliver(*triggers, addresses={"other": other.url})

    assert (len(function.calls), len(other.calls)) == (4, 1)
    assert (broker.counters.delivered, broker.counters.dead_lettered) == (1, 1)


async def test_what_a_subscriber_sees(poster: Poster, function: Subscriber) -> None:
    """Subscribers get Prefer, Kn-Namespace and the arrival time, and no hop counter."""
    async with broker_of(poster, function, trigger()) as broker:
        await broker.accept(event(extensions={"namespace": "", "knativebrokerttl": "9"}))
        await broker.drain()

    [call] = function.calls
    assert call.headers["prefer"] == "reply"
    assert call.headers["kn-namespace"] == "system"
    assert call.headers["ce-namespace"] == ""
    assert call.headers["ce-knativearrivaltime"].endswith("Z")
    assert "ce-knativebrokerttl" not in call.headers
    assert json.loads(call.body) == {"a": 1}


async def test_structured_format(deliver: Deliver, function: Subscriber) -> None:
    """``format: json`` on a Trigger gives one structured request."""
    await deliver(trigger(delivery={**QUICK, "format": "json"}))

    [call] = function.calls
    assert call.headers["content-type"] == "application/cloudevents+json"
    assert json.loads(call.body)["data"] == {"a": 1}


async def test_http_dead_letter_sink(deliver: Deliver, function: Subscriber, other: Subscriber) -> None:
    """A dead-letter sink over HTTP gets the event with its reason and the hop counter, and is retried like the rest."""
    function.answer = lambda _: web.Response(status=422, text="bad input")
    other.answer = lambda number: web.Response(status=204 if number else 503)
    broker = await deliver(trigger(dls=other.url))

    assert len(other.calls) == 2
    assert other.calls[-1].headers["ce-knativeerrorcode"] == "422"
    assert other.calls[-1].headers["ce-knativebrokerttl"] == "255"
    assert broker.counters.dead_lettered == 1


async def test_a_failing_dead_letter_sink_is_a_loud_loss(deliver: Deliver, function: Subscriber, other: Subscriber) -> None:
    """When the dead-letter sink fails as well the event is counted as lost, and said so."""
    function.answer = lambda _: web.Response(status=503)
    other.answer = lambda _: web.Response(status=500)
    lines: list[str] = []
    broker = await deliver(trigger(dls=other.url), say=lines.append)

    assert (len(function.calls), len(other.calls)) == (4, 4)
    assert broker.counters.lost == 1
    assert "lost" in lines[-1]


@pytest.mark.parametrize(("size", "flagged"), [(768, 0), (769, 1)])
async def test_oversized_errors_are_flagged(deliver: Deliver, function: Subscriber, dls: Path, size: int, flagged: int) -> None:
    """An error body over 768 bytes with a dead-letter sink is flagged: it ends the dispatcher of a cluster."""
    function.answer = lambda _: web.Response(status=400, body=b"x" * size)
    lines: list[str] = []
    broker = await deliver(trigger(dls=dls.as_uri()), say=lines.append)

    assert broker.counters.oversized_errors == flagged
    assert any("DANGER" in line for line in lines) == bool(flagged)
    assert len(letters(dls)[0]["knativeerrordata"]) == 1024


@pytest.mark.parametrize(("limit", "least"), [("PT0.3S", 0.3), (None, 0.0)])
async def test_retry_after(deliver: Deliver, function: Subscriber, limit: str | None, least: float) -> None:
    """Retry-After counts only with retryAfterMax, and only up to it."""
    function.answer = lambda number: (
        web.Response(status=204) if number else web.Response(status=429, headers={"Retry-After": "7"})
    )
    delivery = {**QUICK, **({"retryAfterMax": limit} if limit else {})}
    await deliver(trigger(delivery=delivery))

    assert least <= function.times[1] < 7


async def test_broker_delivery_is_the_fallback(deliver: Deliver, function: Subscriber, dls: Path) -> None:
    """A Trigger's delivery replaces the Broker's as a whole; only the dead-letter sink falls back."""
    function.answer = lambda _: web.Response(status=503)
    spec = {"delivery": {**QUICK, "retry": 1, "deadLetterSink": {"uri": dls.as_uri()}}}
    await deliver(trigger("own", delivery={"retry": 0}), spec=spec)
    own = len(function.calls)
    await deliver(trigger("none", delivery=None), spec=spec)

    assert (own, len(function.calls) - own) == (1, 2)
    assert len(letters(dls)) == 2


async def test_unmatched_events_are_counted(deliver: Deliver, function: Subscriber) -> None:
    """An event that no Trigger wants is accepted and counted as unmatched."""
    broker = await deliver(trigger(filters=[{"exact": {"type": "else"}}]))

    assert function.calls == []
    assert (broker.counters.accepted, broker.counters.unmatched) == (1, 1)


async def test_filters_choose_triggers(poster: Poster, function: Subscriber, other: Subscriber) -> None:
    """Each Trigger gets what its own filter lets through."""
    triggers = (
        trigger("clustered", filters=[{"exact": {"kind": "Namespace"}}]),
        trigger("spaced", filters=[{"not": {"exact": {"kind": "Namespace"}}}], to="other"),
    )
    async with broker_of(poster, function, *triggers, addresses={"other": other.url}) as broker:
        await broker.accept(event(id="c", extensions={"kind": "Namespace"}))
        await broker.accept(event(id="n", extensions={"kind": "ConfigMap"}))
        await broker.drain()

    assert [call.headers["ce-id"] for call in function.calls] == ["c"]
    assert [call.headers["ce-id"] for call in other.calls] == ["n"]
    assert parse_filters([{"exact": {"type": "x"}}]).text == "type is 'x'"
