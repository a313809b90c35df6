"""What an event with the whole object tells: nothing is read for what the last run of its owner knew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine_units import Still, Stub, make
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
