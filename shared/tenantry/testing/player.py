"""The event player: between the sources and the functions, each run's events go through a lane that can disturb them.

The sources are the real ones of `tenantry.local`, from the very YAML of a cluster; their sink is the `Player`.  It looks up
the run that an event is about and hands it to that run's `Lane`, whose brokers apply the Triggers' filters and delivery:
same retries, same retried codes, same dead letters, only with `HASTE` times shorter delays.  What a lane does to events is
its `Policy`.  Events of no run, or of one that is over, go straight on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from tenantry.local.broker import Broker
from tenantry.local.manifests import Manifests
from tenantry.local.sinks import Poster
from tenantry.local.specs import BrokerSpec, DeliverySpec, TriggerSpec
from tenantry.model.event import Event
from tenantry.testing.naming import Occurrences, event_identity, event_tag

HASTE = 10.0
"""How much faster than in a cluster deliveries are tried again."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """One try to deliver an event; status 0 means that there was no answer."""

    event: Event
    status: int
    attempt: int
    began: float
    ended: float
    trigger: str = ""


@dataclass(frozen=True, slots=True)
class Announced:
    """An event as the source announced it, with its target in the run; ``step`` 0 is the preparation."""

    target: str
    event: Event
    at: float
    disturbed: bool


class Policy:
    """What happens to the events of a run: this one delivers everything at once, as it comes."""

    def take(self, lane: Lane, announced: Announced) -> None:
        """Deal with one event."""
        lane.send(announced.event)

    def over(self, lane: Lane) -> None:
        """The disturbance ends: what is still held is delivered or given up."""


class Lane:
    """The events of one run, from the source to one or two replicas of the function."""

    def __init__(self, tag: str, brokers: Sequence[Broker], dead_letters: Path, deliveries: list[Delivery]) -> None:
        self.tag = tag
        self.brokers = brokers
        self.dead_letters = dead_letters
        self.deliveries = deliveries
        self.announced: list[Announced] = []
        self.policy: Policy = Policy()
        self.disturbed = False
        self.withheld: list[Event] = []
        self._occurrences = Occurrences()
        self._tasks: set[asyncio.Task[object]] = set()

    @property
    def idle(self) -> bool:
        """Whether nothing is being delivered."""
        return not self._tasks and not any(broker.counters.in_flight for broker in self.brokers)

    @property
    def lost(self) -> int:
        """Events that vanished without a dead letter: a bug of ours."""
        return sum(broker.counters.lost for broker in self.brokers)

    def take(self, event: Event) -> None:
        """Deal with an event as the policy says."""
        announced = Announced(self._occurrences.target(event_identity(event)), event, monotonic(), self.disturbed)
        self.announced.append(announced)
        self.policy.take(self, announced)

    def send(self, event: Event, *replicas: int) -> asyncio.Task[object]:
        """Deliver an event to replicas (default: the first), at once and in the background."""
        chosen = [self.brokers[replica] for replica in replicas or (0,)]
        task: asyncio.Task[object] = asyncio.create_task(_all(chosen, event))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def later(self, task: asyncio.Task[object]) -> None:
        """Count a task of a policy as work of this lane."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def disturb(self) -> None:
        """From now on events are numbered anew, and a policy may deal with them."""
        self._occurrences.clear()
        self.disturbed = True

    def calm(self) -> None:
        """The disturbance is over."""
        self.policy.over(self)
        self.policy = Policy()

    def redirect(self, urls: Mapping[str, str], replica: int = 0) -> None:
        """Deliver to other processes, by Service, from the next try on: those before are gone."""
        for subscription in self.brokers[replica]._subscriptions:
            subscription.url = urls[_subscriber(subscription.trigger)]


async def _all(brokers: Sequence[Broker], event: Event) -> None:
    for broker in brokers:
        await broker.accept(event)
    await asyncio.gather(*(broker.drain() for broker in brokers))


class Player:
    """Sorts events into lanes.  `accept` is the sink of the sources."""

    def __init__(self, manifests: Manifests, folder: Path, poster: Poster) -> None:
        self.lanes: dict[str, Lane] = {}
        self.rest: Lane | None = None
        self.only = ""
        """The tag of the only run that there is, if events of no run are its own."""
        self._spec: BrokerSpec = manifests.brokers[0]
        self._triggers = [hasty(trigger) for trigger in manifests.triggers]
        self._folder = folder
        self._poster = poster
        self._stacks: dict[str, AsyncExitStack] = {}

    async def accept(self, event: Event) -> int:
        """Take an event from a source."""
        lane = self.lanes.get(event_tag(event) or self.only) or self.rest
        if lane is not None:
            lane.take(event)
        return 202

    async def open(self, tag: str, replicas: Sequence[Mapping[str, str]]) -> Lane:
        """A lane for a run whose events go to these replicas, URLs by Service; an empty tag opens the one for the rest."""
        path = self._folder / f"dead-letters-{tag or 'rest'}.jsonl"
        deliveries: list[Delivery] = []
        stack = self._stacks[tag] = AsyncExitStack()
        brokers = [await stack.enter_async_context(self._broker(urls, path, deliveries)) for urls in replicas]
        lane = Lane(tag, brokers, path, deliveries)
        if tag:
            self.lanes[tag] = lane
        else:
            self.rest = lane
        return lane

    async def close(self, tag: str) -> None:
        """End a lane; what is in flight is given up."""
        self.lanes.pop(tag, None)
        stack = self._stacks.pop(tag, None)
        if stack is not None:
            await stack.aclose()

    async def close_all(self) -> None:
        """End all lanes."""
        self.rest = None
        for tag in list(self._stacks):
            await self.close(tag)

    def _broker(self, urls: Mapping[str, str], path: Path, deliveries: list[Delivery]) -> Broker:
        def delivered(trigger: str, event: Event, status: int, attempt: int, seconds: float) -> None:
            now = monotonic()
            deliveries.append(Delivery(event, status, attempt, now - seconds, now, trigger))

        return Broker(
            self._spec,
            self._triggers,
            addresses=_Addresses(urls, path.absolute().as_uri()),
            poster=self._poster,
            on_delivery=delivered,
            say=lambda _: None,
        )


