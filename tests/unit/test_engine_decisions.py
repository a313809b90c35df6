"""Runs tell what they decided, to who listens: why, from what, what they wrote and how it ended."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from engine_units import FUNCTION, MANY, Sent, Still, Stub, failing, key, look, make, settle, sweep, until
from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from tenantry.api.errors import Forbidden, TransientError
from tenantry.engine.context import event_id, event_time
from tenantry.engine.decisions import Note
from tenantry.engine.flight import Ask
from tenantry.engine.reader import Reader
from tenantry.engine.request import RunOwner, request_of
from tenantry.engine.unit import Owner
from tenantry.model import limits
from tenantry.model.decision import Cause, DecisionMade
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, Key, Kind, Object, object_of
from tenantry.model.plan import NOTHING, Apply, Plan

CONFIG = Key("v1", "ConfigMap", "n", "c")


class Cluster(Stub):
    """An API server with one ConfigMap that takes every apply, each with a new version."""

    def __init__(self, error: Exception | None = None) -> None:
        self.version, self.error = 1, error

    async def get(self, kind: Kind, name: str, namespace: str = "") -> Object | None:
        return object_of(kind, {"name": name, "namespace": namespace, "uid": "u", "resourceVersion": str(self.version)})

    async def apply(self, kind: Kind, body: Object, **options: Any) -> Object:
        if self.error is not None:
            raise self.error
        self.version += 1
        return {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}

    async def create(self, kind: Kind, body: Object, **options: Any) -> Object:
        return body


class Writes(Still):
    """A unit that reads a ConfigMap and writes its data once: a second look shows it as wanted."""

    done = False

    async def observe(self, of: Owner, reader: Reader) -> tuple[str, bool]:
        await reader.get(CONFIG_MAP, "c", "n")
        await super().observe(of, reader)
        return str(of), not self.done

    def plan(self, observed: tuple[str, bool]) -> Plan:
        if not observed[1]:
            return NOTHING
        self.done = True
        live = object_of(CONFIG_MAP, {"name": "c", "namespace": "n", "uid": "u", "resourceVersion": "1"})
        return Plan(((Apply(CONFIG_MAP, object_of(CONFIG_MAP, {"name": "c", "namespace": "n"}) | {"data": {"k": "v"}}, live),),))


@pytest.fixture
def told() -> list[DecisionMade]:
    """What a listener has heard."""
    return []


@pytest.fixture(autouse=True)
def waking() -> None:
    """The event that the entry handles."""
    event_id.set("e-1")
    event_time.set("2026-11-27T15:00:00Z")


async def test_a_run_with_a_write_is_a_decision(told: list[DecisionMade]) -> None:
    """It has the event and its object, the version that was read, the write with its field and new version, and the end."""
    made = make(Writes(), api=Cluster(), on_decision=told.append)
    assert (await made.handle(look())).status == 204

    (one,) = told
    assert (one.unit, one.owner, one.status, one.reason, one.complete) == ("still", "o/1", 204, "done", True)
    assert one.causes == (Cause(key("a1"), "e-1", "2026-11-27T15:00:00Z"),)
    assert one.inputs[CONFIG] == "1"
    assert [(each.verb, each.key, each.version, each.changed) for each in one.writes] == [("update", CONFIG, "2", ("data[k]",))]


async def test_what_finds_nothing_to_do_is_none(told: list[DecisionMade]) -> None:
    """Echoes, sweeps and looks that change nothing are told to nobody."""
    made = make(Still(), on_decision=told.append)
    for event in (look(), sweep(), look()):
        await made.handle(event)
    assert told == []


async def test_a_changed_end_is_a_decision_and_the_same_one_is_none(told: list[DecisionMade]) -> None:
    """Away, away again, and back: two decisions, the first that it failed, the second that it works again."""
    errors: dict[str, Exception] = {"o/1": TransientError("away")}
    made = make(Still(act=failing(errors)), on_decision=told.append)
    for _ in range(2):
        await made.handle(look())
    errors.clear()
    for _ in range(2):
        await made.handle(look())
    assert [(each.status, each.complete) for each in told] == [(503, True), (204, True)]


async def test_a_refused_write_is_told_without_the_servers_words(told: list[DecisionMade]) -> None:
    """The API server quotes values: the object and the sort of refusal are told, and that the run was not complete."""
    refusal = Forbidden('cannot patch resource "configmaps" in API group "": s3cret', status=403)
    made = make(Writes(), api=Cluster(refusal), on_decision=told.append)
    await made.handle(look())
    assert [(each.key, each.cause) for one in told for each in one.refused] == [(CONFIG, "rights")]
    assert "s3cret" not in repr(told)


async def test_events_that_share_a_run_are_all_its_causes(told: list[DecisionMade]) -> None:
    """Two events that wait for one run: it names both."""
    go = asyncio.Event()
    unit = Writes(act=until(go))
    made = make(unit, api=Cluster(), on_decision=told.append)
    first = asyncio.create_task(made.handle(look("a1")))
    await settle()
    unit.done = False
    waiting = [asyncio.create_task(made.handle(look(name))) for name in ("a2", "a3")]
    await settle()
    go.set()
    unit_done = asyncio.gather(first, *waiting)
    await settle()
    unit.done = False
    await unit_done
    assert {cause.key.name for one in told for cause in one.causes if cause.key is not None} >= {"a1"}


def test_joined_asks_keep_a_bounded_number_of_events() -> None:
    """Each event once; of more than fit their number is kept."""
    one = Ask(events=(Cause(key("a"), "1"),))
    assert (one | one).events == one.events
    joined = one
    for number in range(limits.DECISION_CAUSES + 9):
        joined |= Ask(events=(Cause(key("b"), f"b{number}"),))
    assert (len(joined.events), joined.more_events) == (limits.DECISION_CAUSES, 10)
    assert joined.events[0] == one.events[0]


async def test_a_sweep_names_its_event_and_no_object(told: list[DecisionMade]) -> None:
    """What a sweep finds has the schedule's event as its cause."""

    class Due(Writes):
        due = frozenset({"o/1"})

    made = make(Due(due=frozenset({"o/1"})), api=Cluster(), on_decision=told.append)
    event_id.set("ping-1")
    await made.handle(sweep())
    assert {cause for one in told for cause in one.causes} <= {Cause(None, "ping-1", "2026-11-27T15:00:00Z")}


