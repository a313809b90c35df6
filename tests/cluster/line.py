"""The way between the sources and the broker, in a test's hands: events pass, are held back, or are lost."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from tenantry.api import Api
from tenantry.local.deployment import deployment_folder
from tenantry.local.knative import Knative
from tenantry.local.manifests import load
from tenantry.local.source import ApiServerSource
from tenantry.local.specs import SourceSpec
from tenantry.model.event import Event
from tenantry.testing.settling import Markers

ROUNDS = 30
Deliver = Callable[[list[Event]], Awaitable[None]]
Order = Callable[[list[Event]], list[Event]]


def _shuffled(seed: int) -> Order:
    return lambda events: random.Random(seed).sample(events, len(events))


ORDERS: dict[str, Order] = {
    "in order": lambda events: events,
    "reversed": lambda events: events[::-1],
    "every event twice": lambda events: [event for event in events for _ in range(2)],
    "twice, the second time reversed": lambda events: [*events, *events[::-1]],
    "shuffled 1": _shuffled(1),
    "shuffled 2": _shuffled(2),
}
"""Orders in which held events are delivered."""


def concerns(event: Event, run: str) -> bool:
    """Whether an event is about an object of a run: the run's text is part of all its names."""
    return run in event.extensions.get("name", "") or run in event.extensions.get("namespace", "")


class Line:
    """Real sources, as ``triggers/`` declares them, in front of a broker that has none of its own.

    Runs between ``async with`` and its end.  ``further`` are sources that a function would make.
    """

    def __init__(
        self,
        knative: Knative,
        admin: Api,
        functions: Sequence[str] = ("namespace-registration",),
        *further: SourceSpec,
    ) -> None:
        self.knative = knative
        self.recorded: list[Event] = []
        self.held: list[Event] = []
        self._holding = ""
        self._loses: Callable[[Event], bool] = lambda _: False
        manifests = load(deployment_folder("knative") / "base" / "broker.yaml", deployment_folder("triggers"))
        wanted = [spec for spec in manifests.sources if spec.name.startswith(tuple(f"{name}-" for name in functions))]
        wanted += further
        self.markers = Markers(admin, wanted)
        self._sources = [ApiServerSource(admin, spec, self._take) for spec in wanted]

    async def __aenter__(self) -> Line:
        for source in self._sources:
            await source.__aenter__()
            await source.synced()
        return self

    async def __aexit__(self, *error: object) -> None:
        for source in self._sources:
            await source.__aexit__(None, None, None)

    async def _take(self, event: Event) -> int:
        self.recorded.append(event)
        if self._holding and concerns(event, self._holding):
            self.held.append(event)
        elif not self._loses(event):
            status = await self.knative.broker.accept(event)
            self.markers.observe(event)
            return status
        return 202

    def of(self, run: str) -> list[Event]:
        """What was recorded of a run, in order."""
        return [event for event in self.recorded if concerns(event, run)]

    def lose(self, which: Callable[[Event], bool] = lambda _: False) -> None:
        """From now on events for which this holds are lost on the way; without it, none."""
        self._loses = which

    @contextmanager
    def losing(self, run: str, share: float, seed: int) -> Iterator[None]:
        """Within it a share of a run's events is lost, one at least; and after it too, until `lose` says otherwise."""
        chance = random.Random(seed)
        lost: list[Event] = []

        def loses(event: Event) -> bool:
            if concerns(event, run) and chance.random() < share:
                lost.append(event)
                return True
            return False

        self.lose(loses)
        yield
        assert lost

    def hold(self, run: str) -> None:
        """From now on the events of a run wait in `held`."""
        self._holding, self.held = run, []

    async def drain(self) -> None:
        """Wait until what the sources saw is delivered, or held, or lost."""
        for source in self._sources:
            await source.drain()
        await self.knative.broker.drain()

    async def settle(self) -> None:
        """Wait for rest; see `tenantry.testing.settling`."""
        await self.markers.settle(self.drain)

    async def release(self, deliver: Deliver) -> None:
        """Deliver what is held, and what comes of it, until nothing comes any more; then hold no longer."""
        for _ in range(ROUNDS):
            await self.markers.touch()
            await self.drain()
            batch, self.held = self.held, []
            if not batch:
                self.hold("")
                return
            await deliver(batch)
        raise AssertionError(f"events without end; the last ones: {[event.subject for event in batch]}")

    async def release_as(self, order: str, *, together: bool) -> None:
        """Deliver what is held in one of the `ORDERS`: all at once, or each when the one before is done."""
        deliver = self.at_once if together else self.one_by_one
        await self.release(lambda events: deliver(ORDERS[order](events)))

    async def one_by_one(self, events: Iterable[Event]) -> None:
        """Deliver each when the one before is done."""
        for event in events:
            assert await self.knative.broker.accept(event) == 202
            await self.knative.broker.drain()

    async def at_once(self, events: Iterable[Event]) -> None:
        """Deliver all together."""
        for event in events:
            assert await self.knative.broker.accept(event) == 202
        await self.knative.broker.drain()
