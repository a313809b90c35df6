"""A failure keeps no other run back, and the answer tells of it: away, a bug, too many at once, too late, hung up."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from engine_units import AWAY, WANTED, Deaf, Still, Stub, failing, look, make, settle, sweep, until

from tenantry.api.errors import AdmissionDenied, KindNotServed, TransientError
from tenantry.engine import Verdict
from tenantry.engine.reader import Reader
from tenantry.engine.unit import EVERY, Handler
from tenantry.model import limits
from tenantry.model.event import Event
from tenantry.model.kinds import NAMESPACE, Kind, Object, object_of
from tenantry.model.plan import NOTHING, Apply, Plan, plan_of


@pytest.mark.parametrize(("error", "status"), [(TransientError("away"), 503), (ZeroDivisionError(), 500)])
async def test_a_unit_that_cannot_look_keeps_no_other_back(error: Exception, status: int) -> None:
    """The event's verdict is the worst, and the other units have looked, whether they come before or after."""
    others = Still(name="before"), Still(name="after")
    assert (await make(others[0], Deaf(error=error), others[1]).handle(look())).status == status
    assert [unit.log for unit in others] == [["+o/1", "-o/1"]] * 2


@pytest.mark.parametrize(
    ("unit", "event"),
    [(Deaf(), look()), (Deaf(EVERY), look("all")), (Deaf(), sweep())],
    ids=["owners of an event", "lists for everybody", "lists of a sweep"],
)
async def test_what_cannot_be_read_is_tried_again(unit: Deaf, event: Event) -> None:
    """When the API server cannot say whom an event concerns, or a snapshot cannot be taken, that is a transient failure."""
    assert await make(unit).handle(event) == Verdict(503, "TransientError")


async def test_a_missing_kind_is_an_error_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """A CRD that is not installed needs a person, and the log says so at that level; other failures warn."""
    act = failing({"o/1": KindNotServed("no HelmChart here"), "o/2": AWAY})
    with caplog.at_level(logging.WARNING, "tenantry"):
        await make(Still(act=act)).handle(look())
        await make(Still((("o/2",),), act)).handle(look())
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("ERROR", "KindNotServed: no HelmChart here"),
        ("WARNING", "TransientError: away"),
    ]


async def test_a_bug_is_500_and_the_owner_can_be_run_again(caplog: pytest.LogCaptureFixture) -> None:
    """An unexpected exception is logged with its owner, answered as 500, and blocks nothing."""
    errors: dict[str, Exception] = {"o/1": ZeroDivisionError(), "o/2": ZeroDivisionError()}
    made = make(Still((("o/1", "o/2"),), failing(errors)))
    assert (await made.handle(look())).status == 500
    assert "a bug: the run for o/1 ended" in caplog.text
    errors.clear()
    assert (await made.handle(look())).status == 204


