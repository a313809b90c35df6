"""Decisions on their way out: numbered without a gap, signed, bounded, and in nobody's way."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tenantry.api.errors import TransientError
from tenantry.model import limits
from tenantry.model.decision import Cause, DecisionMade, WriteMade
from tenantry.model.event import DECISION_TYPE, DECISIONS_BEGUN_TYPE, DECISIONS_ENDED_TYPE, Event
from tenantry.model.kinds import Key
from tenantry.serving import decisions
from tenantry.serving.cloudevents import encode_binary, parse_event
from tenantry.serving.decisions import Outbox
from tenantry.serving.ledger.record import DecisionTold, told_in
from tenantry.serving.signing import KEY_VARIABLE, SIGNATURE, is_signed
from tenantry.testing import eventually

KEY = b"0123456789abcdef"
CONFIG = Key("v1", "ConfigMap", "n", "c")


def decision(owner: str = "project/p-a", writes: int = 1, trace: str = "") -> DecisionMade:
    """A run that wrote a ConfigMap some times."""
    made = [WriteMade("update", CONFIG, str(number), ("data[k]",)) for number in range(writes)]
    cause = Cause(Key("v1", "Namespace", "", "team-a"), "e-1", "2026-11-27T15:00:00Z")
    return DecisionMade("projects", owner, (cause,), 0, {CONFIG: "1"}, 0, made, (), 204, "done", True, 1.0, 5, trace)


class Sink:
    """A broker; ``away`` says whether it answers, and ``gate`` how long it takes."""

    def __init__(self) -> None:
        self.taken: list[Event] = []
        self.tries = 0
        self.away = False
        self.gate = asyncio.Event()
        self.gate.set()

    async def __call__(self, event: Event) -> None:
        self.tries += 1
        await self.gate.wait()
        if self.away:
            raise TransientError("the broker answered 503")
        headers, body = encode_binary(event)  # as it goes over the wire
        self.taken.append(parse_event(headers, body))

    @property
    def numbers(self) -> list[int]:
        """The numbers that arrived."""
        return sorted(int(each.extensions["sequence"]) for each in self.taken)


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Retries come at once, and there is a key."""
    monkeypatch.setattr(decisions, "FIRST_PAUSE_S", 0.0)
    (tmp_path / "key").write_bytes(KEY + b"\n")
    monkeypatch.setenv(KEY_VARIABLE, str(tmp_path / "key"))


@pytest.fixture
def sink() -> Sink:
    """The broker."""
    return Sink()


@asynccontextmanager
async def opened(sink: Sink | None) -> AsyncIterator[Outbox]:
    """An outbox at work, which is closed at the end."""
    outbox = Outbox(sink, "namespace-registration", "namespace-registration")
    outbox.open()
    yield outbox
    await outbox.close()


async def test_everything_is_numbered_from_the_beginning_to_the_end_of_the_process(sink: Sink) -> None:
    """The first event says that the process begins, the last that it ends; between them each decision has a number."""
    async with opened(sink) as outbox:
        for _ in range(3):
            outbox.take(decision())
    kinds = {int(each.extensions["sequence"]): each.type for each in sink.taken}
    assert kinds == {0: DECISIONS_BEGUN_TYPE, 1: DECISION_TYPE, 2: DECISION_TYPE, 3: DECISION_TYPE, 4: DECISIONS_ENDED_TYPE}
    assert len({each.id for each in sink.taken}) == 5


async def test_an_event_says_what_it_is_about_and_is_signed(sink: Sink) -> None:
    """Filters of a Trigger have function, unit and owner; the trace goes along; and the ledger reads back what was decided."""
    trace = f"00-{1:032x}-{1:016x}-01"
    async with opened(sink) as outbox:
        outbox.take(decision(trace=trace))
    event = next(each for each in sink.taken if each.type == DECISION_TYPE)
    wanted = {"function": "namespace-registration", "unit": "projects", "owner": "project/p-a", "traceparent": trace}
    assert wanted.items() <= event.extensions.items()
    assert is_signed(KEY, event.data, event.extensions[SIGNATURE])
    assert not is_signed(KEY, {**event.data, "owner": "project/p-b"}, event.extensions[SIGNATURE])  # type: ignore[dict-item]
    told = told_in(event.data)
    assert isinstance(told, DecisionTold)
    assert (told.owner, told.causes[0].event, told.writes[0].changed) == ("project/p-a", "e-1", ("data[k]",))


