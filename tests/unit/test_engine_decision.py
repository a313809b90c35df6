"""Before something is taken away it is looked again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from tenantry.api import Api
from tenantry.engine.decision import LOOKS, decide
from tenantry.engine.reader import Reader
from tenantry.engine.unit import Handler, Owner, taken_away
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, Key, Object
from tenantry.model.plan import NOTHING, Apply, Delete, Plan, RemoveFinalizers, RemoveLabel, Write
from tenantry.testing.objects import obj

OWNER = Owner("o", "1")
CAUSE = Key("v1", "Namespace", "", "a")
MARKED: Object = obj(NAMESPACE, "a", labels={"x": ""}, metadata={"finalizers": ["x"]})


def obj(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "n"}}


def deleting(*names: str) -> Plan:
    return Plan((tuple(Delete(CONFIG_MAP, obj(name)) for name in names),))


def making(*names: str, then: Plan = NOTHING) -> Plan:
    """A plan that makes objects, and then does what another one says."""
    return Plan((tuple(Apply(CONFIG_MAP, obj(name), None) for name in names), (then,)))


class Seeing:
    """Sees another plan each time; the last stays."""

    def __init__(self, *plans: Plan) -> None:
        self.plans = list(plans)
        self.readers: list[Reader] = []

    async def observe(self, owner: Owner, reader: Reader) -> Plan:
        assert owner == OWNER
        self.readers.append(reader)
        return self.plans.pop(0) if len(self.plans) > 1 else self.plans[0]

    @property
    def handler(self) -> Handler[Plan]:
        return Handler[Plan](observe=self.observe, plan=lambda observed: observed)


def reader() -> Reader:
    return Reader(cast(Api, None), [CAUSE], {CAUSE: None})


@pytest.mark.parametrize(
    ("plans", "looks"),
    [
        ([NOTHING], 1),
        ([Plan(((Apply(CONFIG_MAP, obj("a"), None),),))], 1),
        ([deleting("a")], 2),
        ([deleting("a"), NOTHING], 2),
        ([deleting("a", "b"), deleting("a")], 2),
        ([deleting("a"), deleting("a", "b")], 3),
        ([deleting("a"), deleting("b"), NOTHING], 3),
        ([Plan(((Plan(((), (Delete(CONFIG_MAP, obj("a")),))),),))], 2),
        ([making("x", then=deleting("a")), deleting("a"), making("x", then=deleting("a"))], 3),
        ([making("x", then=deleting("a")), making("x", "y", then=deleting("a"))], 2),
        ([making("x", then=deleting("a")), NOTHING], 2),
        ([Plan(((RemoveLabel(CONFIG_MAP, obj("a"), "x"), RemoveFinalizers(CONFIG_MAP, obj("a"), ("x",))),))], 1),
    ],
)
async def test_two_looks_agree_on_what_goes(plans: list[Plan], looks: int) -> None:
    """A look that wants more gone or less made than the one before is not believed; what gives, or changes nothing, needs one."""
    handler, last = Seeing(*plans), plans[-1]
    decided = await decide(handler.handler, OWNER, reader())
    assert (decided.plan, decided.observed, decided.reader) == (last, last, handler.readers[-1])
    assert len(handler.readers) == looks


async def test_a_second_look_knows_nothing_of_the_first() -> None:
    """It reads everything anew, for the same causes; what was an input of the first is none of the second."""
    first, handler = reader(), Seeing(deleting("a"))
    first.depends_on(cast(Any, None), 1)
    await decide(handler.handler, OWNER, first)
    second = handler.readers[1]
    assert (first.known, second.known, second.causes) == ({CAUSE: None}, {}, frozenset({CAUSE}))
    assert await second.unchanged()


async def test_who_changes_without_end_is_not_waited_for_without_end() -> None:
    """After some looks the last one counts."""
    handler = Seeing(*(deleting(str(number)) for number in range(LOOKS + 9)))
    decided = await decide(handler.handler, OWNER, reader())
    assert decided.plan == deleting(str(LOOKS))


@pytest.mark.parametrize("write", [RemoveLabel(NAMESPACE, MARKED, "x"), RemoveFinalizers(NAMESPACE, MARKED, ("x",))])
async def test_labels_and_finalizers_are_taken_away_too(write: Write) -> None:
    """A label may be a right, and an object without its finalizer is gone."""
    handler = Seeing(Plan(((write,),)))
    await decide(handler.handler, OWNER, reader())
    assert len(handler.readers) == 2


async def test_a_handler_may_doubt_more_and_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """What else takes two looks, and how long after the first the second is, is the handler's to say."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr("tenantry.engine.decision.asyncio.sleep", sleep)
    handler = Seeing(NOTHING)
    doubting = replace(
        handler.handler,
        doubtful=lambda seen, plan: taken_away(seen, plan) | {"more"},
        second_look_after_s=lambda _: 7.0,
    )
    await decide(doubting, OWNER, reader())
    assert (len(handler.readers), waits) == (2, [7.0])


async def test_what_somebody_is_about_to_change_is_looked_at_again() -> None:
    """Two looks that agree are not enough while the handler says so, for some looks; what needs no second look gets none."""
    handler = Seeing(deleting("a"))
    await decide(replace(handler.handler, unsettled=lambda _: True), OWNER, reader())
    assert len(handler.readers) == 1 + LOOKS
    mended = Seeing(deleting("a"), deleting("a"), NOTHING)
    decided = await decide(replace(mended.handler, unsettled=lambda _: True), OWNER, reader())
    assert (decided.plan, len(mended.readers)) == (NOTHING, 3)
    quiet = Seeing(NOTHING)
    await decide(replace(quiet.handler, unsettled=lambda _: True), OWNER, reader())
    assert len(quiet.readers) == 1
