"""A Broker on one machine: takes events, in process or over HTTP, and delivers them as each Trigger says.

Answers, retries, delays, replies and dead letters are those of Knative's channel-based broker (1.22), with the
``async-handler`` that ours asks for: an event is accepted when it is in memory, and delivered after that.  So `drain`
ends only when nothing is in flight, and what is in memory when the process dies is lost, as there.

Different on purpose: a full Trigger holds up who sends (`accept` waits) instead of growing without bound; redirects are
failures; a reply that has used up its hops is dropped instead of being tried again, which there multiplies a loop;
specversion 0.3 is refused.

Invariant: ``accepted`` events become, per matching Trigger, exactly one of delivered, dead-lettered and lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from tenantry.local.dead_letters import DeadLetters
from tenantry.local.delivery import timestamp
from tenantry.local.filters import attributes_of
from tenantry.local.manifests import resolve
from tenantry.local.sinks import Poster
from tenantry.local.specs import BrokerSpec, DeliverySpec, TriggerSpec
from tenantry.local.subscription import TTL, Counters, Encoded, OnDelivery, Subscription
from tenantry.local.told import STATUS
from tenantry.model import limits
from tenantry.model.event import Event
from tenantry.serving.cloudevents import BadEvent, parse_event

_log = logging.getLogger(__name__)

HOPS = 255
MATCHES_REMEMBERED = 1000
ARRIVAL = "knativearrivaltime"
_ALLOW = {"Allow": "POST, OPTIONS"}

DEFAULT_DELIVERY = DeliverySpec.model_validate({"retry": 10, "backoffPolicy": "exponential", "backoffDelay": "PT0.2S"})
"""What a cluster's webhook writes into a Broker that has no delivery (``config-br-defaults``)."""


