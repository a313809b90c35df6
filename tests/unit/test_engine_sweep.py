"""A sweep, and an event that concerns everybody, plan from a snapshot and run whom it shows as due."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pytest
from engine_units import AWAY, MANY, Act, Deaf, Sent, Still, Stub, failing, key, look, make, settle, sweep, until
from owning import owner

from tenantry.api.errors import TransientError
from tenantry.engine import Verdict, engine
from tenantry.engine.due import LEADS
from tenantry.engine.reader import Reader
from tenantry.engine.snapshot import Snapshot
from tenantry.engine.unit import EVERY, Owner, Stages
from tenantry.model import limits
from tenantry.model.kinds import Key, Kind, Object


async def test_a_sweep_runs_only_who_is_due() -> None:
    """Owners that a snapshot shows to be as declared are not run; the others are, live."""
    unit = Still((MANY, ("p/1",)), due=frozenset({"o/3", "p/1"}))
    other = Still((("o/9",),), name="other")
    assert await make(unit, other).handle(sweep()) == Verdict(204, "nothing to do")
    assert sorted(unit.log) == ["+o/3", "+p/1", "-o/3", "-p/1"]
    assert other.log == []
    assert (other.resting, set(unit.resting) & {"o/3", "p/1"}) == (["o/9"], set())
    assert unit.known == [{}, {}]


async def test_a_sweep_asks_again_for_kinds_that_are_missing() -> None:
    """Once for all units: what a server that was starting did not know hides nothing from it."""
    api = Stub()
    function = make(Still(), Still(name="other"), api=api)
    for number in (1, 2):
        assert (await function.sweep()).status == 204
        assert api.doubts == number


async def test_one_failure_stops_no_other_owner_of_a_sweep() -> None:
    """Every due owner is run, a bounded number at a time, and the worst verdict is the sweep's."""
    unit = Still((MANY,), failing({"o/0": AWAY, "o/1": ZeroDivisionError()}), due=frozenset(MANY))
    assert (await make(unit).sweep()).status == 500
    assert len(unit.log) == 2 * len(MANY)
    assert unit.most == engine.PARALLEL


async def test_a_bug_with_one_owner_does_not_end_the_sweep_of_all() -> None:
    """Whatever looking at one owner raises, the others are run, and the answer tells of the bug."""

    class Broken(Still):
        async def observe(self, of: Owner, reader: Reader) -> tuple[str, bool]:
            if str(of) == "o/1":
                raise KeyError("a bug")
            return await super().observe(of, reader)

    unit = Broken((("o/1", "o/2"),), due=frozenset({"o/2"}))
    assert (await make(unit).sweep()).status == 500
    assert unit.log == ["+o/2", "-o/2"]


@pytest.mark.parametrize(("error", "status"), [(TransientError("away"), 503), (ZeroDivisionError(), 500)])
async def test_one_unit_that_cannot_be_swept_stops_no_other(error: Exception, status: int) -> None:
    """The sweep is over when all units are, and not before: nothing of it goes on behind its answer."""
    go = asyncio.Event()
    other = Still(act=until(go), name="other", due=frozenset({"o/1"}))
    task = asyncio.create_task(make(Deaf(error=error), other).handle(sweep()))
    await settle()
    assert other.log == ["+o/1"]
    assert not task.done()
    go.set()
    assert (await task).status == status
    assert other.log == ["+o/1", "-o/1"]


async def test_a_sweep_looks_again_at_who_wrote() -> None:
    """After writes lists are looked at once more, and whoever is due is run, as they may be what he waited for; not for ever."""

    class Busy(Still):
        """Two owners are due: one is right after its run, the other is never."""

        async def observe(self, of: Owner, reader: Reader) -> tuple[str, bool]:
            owner = str(of)
            if isinstance(reader, Snapshot):
                return owner, owner == "o/2" or (owner == "o/1" and "-o/1" not in self.log)
            await super().observe(of, reader)
            return owner, owner == "o/1" and self.log.count("+o/1") == 1

    class Writing(Stub):
        async def create(self, kind: Kind, body: Object, *, manager: str = "") -> Object:
            return body

        async def apply(self, kind: Kind, body: Object, subresource: str = "", manager: str = "") -> Object:
            return body

    unit = Busy((("o/1", "o/2", "o/3"),))
    verdict = await make(unit, api=Writing()).sweep()
    assert (verdict.status, verdict.writes) == (204, 1)
    assert sorted(unit.log) == ["+o/1", "+o/2", "+o/2", "-o/1", "-o/2", "-o/2"]


