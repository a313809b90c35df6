"""An event runs whom it concerns: once for many, in stages, in every unit of its kind, and with what was read for it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from engine_units import AWAY, FUNCTION, OBJECT, WANTED, Still, Stub, failing, key, look, make, settle, until

from tenantry.api.errors import Forbidden
from tenantry.engine import Verdict, engine
from tenantry.engine.reader import Reader
from tenantry.engine.request import MalformedRequest
from tenantry.engine.unit import Handler, OutdatedError, Owner, Stages
from tenantry.model import limits
from tenantry.model.event import Event
from tenantry.model.kinds import CONFIG_MAP, JOB, Key, Kind, Object
from tenantry.model.plan import NOTHING, Plan


async def test_nothing_to_write_is_nothing_to_do() -> None:
    """A run that changes nothing is 204; the owner was observed once, with the cause and what was read for it."""
    unit = Still()
    assert await make(unit).handle(look()) == Verdict(204, "nothing to do")
    assert (unit.log, unit.causes, unit.known) == (["+o/1", "-o/1"], [frozenset({key("a1")})], [{key("a1"): OBJECT}])


@pytest.mark.parametrize(
    "event",
    [look(kind=CONFIG_MAP), Event(id="1", source="/s", type="other"), look(kind=Kind("other.io/v1", "Namespace", "namespaces"))],
)
async def test_what_is_not_ours(event: Event) -> None:
    """Another kind, another group and another type are 204, and nobody looks."""
    unit = Still()
    assert await make(unit).handle(event) == Verdict(204, "nothing to do")
    assert unit.log == []


async def test_a_kind_is_ours_in_every_version() -> None:
    """The version in which a source serves a kind does not matter."""
    unit = Still()
    await make(unit).handle(look(kind=Kind("v2", "Namespace", "namespaces")))
    assert unit.log == ["+o/1", "-o/1"]


async def test_an_event_that_names_nothing_is_told_from_a_bug() -> None:
    """The entry answers 400 for it, so it is raised; what follows is handled."""
    made = make(Still())
    with pytest.raises(MalformedRequest):
        await made.handle(Event(id="1", source="/s", type="dev.knative.apiserver.resource.add"))
    assert made._pending == 0


@pytest.mark.parametrize(
    ("times", "verdict"), [(2, Verdict(204, "nothing to do")), (9, Verdict(409, "the object changes too fast"))]
)
async def test_what_belongs_to_two_moments_is_read_anew(times: int, verdict: Verdict) -> None:
    """So often as a lost race starts over; what the event was found with is not live any more."""
    left = times

    async def act(owner: str, reader: Reader) -> None:
        nonlocal left
        left -= 1
        if left >= 0:
            raise OutdatedError("changed")

    unit = Still(act=act)
    assert await make(unit).handle(look()) == verdict
    assert unit.known == [{key("a1"): OBJECT}, *[{}] * min(times, engine.ATTEMPTS - 1)]


async def test_every_unit_of_a_kind_is_asked() -> None:
    """Two units on one kind both run, each under its own name."""
    first, second, other = Still(name="a"), Still(name="b"), Still(name="c", kinds=frozenset({CONFIG_MAP}))
    await make(first, second, other).handle(look())
    assert (first.log, second.log, other.log) == (["+o/1", "-o/1"], ["+o/1", "-o/1"], [])


async def test_stages_follow_each_other() -> None:
    """Owners of a stage run together; the next stage begins when all of them have ended."""

    async def act(owner: str, reader: Reader) -> None:
        for _ in range(3 if owner == "o/1" else 1):
            await asyncio.sleep(0)

    unit = Still((("o/1", "o/2"), ("o/3",)), act)
    assert (await make(unit).handle(look())).status == 204
    assert unit.log == ["+o/1", "+o/2", "-o/2", "-o/1", "+o/3", "-o/3"]


async def test_a_stage_that_fails_holds_back_the_next() -> None:
    """The memory of a move is not overwritten while the project that was left is not put right."""
    unit = Still((("o/1", "o/2"), ("o/3",)), failing({"o/1": AWAY}))
    assert await make(unit).handle(look()) == Verdict(503, "TransientError")
    assert "+o/3" not in unit.log
    assert "-o/2" in unit.log


@pytest.mark.parametrize("told_next", [False, True])
async def test_what_lacks_a_right_is_told_by_the_next_stage_where_that_does(*, told_next: bool) -> None:
    """The answer is the same: the event is tried again, and its dead letter names the right."""

    class Refusing(Stub):
        async def create(self, *_: object, **__: object) -> Object:
            raise Forbidden('User "u" cannot create resource "configmaps" in API group "" in the namespace "n"')

        apply = create

    class Writing(Still):
        @property
        def handlers(self) -> Mapping[str, Handler[Any]]:
            return {name: replace(each, told_next=told_next) for name, each in super().handlers.items()}

        def plan(self, observed: tuple[str, bool]) -> Plan:
            return WANTED if observed[0] == "o/1" else NOTHING

    unit = Writing((("o/1",), ("o/2",)))
    verdict = await make(unit, api=Refusing()).handle(look())
    assert (verdict.status, verdict.reason) == (503, "the right to create configmaps is missing")
    assert ("+o/2" in unit.log) == told_next


async def test_a_later_stage_reads_anew() -> None:
    """What was read before an earlier stage ran is too old to decide a later one on."""
    unit = Still((("o/1",), ("o/2",)))
    await make(unit).handle(look())
    assert unit.known == [{key("a1"): OBJECT}, {}]


async def test_a_burst_on_one_owner_is_two_runs_that_see_every_cause() -> None:
    """Events on the same owner share runs; each is answered after a run that began after it."""
    go = asyncio.Event()
    unit = Still(act=until(go))
    made = make(unit)
    tasks = [asyncio.create_task(made.handle(look("a0")))]
    await settle()
    assert unit.log == ["+o/1"]
    tasks += [asyncio.create_task(made.handle(look(f"a{number}"))) for number in range(1, 20)]
    await settle()
    go.set()
    assert {verdict.status for verdict in await asyncio.gather(*tasks)} == {204}
    assert unit.log == ["+o/1", "-o/1"] * 2
    assert unit.causes[0] | unit.causes[1] == {key(f"a{number}") for number in range(20)}
    assert unit.known[1] == {}


async def test_two_units_do_not_share_runs() -> None:
    """Owners of the same name in two units are two owners."""
    go = asyncio.Event()
    first, second = Still(act=until(go), name="a"), Still(act=until(go), name="b", kinds=frozenset({CONFIG_MAP}))
    made = make(first, second)
    tasks = [asyncio.create_task(made.handle(event)) for event in (look(), look(kind=CONFIG_MAP))]
    await settle()
    assert (first.active, second.active) == (1, 1)
    go.set()
    await asyncio.gather(*tasks)


async def test_units_look_at_the_same_time() -> None:
    """One unit's run, or the pause after it, holds no other unit back."""
    go = asyncio.Event()
    slow, other = Still(act=until(go), name="slow"), Still(name="other")
    task = asyncio.create_task(make(slow, other).handle(look()))
    await settle()
    assert (slow.log, other.log) == (["+o/1"], ["+o/1", "-o/1"])
    assert not task.done()
    go.set()
    assert (await task).status == 204