class Broker:
    """One Broker and its Triggers.

    ``concurrency`` bounds the deliveries of one Trigger that are under way at once.  It is wide, since most of them wait in the
    function for a run that they share, and whoever waits must not hold up the events of others.  Whose event goes next is told
    apart by namespace, and by the value of ``project_label`` on Namespaces that travel whole: among at most ``backlog`` events of
    a Trigger, since a source that has to wait holds up everybody's.

    ``addresses`` says where subscribers and dead-letter sinks are, by ``Kind/name`` or name; a dead-letter sink may be a
    ``file:`` address.  Runs between ``async with`` and its end, which cancels what is in flight: `drain` before it.
    `serve` opens the HTTP ingress, and with ``tell`` beside it what that returns, as JSON at `tenantry.local.told.STATUS`.

    Raises:
        ManifestError: a name has no address.
    """

    def __init__(
        self,
        spec: BrokerSpec,
        triggers: Iterable[TriggerSpec],
        *,
        addresses: Mapping[str, str],
        poster: Poster,
        concurrency: int = 256,
        backlog: int = 4096,
        project_label: str = "",
        on_delivery: OnDelivery | None = None,
        say: Callable[[str], None] = _log.info,
        tell: Callable[[], Mapping[str, Any]] | None = None,
    ) -> None:
        self.spec = spec
        self.counters = Counters()
        self.path = f"/{spec.namespace}/{spec.name}"
        self._say = say
        self._tell = tell
        self._tasks: set[asyncio.Task[None]] = set()
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._runner: web.ServerRunner | None = None
        self._subscriptions: list[Subscription] = []
        default = spec.delivery or DEFAULT_DELIVERY
        dead_letters: dict[str, DeadLetters] = {}
        for trigger in triggers:
            if (trigger.namespace, trigger.broker) != (spec.namespace, spec.name):
                continue
            # A Trigger's delivery replaces the Broker's as a whole; only the dead-letter sink falls back.
            delivery = trigger.delivery or default
            destination = delivery.dead_letter_sink or default.dead_letter_sink
            sink = None
            if destination is not None:
                address = resolve(destination, addresses)
                sink = dead_letters.setdefault(address, DeadLetters(address, poster))
            self._subscriptions.append(
                Subscription(
                    trigger,
                    delivery,
                    resolve(trigger.subscriber, addresses),
                    poster=poster,
                    dead_letters=sink,
                    reply=self._take_reply,
                    counters=self.counters,
                    on_delivery=on_delivery,
                    say=self._sayer(trigger.name),
                    concurrency=concurrency,
                    backlog=backlog,
                    project_label=project_label,
                )
            )

        self._names = sorted({name for each in self._subscriptions for name in each.trigger.filter.names})
        self._matched: dict[tuple[str | None, ...], list[Subscription]] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def accept(self, event: Event) -> int:
        """Take an event: 202 when it is in memory for each matching Trigger, 400 when its hops are used up.

        Waits while a matching Trigger has its hands full.  This is a `Sink`.
        """
        ttl = HOPS
        if TTL in event.extensions:
            given = event.extensions[TTL]
            ttl = int(given) - 1 if given.isdecimal() else 0
            if ttl <= 0:
                return 400
        return await self._take(event, ttl, wait=True)

    async def drain(self) -> None:
        """Wait until nothing is in flight: all retries, dead letters and replies included."""
        await self._quiet.wait()

    async def serve(self, host: str = "127.0.0.1", port: int = 0) -> str:
        """Open the HTTP ingress; returns the broker's URL.  Closed at the end of ``async with``."""
        self._runner = web.ServerRunner(web.Server(self._handle, access_log=None), shutdown_timeout=2.0)
        await self._runner.setup()
        await web.TCPSite(self._runner, host, port).start()
        bound = self._runner.addresses[0]
        return f"http://{host}:{bound[1]}{self.path}"

    async def _take(self, event: Event, ttl: int, *, wait: bool) -> int:
        extensions = {name: value for name, value in event.extensions.items() if name != TTL}
        extensions[ARRIVAL] = timestamp()
        event = replace(event, extensions=extensions)
        attributes = attributes_of(event)
        matching = self._matching(attributes)
        self.counters.accepted += 1
        if not matching:
            self.counters.unmatched += 1
            return 202
        encoded = Encoded(event, ttl)
        self.counters.in_flight += len(matching)
        self._quiet.clear()
        started = 0
        try:
            for subscription in matching:
                # A reply comes from a delivery that holds room itself: were it to wait, it could wait for ever.
                if wait:
                    await subscription.room.acquire()
                task = asyncio.create_task(self._deliver(subscription, encoded, holds_room=wait))
                started += 1
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        finally:
            self._done(len(matching) - started)  # none, unless the sender went away while it waited
        return 202

    def _matching(self, attributes: Mapping[str, str]) -> list[Subscription]:
        """The Triggers that an event passes, remembered by the attributes that their filters look at."""
        looked_at = tuple(attributes.get(name) for name in self._names)
        found = self._matched.get(looked_at)
        if found is None:
            if len(self._matched) >= MATCHES_REMEMBERED:
                self._matched.clear()
            found = self._matched[looked_at] = [each for each in self._subscriptions if each.matches(attributes)]
        return found

    async def _deliver(self, subscription: Subscription, encoded: Encoded, *, holds_room: bool) -> None:
        try:
            await subscription.deliver(encoded)
        except Exception as error:
            # A bug of ours: it must neither vanish nor keep `drain` waiting.
            self.counters.lost += 1
            self._say(f"trigger {subscription.trigger.name}: {encoded.event.type} is lost: {error!r}")
        finally:
            if holds_room:
                subscription.room.release()
            self._done(1)

    def _done(self, deliveries: int) -> None:
        self.counters.in_flight -= deliveries
        if self.counters.in_flight == 0:
            self._quiet.set()

    async def _take_reply(self, event: Event, ttl: int) -> bool:
        if ttl <= 1:
            return False
        await self._take(event, ttl - 1, wait=False)
        return True

    async def _handle(self, request: web.BaseRequest) -> web.Response:
        """The ingress: 202, or 400, 404, 405 and 413 with a few words."""
        if request.method == "OPTIONS":
            return web.Response(status=200, headers=_ALLOW)
        if request.method == "GET" and request.path == STATUS and self._tell is not None:
            return web.json_response(self._tell())
        if request.method != "POST":
            return web.Response(status=405, headers=_ALLOW)
        if request.path != self.path:
            if len([part for part in request.path.split("/") if part]) == 1:
                return web.Response(status=400, text="expected /namespace/broker")
            return web.Response(status=404, text="no such broker")
        body = bytearray()
        async for chunk in request.content.iter_any():
            body += chunk
            if len(body) > limits.EVENT_BYTES:
                return web.Response(status=413, text="body too large")
        try:
            event = parse_event(request.raw_headers, bytes(body))
        except BadEvent as error:
            return web.Response(status=400, text=error.reason)
        status = await self.accept(event)
        return web.Response(status=status, text="no hops left" if status == 400 else None)

    def _sayer(self, trigger: str) -> Callable[[str], None]:
        return lambda line: self._say(f"trigger {trigger}: {line}")