class Led(Still):
    """A unit one of whose owners leads; what a snapshot is asked for is noted, too."""

    leading: ClassVar[tuple[Owner, ...]] = (owner("p/1"),)

    async def observe(self, of: Owner, reader: Reader) -> tuple[str, bool]:
        if isinstance(reader, Snapshot):
            self.log.append(f"?{of}")
        return await super().observe(of, reader)


@pytest.mark.parametrize(("act", "status"), [(None, 204), (failing({"p/1": AWAY}), 503)])
async def test_who_leads_runs_before_anybody_else_is_planned(act: Act | None, status: int) -> None:
    """Some times in a sweep, where it is due again, and the others are looked at after it whatever became of it."""
    unit = Led((("p/1", "o/1", "o/2"),), act, due=frozenset({"p/1", "o/1"}))
    assert (await make(unit).sweep()).status == status
    times = LEADS if act is None else 1
    alone = 3 * times
    assert unit.log[:alone] == ["?p/1", "+p/1", "-p/1"] * times
    assert sorted(unit.log[alone : alone + 3]) == ["?o/1", "?o/2", "?p/1"]
    assert unit.log.count("+o/1") == 1
    assert unit.log.count("+p/1") == (LEADS + 1 if act is None else 1)


async def test_who_leads_and_is_not_due_is_not_run() -> None:
    """Then a sweep takes one look, as without it."""
    unit = Led((("p/1", "o/1", "o/2"),), due=frozenset({"o/1"}))
    assert await make(unit).sweep() == Verdict(204, "nothing to do")
    assert unit.log == ["?p/1", "?o/1", "?o/2", "+o/1", "-o/1"]


async def test_a_sweep_lets_events_through() -> None:
    """While thousands of owners are planned from a snapshot, other work gets its turn."""
    turns = [0]

    async def other() -> None:
        while True:
            turns[0] += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    await make(Still((tuple(f"o/{number}" for number in range(1000)),))).sweep()
    task.cancel()
    assert turns[0] >= 10


class Slow(Still):
    """A unit whose owners are known late."""

    def __init__(self) -> None:
        super().__init__(due=frozenset({"o/1"}))
        self.go = asyncio.Event()
        self.begun = 0

    async def sweep(self, reader: Reader) -> Sequence[Owner]:
        self.begun += 1
        await self.go.wait()
        return await super().sweep(reader)


async def test_a_sweep_goes_on_after_the_deadline_of_who_asked() -> None:
    """He is told to ask again, and nothing is begun anew meanwhile."""
    unit = Slow()
    made = make(unit, deadline_s=0.01)
    for _ in range(3):
        assert await made.handle(sweep()) == Verdict(503, "deadline exceeded")
    assert unit.begun == 1
    unit.go.set()
    await made.drain()
    assert unit.log == ["+o/1", "-o/1"] * 2
    assert (await made.handle(sweep())).status == 204


