"""Units that read and write nothing, events for them, and what happens in their runs: for tests of the engine's order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

from owning import owner

from tenantry.api import Api
from tenantry.api.errors import TransientError
from tenantry.api.turns import Turns
from tenantry.engine import Engine
from tenantry.engine.reader import Reader
from tenantry.engine.snapshot import Prefetch, Snapshot
from tenantry.engine.unit import EVERY, Handler, Owner, Stages
from tenantry.model.event import PING_TYPE, Event
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, Key, Kind, Object, object_of
from tenantry.model.plan import NOTHING, Apply, Plan

FUNCTION = "test"
OBJECT = object_of(CONFIG_MAP, {"name": "c", "namespace": "n"})
WANTED = Plan(((Apply(CONFIG_MAP, OBJECT, None),),))
AWAY = TransientError("away")
Act = Callable[[str, Reader], Awaitable[None]]
"""What happens when an owner is observed live."""
MANY = tuple(f"o/{number}" for number in range(60))


class Stub:
    """All that the engine itself asks of an API client."""

    field_manager = "tenantry-test"
    turns = Turns(16)
    doubts = 0
    """How often it was to ask again for what is missing."""

    def doubt_missing(self) -> None:
        """Nothing is missing."""
        self.doubts += 1

    def has_large(self, kind: Kind) -> bool:
        """Its objects are small."""
        del kind
        return False


@dataclass
class Still:
    """A unit that writes nothing: owners by key, and what happens when one is observed live."""

    stages: Sequence[Sequence[Any]] = (("o/1",),)
    act: Act | None = None
    due: frozenset[str] = frozenset()
    name: str = "still"
    kinds: frozenset[Kind] = frozenset({NAMESPACE})
    states: ClassVar[Mapping[Kind, Any]] = {}
    readable: ClassVar[frozenset[Kind]] = frozenset()
    ours: ClassVar[frozenset[Kind]] = frozenset()
    leading: ClassVar[tuple[Owner, ...]] = ()
    pause: float = 0.0
    party: str = ""
    log: list[str] = field(default_factory=list)
    endings: list[tuple[str, bool]] = field(default_factory=list)
    resting: list[str] = field(default_factory=list)
    causes: list[frozenset[Key]] = field(default_factory=list)
    known: list[Mapping[Key, Object | None]] = field(default_factory=list)
    active: int = 0
    most: int = 0

    @property
    def handlers(self) -> Mapping[str, Handler[Any]]:
        made = Handler(
            observe=self.observe,
            plan=self.plan,
            pause_s=self.pause,
            party=lambda _: self.party,
            ended=self.ended,
            at_rest=self.at_rest,
        )
        return dict.fromkeys("op", made)

    def accepts(self, owner: Owner) -> bool:
        return owner.type == "o"

    def hinted(self, key: Key, hint: Mapping[str, str]) -> Owner | None:
        return None

    async def owners(self, key: Key, hint: Mapping[str, str], reader: Reader) -> Stages:
        """Return the stages; the object that woke us counts as read."""
        reader.known[key] = OBJECT
        return EVERY if self.stages is EVERY else [[owner(text) for text in stage] for stage in self.stages]

    async def observe(self, of: Owner, reader: Reader) -> tuple[str, bool]:
        """Note the run; a snapshot only says who is due."""
        owner = str(of)
        if isinstance(reader, Snapshot):
            return owner, owner in self.due
        self.log.append(f"+{owner}")
        self.causes.append(reader.causes)
        self.known.append(dict(reader.known))
        self.active += 1
        self.most = max(self.most, self.active)
        try:
            if self.act is not None:
                await self.act(owner, reader)
        finally:
            self.active -= 1
            self.log.append(f"-{owner}")
        return owner, False

    def plan(self, observed: tuple[str, bool]) -> Plan:
        """Return a plan that changes something only for what a snapshot shows as due."""
        return WANTED if observed[1] else NOTHING

    def ended(self, owner: Owner, succeeded: bool) -> None:
        self.endings.append((str(owner), succeeded))

    def at_rest(self, owner: Owner, observed: tuple[str, bool]) -> None:
        assert observed == (str(owner), False)
        self.resting.append(str(owner))

    def prefetch(self) -> Sequence[Prefetch]:
        return []

    async def sweep(self, reader: Reader) -> Sequence[Owner]:
        return [owner(text) for stage in self.stages for text in stage]

    async def concerned(self, reader: Reader) -> Sequence[Owner]:
        return await self.sweep(reader)


@dataclass
class Deaf(Still):
    """A unit that learns neither whom an event concerns nor whom there is."""

    error: Exception = AWAY

    async def owners(self, key: Key, hint: Mapping[str, str], reader: Reader) -> Stages:
        if self.stages is EVERY:
            return EVERY
        raise self.error

    async def sweep(self, reader: Reader) -> Sequence[Owner]:
        raise self.error


class Sent(list[Event]):
    """A broker that takes everything."""

    async def __call__(self, event: Event) -> None:
        self.append(event)


def until(go: asyncio.Event) -> Act:
    """Every run waits until told to go on."""

    async def act(owner: str, reader: Reader) -> None:
        await go.wait()

    return act


def failing(errors: Mapping[str, Exception]) -> Act:
    """The runs of these owners fail."""

    async def act(owner: str, reader: Reader) -> None:
        await asyncio.sleep(0)
        if owner in errors:
            raise errors[owner]

    return act


def make(*units: Still, api: Stub | None = None, **options: Any) -> Engine:
    """An engine over these units, on an API client that can do nothing unless one is given."""
    return Engine(FUNCTION, cast(Api, api or Stub()), units, **options)


def look(name: str = "a1", kind: Kind = NAMESPACE) -> Event:
    """An event that tells of an object."""
    data = object_of(kind, {"name": name})
    return Event(id="1", source="/s", type="dev.knative.apiserver.resource.update", data=data)


def sweep() -> Event:
    """An event that asks for a sweep."""
    return Event(id="1", source="/s", type=PING_TYPE)


def key(name: str) -> Key:
    """The key of a namespace."""
    return Key("v1", "Namespace", "", name)


async def settle() -> None:
    """Let everything that can go on without time passing go on."""
    for _ in range(30):
        await asyncio.sleep(0)