async def test_events_of_another_duty_cost_nothing() -> None:
    """Where duties of a function run apart, a kind and a unit of the other one are answered 204, and no API server is asked."""
    unit = Still()
    tried = make(unit)  # over a client that can do nothing
    for event in (look(kind=JOB), engine.requested(FUNCTION, "another", "o/1", "c")):
        assert await tried.handle(event) == Verdict(204, "nothing to do")
    assert unit.log == []


async def test_a_unit_is_told_how_each_run_ended() -> None:
    """Success is a 204; a failure that is tried again is none."""
    unit = Still((("o/1", "o/2"),), failing({"o/2": AWAY}))
    await make(unit).handle(look())
    assert sorted(unit.endings) == [("o/1", True), ("o/2", False)]


async def test_runs_of_different_owners_are_bounded_in_number() -> None:
    """Each holds what it has read, so only so many are under way; who waited reads for himself, and everybody is served."""

    class Each(Still):
        async def owners(self, key: Key, hint: Mapping[str, str], reader: Reader) -> Stages:
            reader.known[key] = OBJECT
            return [[Owner("o", key.name)]]

    go = asyncio.Event()
    unit, more = Each(act=until(go)), 20
    made = make(unit)
    events = [asyncio.create_task(made.handle(look(f"a{number}"))) for number in range(limits.RUNS_AT_ONCE + more)]
    await settle()
    assert unit.active == limits.RUNS_AT_ONCE
    go.set()
    assert {verdict.status for verdict in await asyncio.gather(*events)} == {204}
    assert (unit.most, len(unit.endings)) == (limits.RUNS_AT_ONCE, len(events))
    assert [bool(known) for known in unit.known] == [True] * limits.RUNS_AT_ONCE + [False] * more
