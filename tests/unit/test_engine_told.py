"""What an event with the whole object tells: nothing is read for what the last run of its owner knew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine_units import Still, Stub, look, make
from owning import owner

from tenantry.engine.reader import Reader
from tenantry.engine.unit import Handler, Owner, Stages
from tenantry.model.event import Event
from tenantry.model.kinds import NAMESPACE, Key, Kind, Object

UPDATE = "dev.knative.apiserver.resource.update"


def namespace(version: str) -> Object:
    metadata = {"name": "a1", "uid": "u", "resourceVersion": version}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def event(version: str, verb: str = "update") -> Event:
    return Event(id="1", source="/s", type=f"dev.knative.apiserver.resource.{verb}", data=namespace(version))


@dataclass
class Versions(Stub):
    """An API server with one namespace, which counts what is asked."""

    now: str = "1"
    asked: list[str] = field(default_factory=list)

    async def get(self, kind: Kind, name: str, namespace_: str = "", **_: Any) -> Object:
        self.asked.append(name)
        return namespace(self.now)


@dataclass
class Reads(Still):
    """A unit whose runs read the namespace, and whose owners are found without a read."""

    readable = frozenset({NAMESPACE})
    alone: bool = False

    @property
    def handlers(self) -> Mapping[str, Handler[Any]]:
        return dict.fromkeys("op", Handler(observe=self.observe, plan=self.plan, rests_on_reads=True))

    async def owners(self, key: Key, hint: Mapping[str, str], reader: Reader) -> Stages:
        if self.alone and reader.tells_nothing_new(owner("o/1")):
            return []
        return [[owner("o/1")]]

    async def observe(self, of: Owner, reader: Reader) -> tuple[str, bool]:
        await reader.get(NAMESPACE, "a1")
        return await super().observe(of, reader)


async def test_an_event_of_a_known_version_costs_no_request() -> None:
    """And no run; another version has one, and so has an event that has no version."""
    api, unit = Versions(), Reads()
    made = make(unit, api=api)
    assert (await made.handle(event("1"))).status == 204
    assert (unit.log, api.asked) == (["+o/1", "-o/1"], ["a1"])
    assert (await made.handle(event("1"))).status == 204
    assert (len(unit.log), api.asked) == (2, ["a1"])
    api.now = "2"
    await made.handle(event("2"))
    assert len(unit.log) == 4
    await made.handle(event("1"))  # an older event, late: one read says that nothing is new
    assert (len(unit.log), api.asked) == (4, ["a1"] * 3)
    await made.handle(event("2", "delete"))
    assert (len(unit.log), len(api.asked)) == (4, 4)


async def test_a_unit_may_ask_before_it_looks_for_owners() -> None:
    """Where what its last run knew concerns nobody else."""
    api, unit = Versions(), Reads(alone=True)
    made = make(unit, api=api)
    await made.handle(event("1"))
    await made.handle(event("1"))
    assert (len(unit.log), api.asked) == (2, ["a1"])
    api.now = "2"
    await made.handle(event("2"))
    assert len(unit.log) == 4


@dataclass
class Hinted(Reads):
    """A unit that knows from the event's labels whom it is about, and to which else the key belongs from a look."""

    looks: list[str] = field(default_factory=list)
    echoes: list[bool] = field(default_factory=list)

    def hinted(self, key: Key, hint: Mapping[str, str]) -> Owner | None:
        return owner("o/1")

    async def owners(self, key: Key, hint: Mapping[str, str], reader: Reader) -> Stages:
        self.looks.append(key.name)
        self.echoes.append(reader.tells_echo(owner("o/1")))
        return [[owner("o/2")]]


async def test_whom_an_event_hints_at_is_run_first() -> None:
    """Nobody else is looked for where that run knew the object as the event has it; an end is no such event."""
    api, unit = Versions(), Hinted()
    made = make(unit, api=api)
    for _ in range(2):
        assert (await made.handle(event("1"))).status == 204
    assert (unit.log, unit.looks, api.asked) == (["+o/1", "-o/1"], [], ["a1"])
    api.now = "3"
    assert (await made.handle(event("2"))).status == 204  # which the run did not see
    assert unit.log[2:] == ["+o/1", "-o/1", "+o/2", "-o/2"]
    assert unit.looks == ["a1"]
    assert (await made.handle(event("3", "delete"))).status == 204
    assert (unit.log[6:], unit.looks) == ([], ["a1"] * 2)  # it is there: o/2, who was asked, has seen it so


async def test_who_is_hinted_at_and_fails_keeps_no_other_back() -> None:
    """A run that failed knows nothing, and others are looked for."""
    unit = Hinted()

    async def act(name: str, reader: Reader) -> None:
        if name == "o/1":
            raise ValueError("a bug")

    unit.act = act
    assert (await make(unit, api=Versions()).handle(event("1"))).status == 204
    assert unit.log == ["+o/1", "-o/1", "+o/2", "-o/2"]


async def test_an_event_without_a_state_hints_at_nobody() -> None:
    """It may be of any time, so that no run can be said to have known it."""
    unit = Hinted()
    assert (await make(unit, api=Versions()).handle(look("a1"))).status == 204
    assert unit.log == ["+o/2", "-o/2"]


async def test_a_unit_hears_that_an_event_is_the_echo_of_its_own_write() -> None:
    """Of what its last run wrote, in that version, whether it ended well or not."""
    unit = Hinted()
    made = make(unit, api=Versions())
    key = Key("v1", "Namespace", "", "a1")
    made._last.begins("still:o/1")
    made._last.wrote("still:o/1", {key: "7"})
    unit.hinted = lambda *_: None  # type: ignore[method-assign]
    for version in ("7", "8"):
        await made.handle(event(version))
    assert unit.echoes == [True, False]


async def test_a_run_that_failed_knows_nothing() -> None:
    """The same event, sent again, has a run."""
    api = Versions()
    unit = Reads()

    async def act(_: str, reader: Reader) -> None:
        if len(unit.log) < 3:
            raise ValueError("a bug")

    unit.act = act
    made = make(unit, api=api)
    assert (await made.handle(event("1"))).status == 500
    assert (await made.handle(event("1"))).status == 204
    assert len(unit.log) == 4


async def test_a_process_that_has_just_started_knows_nothing() -> None:
    api, unit = Versions(), Reads()
    await make(unit, api=api).handle(event("1"))
    await make(unit, api=api).handle(event("1"))
    assert len(unit.log) == 4