async def test_a_sweep_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next one can begin."""
    monkeypatch.setattr(engine, "LONGEST_SWEEP_S", 0.01)
    unit = Slow()
    made = make(unit)
    assert await made.handle(sweep()) == Verdict(503, "deadline exceeded")
    await made.drain()
    unit.go.set()
    assert (await made.handle(sweep())).status == 204


async def test_a_sweep_that_joins_an_event_looks_at_everything() -> None:
    """An owner that waits for its next run because of an event is looked at as a whole when a sweep wants it, too."""
    go = asyncio.Event()
    unit = Still(act=until(go), due=frozenset({"o/1"}))
    made = make(unit)
    tasks = [asyncio.create_task(made.handle(look("a1")))]
    await settle()
    tasks.append(asyncio.create_task(made.handle(look("a2"))))
    await settle()
    tasks.append(asyncio.create_task(made.handle(sweep())))
    await settle()
    go.set()
    await asyncio.gather(*tasks)
    assert unit.causes == [frozenset({key("a1")}), frozenset()]


@dataclass
class Wide(Still):
    """A unit of which some key concerns every owner."""

    sweeps: int = 0
    all_owners: tuple[str, ...] = MANY

    async def owners(self, key: Key, hint: Mapping[str, str], reader: Reader) -> Stages:
        """``all`` concerns everybody, else the owner of that name."""
        return EVERY if key.name == "all" else ((Owner("o", key.name),),)

    async def sweep(self, reader: Reader) -> Sequence[Owner]:
        self.sweeps += 1
        return [owner(text) for text in self.all_owners]


async def test_sweeps_are_joined() -> None:
    """Who asks for a sweep during one shares the next with everybody else who does."""
    go = asyncio.Event()

    class Slow(Wide):
        async def sweep(self, reader: Reader) -> Sequence[Owner]:
            found = await super().sweep(reader)
            await go.wait()
            return found

    unit = Slow()
    made = make(unit)
    first = asyncio.create_task(made.handle(sweep()))
    await settle()
    rest = [asyncio.create_task(made.handle(sweep())) for _ in range(3)]
    await settle()
    assert unit.sweeps == 1
    go.set()
    assert {verdict.status for verdict in await asyncio.gather(first, *rest)} == {204}
    assert unit.sweeps == 2


async def test_a_key_that_concerns_everybody_is_planned_from_a_snapshot() -> None:
    """Only the owners that are due are run, in place even with a broker."""
    sent = Sent()
    unit = Wide(due=frozenset({"o/3", "o/5"}))
    assert (await make(unit, emit=sent).handle(look("all"))).status == 204
    assert sorted(unit.log) == ["+o/3", "+o/5", "-o/3", "-o/5"]
    assert sent == []


async def test_a_sweep_that_events_ask_for_looks_at_whom_they_concern() -> None:
    """A unit may know that of all only some are concerned; a sweep that the schedule asks for looks at all."""

    class Knowing(Wide):
        async def concerned(self, reader: Reader) -> Sequence[Owner]:
            return [owner("o/5")]

    unit = Knowing(due=frozenset({"o/3", "o/5"}))
    made = make(unit)
    assert (await made.handle(look("all"))).status == 204
    assert sorted(unit.log) == ["+o/5", "-o/5"]
    assert (await made.handle(sweep())).status == 204
    assert sorted(unit.log) == ["+o/3", "+o/5", "+o/5", "-o/3", "-o/5", "-o/5"]


async def test_keys_that_concern_everybody_are_joined() -> None:
    """What comes during such a run shares one further run."""
    go = asyncio.Event()
    unit = Wide(act=until(go), due=frozenset({"o/3"}))
    made = make(unit)
    tasks = [asyncio.create_task(made.handle(look("all")))]
    await settle()
    assert unit.sweeps == 1
    tasks += [asyncio.create_task(made.handle(look("all"))) for _ in range(4)]
    await settle()
    go.set()
    assert {(await task).status for task in tasks} == {204}
    assert unit.sweeps == 2


async def test_who_leads_does_not_wait_for_the_sweep_that_is_under_way() -> None:
    """An event that asks for a sweep during one lets it run at once; without one it is as due in the sweep as others."""
    go = asyncio.Event()

    class WithLeader(Wide):
        leading: ClassVar[tuple[Owner, ...]] = (owner("p/1"),)

    unit = WithLeader(act=until(go), due=frozenset({"o/3"}))
    made = make(unit)
    tasks = [asyncio.create_task(made.handle(look("all")))]
    await settle()
    assert unit.log == ["+o/3"]
    tasks += [asyncio.create_task(made.handle(look("all"))) for _ in range(4)]
    await settle()
    assert unit.log == ["+o/3", "+p/1"]
    go.set()
    assert {(await task).status for task in tasks} == {204}
    assert (unit.log.count("+p/1"), unit.sweeps) == (1, 2)


async def test_who_leads_needs_no_place_and_a_sweep_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that hold all places may wait for it; the lists of the sweep begin behind it."""
    monkeypatch.setattr(limits, "RUNS_AT_ONCE", 2)
    go, led = asyncio.Event(), asyncio.Event()

    async def act(name: str, reader: Reader) -> None:
        await (led if name == "p/1" else go).wait()

    class WithLeader(Wide):
        leading: ClassVar[tuple[Owner, ...]] = (owner("p/1"),)

    unit = WithLeader(act=act, due=frozenset({"o/3", "o/4"}))
    made = make(unit)
    tasks = [asyncio.create_task(made.handle(look("all")))]
    await settle()
    assert sorted(unit.log) == ["+o/3", "+o/4"]
    tasks += [asyncio.create_task(made.handle(look("all")))]
    await settle()
    assert sorted(unit.log) == ["+o/3", "+o/4", "+p/1"]
    unit.due = frozenset()
    tasks += [asyncio.create_task(made.sweep())]
    await settle()
    assert unit.sweeps == 1
    led.set()
    await settle()
    assert unit.sweeps == 2
    go.set()
    assert {(await task).status for task in tasks} == {204}


async def test_an_owner_that_runs_meanwhile_is_looked_at_again() -> None:
    """A run that is under way may write what it read before the snapshot: its owner counts as due."""
    go = asyncio.Event()
    unit = Wide(act=until(go))
    made = make(unit)
    running = asyncio.create_task(made.handle(look("7")))
    await settle()
    everybody = asyncio.create_task(made.handle(look("all")))
    await settle()
    go.set()
    assert {(await running).status, (await everybody).status} == {204}
    assert unit.log == ["+o/7", "-o/7", "+o/7", "-o/7"]