class _Addresses(dict[str, str]):
    """The Services of the function are at URLs; every dead-letter sink is a file."""

    def __init__(self, urls: Mapping[str, str], dead_letters: str) -> None:
        super().__init__({f"Service/{service}": url for service, url in urls.items()})
        self._dead_letters = dead_letters

    def get(self, name: str, default: object = None) -> str:
        del default
        return super().get(name) or self._dead_letters


def hasty(trigger: TriggerSpec) -> TriggerSpec:
    """A Trigger whose retries come `HASTE` times sooner; nothing else is different."""
    delivery = trigger.delivery
    if delivery is None or delivery.backoff_delay is None:
        return trigger
    sooner: DeliverySpec = delivery.model_copy(update={"backoff_delay": delivery.backoff_delay / HASTE})
    return trigger.model_copy(update={"delivery": sooner})


def _subscriber(trigger: TriggerSpec) -> str:
    return trigger.subscriber.ref.name if trigger.subscriber.ref is not None else ""


Choose = Callable[[Announced], bool]


def at(target: str) -> Choose:
    """Choose one event of the disturbed part by its target."""
    return lambda announced: announced.target == target


class _OnOne(Policy):
    def __init__(self, chosen: Choose) -> None:
        self.chosen = chosen
        self.met = False

    def take(self, lane: Lane, announced: Announced) -> None:
        if self.chosen(announced):
            self.met = True
            self.disturb(lane, announced.event)
        else:
            self.other(lane, announced.event)

    def disturb(self, lane: Lane, event: Event) -> None:
        raise NotImplementedError

    def other(self, lane: Lane, event: Event) -> None:
        lane.send(event)


class Drop(_OnOne):
    """An event is lost."""

    def disturb(self, lane: Lane, event: Event) -> None:
        """Lose it."""
        lane.withheld.append(event)


class HoldUntilOverwritten(_OnOne):
    """An event is held until a later one about the same object makes it pointless: that state is never seen."""

    def __init__(self, chosen: Choose) -> None:
        super().__init__(chosen)
        self._held: Event | None = None

    def disturb(self, lane: Lane, event: Event) -> None:
        """Hold it."""
        del lane
        self._held = event

    def other(self, lane: Lane, event: Event) -> None:
        """Deliver others; one about the same object takes the place of what is held."""
        if self._held is not None and _about(self._held) == _about(event):
            lane.withheld.append(self._held)
            self._held = None
        lane.send(event)

    def over(self, lane: Lane) -> None:
        """Nothing overwrote it: it is lost."""
        if self._held is not None:
            lane.withheld.append(self._held)


class Delay(_OnOne):
    """An event comes long after all others, when everything else is done."""

    def __init__(self, chosen: Choose) -> None:
        super().__init__(chosen)
        self._held: list[Event] = []

    def disturb(self, lane: Lane, event: Event) -> None:
        """Hold it."""
        del lane
        self._held.append(event)

    def over(self, lane: Lane) -> None:
        """Deliver it, at last."""
        for event in self._held:
            lane.send(event)


class Swap(Delay):
    """An event is delivered after the next one has been handled."""

    def other(self, lane: Lane, event: Event) -> None:
        """Deliver, and after that what is held."""
        sent = lane.send(event)
        if self._held:
            held, self._held = self._held, []

            async def after() -> None:
                await asyncio.wait([sent])
                for each in held:
                    await lane.send(each)

            lane.later(asyncio.create_task(after()))


class Double(_OnOne):
    """An event is delivered twice at the same time, to one process or to two replicas."""

    def __init__(self, chosen: Choose, *replicas: int) -> None:
        super().__init__(chosen)
        self._replicas = replicas or (0, 0)

    def disturb(self, lane: Lane, event: Event) -> None:
        """Deliver it twice."""
        for replica in self._replicas:
            lane.send(event, replica)


def _about(event: Event) -> tuple[str, str, str]:
    attributes: Mapping[str, str] = event.extensions
    return attributes.get("kind", ""), attributes.get("namespace", ""), attributes.get("name", "")