async def test_too_many_events_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Above the limit an event is refused with a time to wait, and nobody else is hurt."""
    monkeypatch.setattr(limits, "RUNS_PENDING", 2)
    go = asyncio.Event()
    made = make(Still(act=until(go)))
    tasks = [asyncio.create_task(made.handle(look())) for _ in range(2)]
    await settle()
    assert await made.handle(look()) == Verdict(429, "too many events at once", retry_after=1.0)
    assert (await made.handle(Event(id="1", source="/s", type="other"))).status == 204
    go.set()
    assert {verdict.status for verdict in await asyncio.gather(*tasks)} == {204}
    assert (await made.handle(look())).status == 204


async def test_the_deadline_answers_and_the_run_goes_on() -> None:
    """A sender is answered 503 in time; the run is not broken off, and draining waits for it."""
    go = asyncio.Event()
    unit = Still(act=until(go))
    made = make(unit, deadline_s=0.01)
    assert await made.handle(look()) == Verdict(503, "deadline exceeded")
    assert unit.log == ["+o/1"]
    draining = asyncio.create_task(made.drain())
    await settle()
    assert not draining.done()
    go.set()
    await draining
    assert unit.log == ["+o/1", "-o/1"]


async def test_a_sender_that_hangs_up_does_not_break_off_the_run() -> None:
    """Cancelling the handler leaves the run and the count of pending events right."""
    go = asyncio.Event()
    unit = Still(act=until(go))
    made = make(unit)
    task = asyncio.create_task(made.handle(look()))
    await settle()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert made._pending == 0
    go.set()
    await made.drain()
    assert unit.log == ["+o/1", "-o/1"]


@pytest.mark.parametrize(
    ("by", "after_s", "looks"),
    [("tenantry-fence-x", 0.01, 2), ("tenantry-fence-x", 0.0, 1), ("policy-of-others", 0.01, 1)],
    ids=["ours", "a unit that does not ask for it", "somebody else's"],
)
async def test_what_a_policy_of_ours_refuses_is_tried_once_more(by: str, after_s: float, looks: int) -> None:
    """p-170: its param may have been old; a second refusal is told, and whatever others refuse at once."""

    class Patient(Still):
        @property
        def handlers(self) -> Mapping[str, Handler[Any]]:
            return {"o": replace(super().handlers["o"], refused_again_after_s=after_s)}

        def plan(self, observed: tuple[str, bool]) -> Plan:
            return WANTED

    class Refusing(Stub):
        async def apply(self, kind: Kind, body: Object, subresource: str = "", manager: str = "") -> Object:
            raise AdmissionDenied(f"forbidden: ValidatingAdmissionPolicy '{by}' with binding '{by}' denied request: no")

    attempts: list[tuple[int, bool]] = []

    async def act(_: str, reader: Reader) -> None:
        attempts.append((reader.attempt, reader.raced))

    unit = Patient(act=act)
    assert (await make(unit, api=Refusing()).handle(look())).status == 204
    assert attempts == [(0, False), (1, True)][:looks]


@pytest.mark.parametrize(("looks", "status"), [(1, 204), (2, 409)], ids=["for a moment", "longer"])
async def test_who_waits_for_another_run_looks_once_more_and_is_then_tried_again(looks: int, status: int) -> None:
    """What can be done meanwhile is done in each look."""
    seen: list[int] = []

    class Waiting(Still):
        @property
        def handlers(self) -> Mapping[str, Handler[Any]]:
            waits = lambda _: len(seen) <= looks  # noqa: E731
            return {"o": replace(super().handlers["o"], refused_again_after_s=0.01, waits=waits)}

    async def act(_: str, reader: Reader) -> None:
        seen.append(reader.attempt)

    assert (await make(Waiting(act=act)).handle(look())).status == status
    assert seen == [0, 1]


@pytest.mark.parametrize(("writes", "looks", "status"), [(0, 1, 204), (2, 3, 204), (9, 5, 409)])
async def test_step_by_step_what_comes_next_is_decided_from_what_is_there(writes: int, looks: int, status: int) -> None:
    """After each write it is looked again, a bounded number of times; what is told comes last, once."""
    reports: list[int] = []
    seen: list[int] = []

    class Stepping(Still):
        @property
        def handlers(self) -> Mapping[str, Handler[Any]]:
            return {"o": replace(super().handlers["o"], step_by_step=True, report=self.report)}

        def plan(self, observed: tuple[str, bool]) -> Plan:
            return WANTED if len(seen) <= writes else NOTHING

        def report(self, observed: tuple[str, bool], refusals: object) -> Plan:
            reports.append(len(seen))
            return NOTHING

    class Writing(Stub):
        async def apply(self, kind: Kind, body: Object, subresource: str = "", manager: str = "") -> Object:
            return {**body, "metadata": {**body["metadata"], "resourceVersion": "1"}}

    async def act(_: str, reader: Reader) -> None:
        seen.append(reader.attempt)
        assert not reader.raced  # nothing was lost: it is looked again for what comes next

    assert (await make(Stepping(act=act), api=Writing()).handle(look())).status == status
    assert seen == list(range(looks))
    assert reports == ([looks] if status == 204 else [])


@pytest.mark.parametrize("most", [0, 2])
async def test_a_handler_says_how_many_of_its_writes_are_under_way(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that only tell leave the API server the time for what others wait for."""
    monkeypatch.setattr(limits, "WRITES_AT_ONCE", 5)
    active = [0, 0]

    class Telling(Still):
        @property
        def handlers(self) -> Mapping[str, Handler[Any]]:
            return {"o": replace(super().handlers["o"], writes_at_once=most)}

        def plan(self, observed: tuple[str, bool]) -> Plan:
            return plan_of(*(Apply(NAMESPACE, object_of(NAMESPACE, {"name": f"n{at}"}), None) for at in range(9)))

    class Counting(Stub):
        async def apply(self, kind: Kind, body: Object, subresource: str = "", manager: str = "") -> Object:
            active[0] += 1
            active[1] = max(active)
            await asyncio.sleep(0.001)
            active[0] -= 1
            return {**body, "metadata": {**body["metadata"], "resourceVersion": "1"}}

    assert (await make(Telling(), api=Counting()).handle(look())).status == 204
    assert active == [0, most or 5]
