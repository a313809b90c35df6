"""The ingress of the local broker answers as Knative's does, and lets a sender wait while too much is in hand."""

from __future__ import annotations

import asyncio
import json
from io import BytesIO
from typing import Any

import aiohttp
from brokering import broker_of, event, trigger
from local_subscriber import Subscriber

from tenantry.local.sinks import Poster
from tenantry.serving.encoding import encode_binary


async def test_concurrency_is_bounded_and_accept_waits(poster: Poster, function: Subscriber) -> None:
    """A Trigger runs at most ``concurrency`` requests at once, and with ``backlog`` events in hand the sender waits."""
    function.gate = asyncio.Event()
    async with broker_of(poster, function, trigger(), concurrency=2, backlog=3) as broker:
        senders = [asyncio.create_task(broker.accept(event(id=str(number)))) for number in range(5)]
        done, pending = await asyncio.wait(senders, timeout=0.3)
        assert (len(done), len(pending)) == (3, 2)
        function.gate.set()
        await asyncio.gather(*senders)
        await broker.drain()

    assert function.most == 2
    assert broker.counters.delivered == 5


async def test_a_sender_that_goes_away_leaves_the_counts_right(poster: Poster, function: Subscriber) -> None:
    """A sender that stops waiting for room does not keep the broker from draining."""
    function.gate = asyncio.Event()
    async with broker_of(poster, function, trigger(), concurrency=1, backlog=1) as broker:
        await broker.accept(event())
        waiting = asyncio.create_task(broker.accept(event(id="2")))
        await asyncio.wait([waiting], timeout=0.05)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        function.gate.set()
        await broker.drain()

    assert (broker.counters.in_flight, broker.counters.delivered) == (0, 1)


async def test_ingress_answers(poster: Poster, function: Subscriber) -> None:
    """The ingress answers 202, 200 to OPTIONS, 405, 404, 400 and 413 as Knative's does."""
    good = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/s", "ce-type": "request"}
    structured = json.dumps({"specversion": "1.0", "id": "2", "source": "/s", "type": "request"})
    async with broker_of(poster, function, trigger()) as broker, aiohttp.ClientSession() as client:
        url = await broker.serve()
        root = url.removesuffix(broker.path)

        async def status(method: str, to: str = url, **options: Any) -> int:
            async with client.request(method, to, **options) as response:
                assert method != "OPTIONS" or response.headers["Allow"] == "POST, OPTIONS"
                return response.status

        assert await status("POST", headers=good) == 202
        assert await status("POST", data=structured, headers={"Content-Type": "application/cloudevents+json"}) == 202
        assert await status("POST", headers=good, data=BytesIO(b"x" * 1_500_000)) == 202
        assert await status("POST", headers=good, data=BytesIO(b"x" * 5_000_000)) == 413
        assert await status("OPTIONS") == 200
        assert [await status(method) for method in ("GET", "PUT", "DELETE")] == [405, 405, 405]
        assert await status("POST", root + "/", headers=good) == 404
        assert await status("POST", root + "/system/unknown", headers=good) == 404
        assert await status("POST", root + "/system", headers=good) == 400
        assert await status("POST") == 400
        for name in good:
            assert await status("POST", headers={key: value for key, value in good.items() if key != name}) == 400
        for changed in ({"ce-id": ""}, {"ce-specversion": "2.0"}, {"ce-time": "noon"}, {"ce-knativebrokerttl": "1"}):
            assert await status("POST", headers={**good, **changed}) == 400
        batch = {"Content-Type": "application/cloudevents-batch+json"}
        assert await status("POST", headers=batch, data="[]") == 400
        await broker.drain()

    assert len(function.calls) == 3


async def test_what_is_posted_reaches_the_ingress(poster: Poster, function: Subscriber) -> None:
    """An event that a source posts arrives as it was."""
    sent = event(
        extensions={"name": "my röle", "namespace": ""},
        subject="/apis/v1/namespaces//namespaces/foo",
        data={"large": "x" * 1_500_000},
    )
    async with broker_of(poster, function, trigger()) as broker:
        url = await broker.serve()
        headers, body = encode_binary(sent)
        assert (await poster.post(url, {**headers, "Kn-Namespace": "system"}, body, 30.0)).status == 202
        await broker.drain()

    [call] = function.calls
    assert call.headers["ce-name"] == "my r%C3%B6le"
    assert call.headers["ce-subject"] == sent.subject