async def test_a_decision_of_many_writes_has_a_number_for_each_part(sink: Sink) -> None:
    """No number is left out, whatever a decision becomes."""
    async with opened(sink) as outbox:
        outbox.take(decision(writes=limits.DECISION_TEXTS))
        outbox.take(decision())
    assert sink.numbers == [0, 1, 2, 3, 4]


async def test_who_tells_never_waits(sink: Sink) -> None:
    """With a broker that does not answer `take` returns at once; what has no room is dropped, the oldest first, and said."""
    sink.gate.clear()
    async with opened(sink) as outbox:
        await asyncio.sleep(0)
        for _ in range(limits.DECISIONS_WAITING + 30):
            outbox.take(decision())
        dropped = outbox.dropped
        assert 30 - decisions.AT_ONCE <= dropped <= 31
        sink.gate.set()
    assert len(sink.taken) == limits.DECISIONS_WAITING + 32 - dropped
    assert sink.numbers[-1] == limits.DECISIONS_WAITING + 31


async def test_what_is_large_is_bounded_too(sink: Sink) -> None:
    """Not only decisions count, but what they name; the newest is always kept."""
    sink.gate.clear()
    async with opened(sink) as outbox:
        await asyncio.sleep(0)
        for _ in range(4):
            outbox.take(decision(writes=limits.DECISIONS_WAITING_NAMES))
        assert outbox.dropped > 0
        assert len(outbox._queue) == 1
        outbox._drop(outbox._pop(), "the test has seen enough")
        sink.gate.set()


async def test_a_broker_that_is_away_costs_a_bounded_number_of_tries(sink: Sink, caplog: pytest.LogCaptureFixture) -> None:
    """What is not taken after some tries is dropped, counted and said once; what follows goes on, and the numbers show it."""
    with caplog.at_level(logging.INFO, "tenantry"):
        async with opened(sink) as outbox:
            await eventually(lambda: _value(len(sink.taken)))
            sink.away = True
            for _ in range(3):
                outbox.take(decision())
            await eventually(lambda: _value(outbox.dropped == 3))
            assert sink.tries == 1 + 3 * decisions.TRIES
            sink.away = False
            outbox.take(decision())
    assert sink.numbers == [0, 4, 5]
    ended = next(each for each in sink.taken if each.type == DECISIONS_ENDED_TYPE)
    assert isinstance(ended.data, dict)
    assert ended.data["dropped"] == 3
    said = [each.message for each in caplog.records if each.levelno >= logging.INFO]
    assert [f"decision 1 of process {outbox.instance} is dropped: the broker answered 503"] == said[:1]
    assert said[1:] == [f"decisions are sent again; 3 of process {outbox.instance} are missing so far"]


async def _value(value: object) -> object:
    return value


async def test_a_bug_in_an_event_costs_that_event(sink: Sink, caplog: pytest.LogCaptureFixture) -> None:
    """What cannot be made into an event is dropped, and the next one is sent."""
    async with opened(sink) as outbox:
        outbox._put(1, 0, lambda _: [undeliverable()])
        outbox.take(decision())
    assert sink.numbers == [0, 2, 3]
    assert "a bug: a decision could not be sent" in caplog.text


def undeliverable() -> Event:
    """No event can be made."""
    raise IndexError


async def test_without_a_broker_that_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    """Decisions are switched on and can go nowhere: one line, and runs go on."""
    async with opened(None) as outbox:
        for _ in range(3):
            outbox.take(decision())
    assert [each.message for each in caplog.records] == [
        "decisions are switched on and K_SINK names no broker: they are not sent"
    ]


@pytest.mark.parametrize(("content", "said"), [(None, "No such file or directory"), (b"short\n", "has 5 bytes, and needs 16")])
async def test_without_a_usable_key_that_is_said(
    sink: Sink,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    content: bytes | None,
    said: str,
) -> None:
    """Events go out unsigned, for other sinks than the ledger, and why the ledger will not take them is in the log."""
    path = tmp_path / "other"
    if content is not None:
        path.write_bytes(content)
    monkeypatch.setenv(KEY_VARIABLE, str(path))
    async with opened(sink) as outbox:
        outbox.take(decision())
    assert [SIGNATURE in each.extensions for each in sink.taken] == [False] * 3
    assert said in caplog.text


async def test_an_end_does_not_wait_for_a_broker_that_hangs(sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that ends waits a bounded time, and then says what it did not get rid of."""
    monkeypatch.setattr(decisions, "CLOSE_S", 0.01)
    sink.gate.clear()
    outbox = Outbox(sink, "f", "f")
    outbox.open()
    await asyncio.sleep(0)
    for _ in range(20):
        outbox.take(decision())
    await asyncio.wait_for(outbox.close(), 2)
    assert outbox.dropped == 22
