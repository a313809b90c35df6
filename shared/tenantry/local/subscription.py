"""One Trigger at work: tries, delays, replies and dead letters of the events that match it.

At most ``concurrency`` requests run at once and at most ``backlog`` events are in hand; who has more waits.  Whose event
goes next says `tenantry.api.turns`: many events of one namespace hold up no other's.  An event that is between two tries
keeps its place in hand but not its request slot, so events that wait out a delay do not stop those that would succeed.

Invariant: every event that is given ends in exactly one of delivered, dead-lettered and lost, and each is counted.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from tenantry.api.turns import Turns
from tenantry.engine.request import labels_told, whose
from tenantry.local.dead_letters import DeadLetters, dead_letter
from tenantry.local.delivery import BROKEN_REPLY, ERROR_BODY_LIMIT, NO_ANSWER, NOT_AN_EVENT, delay, is_retried, is_success
from tenantry.local.sinks import Answer, NoAnswer, Poster
from tenantry.local.specs import DeliverySpec, TriggerSpec
from tenantry.model.event import Event
from tenantry.model.kinds import NAMESPACE
from tenantry.serving.cloudevents import BadEvent, encode_binary, encode_structured, parse_event

OnDelivery = Callable[[str, Event, int, int, float], None]
"""Called after each try with the Trigger's name, event, status (0: no answer), number of the try from 1, and seconds."""

TTL = "knativebrokerttl"


def party_of(event: Event, project_label: str) -> str:
    """For whom an event is delivered: whom its object belongs to."""
    told = event.extensions.get
    kind, namespace, name = told("kind", ""), told("namespace", ""), told("name") or event.subject or ""
    return whose(kind, namespace, name, labels_told(event.data) if kind == NAMESPACE.kind else {}, project_label)


@dataclass(slots=True)
class Counters:
    """What became of events.  ``accepted`` and ``unmatched`` count events, the others deliveries (event x Trigger)."""

    accepted: int = 0
    unmatched: int = 0
    in_flight: int = 0
    delivered: int = 0
    retried: int = 0
    dead_lettered: int = 0
    lost: int = 0
    replies: int = 0
    oversized_errors: int = 0


class Encoded:
    """One event on its way to several subscribers: encoded once, when first needed."""

    __slots__ = ("_binary", "event", "ttl")

    def __init__(self, event: Event, ttl: int) -> None:
        self.event = event
        self.ttl = ttl
        self._binary: tuple[dict[str, str], bytes] | None = None

    def request(self, spec: DeliverySpec, extra: Mapping[str, str]) -> tuple[dict[str, str], bytes]:
        """Headers and body in the form that the delivery wants."""
        if spec.format == "json":
            headers, body = encode_structured(self.event)
            return {**headers, **extra}, body
        if self._binary is None:
            self._binary = encode_binary(self.event)
        return {**self._binary[0], **extra}, self._binary[1]


class Subscription:
    """Delivers events to the subscriber of one Trigger."""

    def __init__(
        self,
        trigger: TriggerSpec,
        delivery: DeliverySpec,
        url: str,
        *,
        poster: Poster,
        dead_letters: DeadLetters | None,
        reply: Callable[[Event, int], Awaitable[bool]],
        counters: Counters,
        on_delivery: OnDelivery | None,
        say: Callable[[str], None],
        concurrency: int,
        backlog: int,
        project_label: str = "",
    ) -> None:
        self.trigger = trigger
        self.delivery = delivery
        self.url = url
        self.matches = trigger.filter.predicate
        self.room = asyncio.Semaphore(backlog)
        self._poster = poster
        self._dead_letters = dead_letters
        self._reply = reply
        self._counters = counters
        self._on_delivery = on_delivery
        self._say_line = say
        self._turns = Turns(concurrency, uncounted=0)
        self._project_label = project_label
        self._headers = {"Prefer": "reply", "Kn-Namespace": trigger.namespace}
        self._said: set[str] = set()

    async def deliver(self, encoded: Encoded) -> None:
        """Try until it is delivered, refused or given up; never raises for what a subscriber does."""
        spec, event = self.delivery, encoded.event
        headers, body = encoded.request(spec, self._headers)
        party = party_of(event, self._project_label)
        for attempt in range(1, spec.retry + 2):
            started = time.perf_counter()
            async with self._turns.turn(party):
                try:
                    answer = await self._poster.post(self.url, headers, body, spec.timeout)
                except NoAnswer as error:
                    answer = Answer(NO_ANSWER, {}, b"")
                    self._say("no-answer", str(error))
            status, reply = self._judge(answer)
            if self._on_delivery is not None:
                self._on_delivery(self.trigger.name, event, status, attempt, time.perf_counter() - started)
            if is_success(status):
                self._said.discard("no-answer")
                self._counters.delivered += 1
                if reply is not None:
                    await self._take_reply(reply, encoded.ttl)
                return
            if not is_retried(status) or attempt > spec.retry:
                break
            self._counters.retried += 1
            await asyncio.sleep(delay(spec, attempt - 1, status, answer.headers.get("Retry-After")))
        await self._give_up(encoded, status, b"" if is_success(answer.status) else answer.body)

    def _judge(self, answer: Answer) -> tuple[int, Event | None]:
        """The status that counts, and the event that a 2xx carries."""
        status, headers, body = answer
        if not is_success(status):
            if len(body) > ERROR_BODY_LIMIT and self._dead_letters is not None:
                self._counters.oversized_errors += 1
                self._say(
                    "oversized",
                    f"DANGER: an error answer with a body of {len(body)} bytes. Beyond {ERROR_BODY_LIMIT} bytes, with a "
                    "dead-letter sink, it ends the dispatcher of a real cluster. Answer errors in a few words.",
                )
            return status, None
        is_event = "ce-specversion" in headers or headers.get("Content-Type", "").startswith("application/cloudevents")
        if not is_event:
            if not body:
                return status, None
            self._say("body", f"a {status} with a body that is no CloudEvent counts as {NOT_AN_EVENT} and is tried again")
            return NOT_AN_EVENT, None
        try:
            return status, parse_event(dict(headers), body)
        except BadEvent as error:
            self._say("reply", f"the reply is a broken CloudEvent ({error.reason}): the event counts as failed")
            return BROKEN_REPLY, None

    async def _take_reply(self, reply: Event, ttl: int) -> None:
        self._counters.replies += 1
        self._say("replies", "the subscriber answers with events, which enter the broker again: mind loops")
        if not await self._reply(reply, ttl):
            self._say("hops", "a reply was dropped: it went round too often; this is a loop")

    async def _give_up(self, encoded: Encoded, status: int, body: bytes) -> None:
        what = f"{encoded.event.type} {encoded.event.subject or encoded.event.id}"
        outcome = "got no answer" if status == NO_ANSWER else f"was refused with {status}"
        if self._dead_letters is None:
            self._counters.lost += 1
            self._say_line(f"{what} {outcome} and is lost: there is no dead-letter sink")
            return
        letter = dead_letter(encoded.event, self.url, status, body)
        problem = await self._dead_letters.take(letter, self.delivery, {f"ce-{TTL}": str(encoded.ttl)})
        if problem:
            self._counters.lost += 1
            self._say_line(f"{what} {outcome} and is lost: its dead letter failed: {problem}")
            return
        self._counters.dead_lettered += 1

    def _say(self, topic: str, line: str) -> None:
        """Say it once per topic."""
        if topic not in self._said:
            self._said.add(topic)
            self._say_line(line)