async def test_a_fan_out_hands_its_cause_on(told: list[DecisionMade]) -> None:
    """The events that a wide fan-out sends name the object and the event that they come from."""
    sent = Sent()
    made = make(Still(stages=(MANY,)), emit=sent, on_decision=told.append)
    await made.handle(look("team-a"))
    asked = request_of(sent[0], FUNCTION)
    assert isinstance(asked, RunOwner)
    assert asked.cause == Cause(key("team-a"), "e-1", "2026-11-27T15:00:00Z")

    silent = Sent()
    await make(Still(stages=(MANY,)), emit=silent).handle(look("team-a"))
    asked = request_of(silent[0], FUNCTION)
    assert isinstance(asked, RunOwner)
    assert asked.cause is None


async def test_the_trace_goes_along(told: list[DecisionMade]) -> None:
    """A decision carries the trace of the event, so that it is found beside the spans."""
    context = SpanContext(0xABC, 0xDEF, is_remote=True, trace_flags=TraceFlags(1))
    made = make(Writes(), api=Cluster(), on_decision=told.append)
    with trace.use_span(NonRecordingSpan(context)):
        await made.handle(look())
    assert told[0].traceparent == f"00-{0xABC:032x}-{0xDEF:016x}-01"


async def test_without_a_listener_nothing_is_noted() -> None:
    """No run has a note, and no event is remembered as a cause."""
    seen: list[Any] = []

    async def act(owner: str, reader: Reader) -> None:
        seen.append(reader.note)

    made = make(Still(act=act))
    await made.handle(look())
    assert (seen, made._decisions.woken(key("a1"))) == ([None], ())


def test_inputs_are_what_was_read_before_it_was_written() -> None:
    """The last version that was read counts, until the run itself writes the object; what does not fit is counted."""
    note, items = Note(), [object_of(NAMESPACE, {"name": str(n), "resourceVersion": "1"}) for n in range(limits.DECISION_INPUTS)]
    note.read(CONFIG, {"metadata": {"resourceVersion": "1"}})
    note.read(CONFIG, {"metadata": {"resourceVersion": "2"}})
    note.read(key("gone"), None)
    live = object_of(CONFIG_MAP, {"name": "c", "namespace": "n", "uid": "u", "resourceVersion": "2"})
    change = Apply(CONFIG_MAP, object_of(CONFIG_MAP, {"name": "c", "namespace": "n"}) | {"data": {"k": "v"}}, live).change("m")
    assert change is not None
    note.wrote(change, {"metadata": {"resourceVersion": "3"}})
    note.read(CONFIG, {"metadata": {"resourceVersion": "3"}})
    note.listed(NAMESPACE, items)
    assert (note.inputs[CONFIG], note.inputs[key("gone")]) == ("2", "")
    assert (len(note.inputs), note.inputs_left_out) == (limits.DECISION_INPUTS, 2)
    assert cast(Any, note).refused == []
