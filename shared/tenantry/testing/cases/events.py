"""Between the sources and the broker: events of a step are lost there, or sent twice, as its test asks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from tenantry.local.sinks import Sink
from tenantry.model.event import Event
from tenantry.testing.cases.form import Concerned, Events


class Way:
    """The way of events, for `tenantry.local.knative.Knative`: ``between=way.through``."""

    def __init__(self) -> None:
        self.met: Counter[Concerned] = Counter()
        """How many events were disturbed, by what the test says of them."""
        self._events: Events | None = None

    @contextmanager
    def disturbed(self, events: Events | None) -> Iterator[None]:
        """Lose and double these for a while."""
        self._events = events
        self.met.clear()
        try:
            yield
        finally:
            self._events = None

    def through(self, sink: Sink) -> Sink:
        """A sink that stands before another one."""

        async def take(event: Event) -> int:
            if self._events is not None:
                if (lost := _concerning(event, self._events.lose)) is not None:
                    self.met[lost] += 1
                    return 202
                if (doubled := _concerning(event, self._events.double)) is not None:
                    self.met[doubled] += 1
                    await sink(event)
            return await sink(event)

        return take


def _concerning(event: Event, concerned: list[Concerned]) -> Concerned | None:
    told = event.extensions
    for each in concerned:
        if (
            told.get("kind") == each.kind
            and each.name in ("", told.get("name"))
            and each.namespace in ("", told.get("namespace"))
        ):
            return each
    return None
