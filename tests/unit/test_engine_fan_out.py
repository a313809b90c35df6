"""Few owners are run here, and many go to the broker as requests for one owner each."""

from __future__ import annotations

import asyncio

import pytest
from engine_units import FUNCTION, MANY, Sent, Still, failing, look, make, settle

from tenantry.api.errors import TransientError
from tenantry.engine import Verdict, engine
from tenantry.model.event import RECONCILE_REQUESTED_TYPE, Event


async def test_a_small_fan_out_is_done_here_bounded() -> None:
    """Up to the threshold all owners run in place, a bounded number at a time, broker or not."""
    sent = Sent()
    unit = Still((MANY[: engine.FAN_OUT_ABOVE],), failing({}))
    assert (await make(unit, emit=sent).handle(look())).status == 204
    assert len(unit.log) == 2 * engine.FAN_OUT_ABOVE
    assert unit.most == engine.PARALLEL
    assert sent == []


async def test_a_large_fan_out_without_a_broker_is_done_here() -> None:
    """Without anywhere to send to, all owners run in place."""
    unit = Still((MANY,))
    await make(unit).handle(look())
    assert len(unit.log) == 2 * len(MANY)


async def test_a_large_fan_out_goes_to_the_broker() -> None:
    """Each owner is one event that names function, unit, owner and cause, with the owner as partition key."""
    sent = Sent()
    unit = Still((MANY,))
    made = make(unit, emit=sent)
    assert await made.handle(look()) == Verdict(204, "nothing to do")
    assert unit.log == []
    assert {event.extensions["owner"] for event in sent} == set(MANY)
    assert len({event.id for event in sent}) == len(sent) == len(MANY)
    first = sent[0]
    assert (first.type, first.source, first.subject) == (RECONCILE_REQUESTED_TYPE, "/tenantry/test", first.extensions["owner"])
    assert first.extensions == {
        "function": FUNCTION,
        "unit": "still",
        "owner": first.subject,
        "partitionkey": first.subject,
        "cause": "Namespace a1",
    }
    # What was sent is what is understood.
    await made.handle(first)
    assert unit.log == [f"+{first.subject}", f"-{first.subject}"]


async def test_large_fan_outs_go_one_after_the_other() -> None:
    """However many events concern many owners, so many wait for the broker at a time, and the others cost no task."""
    waiting, most = 0, 0
    go = asyncio.Event()

    async def emit(event: Event) -> None:
        nonlocal waiting, most
        waiting += 1
        most = max(most, waiting)
        await go.wait()
        waiting -= 1

    made, before = make(Still((MANY,)), emit=emit), len(asyncio.all_tasks())
    events = [asyncio.create_task(made.handle(look(f"a{number}"))) for number in range(20)]
    await settle()
    assert len(asyncio.all_tasks()) - before <= len(events) + engine.PARALLEL
    go.set()
    assert {verdict.status for verdict in await asyncio.gather(*events)} == {204}
    assert most == engine.PARALLEL


async def test_a_broker_that_is_away() -> None:
    """An owner that could not be handed on means that the whole event is tried again."""

    async def emit(event: Event) -> None:
        if event.subject == "o/7":
            raise TransientError("the broker answered 503")

    assert await make(Still((MANY,)), emit=emit).handle(look()) == Verdict(503, "TransientError")


@pytest.mark.parametrize(
    ("unit", "owner", "log"),
    [("still", "o/9", ["+o/9", "-o/9"]), ("still", "../../x", []), ("other", "o/9", [])],
)
async def test_requests_for_one_owner(unit: str, owner: str, log: list[str]) -> None:
    """A request runs one owner without any cause; unknown units and forged owners are nothing to do."""
    extensions = {"function": FUNCTION, "unit": unit, "owner": owner}
    still = Still()
    request = Event(id="1", source="/s", type=RECONCILE_REQUESTED_TYPE, extensions=extensions)
    assert await make(still).handle(request) == Verdict(204, "nothing to do")
    assert (still.log, still.causes) == (log, [frozenset()] if log else [])
