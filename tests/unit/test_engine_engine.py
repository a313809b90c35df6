"""The engine's order and concurrency, shown with a unit that reads and writes nothing.

What it does to a cluster is shown in tests/cluster with a real API server.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

import pytest
from owning import owner

from tenantry.api import Api
from tenantry.api.client import Listing
from tenantry.api.errors import KindNotServed, TransientError
from tenantry.engine import Engine, Verdict, engine
from tenantry.engine.reader import Reader
from tenantry.engine.request import MalformedRequest
from tenantry.engine.shared import REST, Shared
from tenantry.engine.snapshot import Prefetch, Snapshot
from tenantry.engine.unit import EVERY, Handler, OutdatedError, Owner, Stages
from tenantry.model import limits
from tenantry.model.event import PING_TYPE, RECONCILE_REQUESTED_TYPE, Event
from tenantry.model.kinds import CONFIG_MAP, JOB, NAMESPACE, Key, Kind, Object, object_of
from tenantry.model.plan import NOTHING, Apply, Plan

FUNCTION = "test"
OBJECT = object_of(CONFIG_MAP, {"name": "c", "namespace": "n"})
WANTED = Plan(((Apply(CONFIG_MAP, OBJECT, None),),))
AWAY = TransientError("away")
Act = Callable[[str, Reader], Awaitable[None]]
"""What happens when an owner is observed live."""


class Stub:
    """All that the engine itself asks of an API client."""

    field_manager = "tenantry-test"


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
    pause: float = 0.0
    log: list[str] = field(default_factory=list)
    endings: list[tuple[str, bool]] = field(default_factory=list)
    causes: list[frozenset[Key]] = field(default_factory=list)
    known: list[Mapping[Key, Object | None]] = field(default_factory=list)
    active: int = 0
    most: int = 0

    @property
    def handlers(self) -> Mapping[str, Handler[Any]]:
        made = Handler(observe=self.observe, plan=self.plan, pause_s=self.pause, ended=self.ended)
        return dict.fromkeys("op", made)

    def accepts(self, owner: Owner) -> bool:
        return owner.type == "o"

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

    def prefetch(self) -> Sequence[Prefetch]:
        return []

    async def sweep(self, reader: Reader) -> Sequence[Owner]:
        return [owner(text) for stage in self.stages for text in stage]


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
    async def act(owner: str, reader: Reader) -> None:
        await go.wait()

    return act


def failing(errors: Mapping[str, Exception]) -> Act:
    async def act(owner: str, reader: Reader) -> None:
        await asyncio.sleep(0)
        if owner in errors:
            raise errors[owner]

    return act


def make(*units: Still, api: Stub | None = None, **options: Any) -> Engine:
    return Engine(FUNCTION, cast(Api, api or Stub()), units, **options)


def look(name: str = "a1", kind: Kind = NAMESPACE) -> Event:
    data = object_of(kind, {"name": name})
    return Event(id="1", source="/s", type="dev.knative.apiserver.resource.update", data=data)


def sweep() -> Event:
    return Event(id="1", source="/s", type=PING_TYPE)


def key(name: str) -> Key:
    return Key("v1", "Namespace", "", name)


async def settle() -> None:
    """Let everything that can go on without time passing go on."""
    for _ in range(30):
        await asyncio.sleep(0)


# -- events ----------------------------------------------------------------------------------------------------


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
    tasks = [asyncio.create_task(made.handle(look(f"a{number}"))) for number in range(20)]
    await settle()
    assert unit.log == ["+o/1"]
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


# -- failures --------------------------------------------------------------------------------------------------


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


# -- fan-out ---------------------------------------------------------------------------------------------------

MANY = tuple(f"o/{number}" for number in range(60))


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


async def test_a_broker_that_is_away() -> None:
    """An owner that could not be handed on means that the whole event is tried again."""

    async def emit(event: Event) -> None:
        if event.subject == "o/7":
            raise TransientError("the broker answered 503")

    assert await make(Still((MANY,)), emit=emit).handle(look()) == Verdict(503, "TransientError")


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


async def test_a_key_that_concerns_everybody_is_planned_from_a_snapshot() -> None:
    """Only the owners that are due are run, in place even with a broker."""
    sent = Sent()
    unit = Wide(due=frozenset({"o/3", "o/5"}))
    assert (await make(unit, emit=sent).handle(look("all"))).status == 204
    assert sorted(unit.log) == ["+o/3", "+o/5", "-o/3", "-o/5"]
    assert sent == []


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
        async def create(self, kind: Kind, body: Object) -> Object:
            return body

        async def apply(self, kind: Kind, body: Object, subresource: str = "", manager: str = "") -> Object:
            return body

    unit = Busy((("o/1", "o/2", "o/3"),))
    verdict = await make(unit, api=Writing()).sweep()
    assert (verdict.status, verdict.writes) == (204, 1)
    assert sorted(unit.log) == ["+o/1", "+o/2", "+o/2", "-o/1", "-o/2", "-o/2"]


async def test_keys_that_concern_everybody_are_joined() -> None:
    """What comes during such a run shares one further run."""
    go = asyncio.Event()
    unit = Wide(act=until(go), due=frozenset({"o/3"}))
    made = make(unit)
    tasks = [asyncio.create_task(made.handle(look("all"))) for _ in range(5)]
    await settle()
    assert unit.sweeps == 1
    go.set()
    assert {(await task).status for task in tasks} == {204}
    assert unit.sweeps == 2


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


async def test_units_of_a_sweep_share_their_lists() -> None:
    """What two units want of one moment is read and kept once; one that cannot be read concerns those who want it."""

    class Listed(Stub):
        asked: ClassVar[list[str]] = []

        async def list(self, kind: Kind, namespace: str, **_: object) -> Listing:
            Listed.asked.append(kind.kind)
            return Listing([OBJECT], "1")

    class Wanting(Still):
        seen: ClassVar[list[Object]] = []

        def prefetch(self) -> Sequence[Prefetch]:
            return [Prefetch(CONFIG_MAP)]

        async def observe(self, of: Owner, reader: Reader) -> tuple[str, bool]:
            Wanting.seen += await reader.list(CONFIG_MAP)
            return await super().observe(of, reader)

    units = [Wanting(name="one"), Wanting(name="other")]
    assert (await make(*units, api=Listed()).sweep()).status == 204
    assert Listed.asked == ["ConfigMap"]
    assert [id(each) for each in Wanting.seen] == [id(OBJECT)] * 2


async def test_a_snapshot_asks_once_for_an_object() -> None:
    """Many owners that are looked at together share a read that no list answers."""

    class Asked(Stub):
        asked = 0

        async def get(self, kind: Kind, name: str, namespace: str) -> Object:
            Asked.asked += 1
            await asyncio.sleep(0)
            return OBJECT

    snapshot = await Snapshot.take(cast(Api, Asked()), [])
    found = await asyncio.gather(*(snapshot.get(CONFIG_MAP, "c", "n") for _ in range(50)))
    assert (found, Asked.asked) == ([OBJECT] * 50, 1)


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


async def test_shared_reads_begin_after_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asks during a read gets the next one, together with all others who ask meanwhile."""
    monkeypatch.setattr("tenantry.engine.shared.REST", 0)
    shared, begun, go = Shared(), [], [asyncio.Event() for _ in range(3)]

    async def fetch() -> int:
        number = len(begun)
        begun.append(number)
        await go[number].wait()
        return number

    first = asyncio.create_task(shared.read("x", fetch))
    await settle()
    later = [asyncio.create_task(shared.read("x", fetch)) for _ in range(10)]
    await settle()
    assert begun == [0]
    go[0].set()
    assert await first == 0
    await settle()
    last = asyncio.create_task(shared.read("x", fetch))
    await settle()
    assert begun == [0, 1]
    go[1].set()
    go[2].set()
    assert [await task for task in later] == [1] * 10
    assert await last == 2
    assert await shared.read("other", lambda: asyncio.sleep(0, "own")) == "own"


async def test_a_shared_read_rests_for_a_few_times_as_long_as_it_took() -> None:
    """Who asks in that time shares the next one, and nobody waits longer than that."""
    shared, begun = Shared(), list[float]()
    clock = asyncio.get_running_loop().time

    async def fetch() -> int:
        begun.append(clock())
        await asyncio.sleep(0.01)
        return len(begun)

    assert await shared.read("x", fetch) == 1
    ended = clock()
    assert await asyncio.gather(*(shared.read("x", fetch) for _ in range(10))) == [2] * 10
    assert begun[1] >= ended + 0.9 * REST * 0.01


async def test_a_shared_read_that_fails_fails_those_who_shared_it() -> None:
    """The next one is tried anew."""
    shared, answers = Shared(), iter([TransientError("away"), 7])

    async def fetch() -> object:
        await asyncio.sleep(0)
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    first, second = (asyncio.create_task(shared.read("x", fetch)) for _ in range(2))
    with pytest.raises(TransientError):
        await first
    assert await second == 7


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


# -- sweep -----------------------------------------------------------------------------------------------------


async def test_a_sweep_runs_only_who_is_due() -> None:
    """Owners that a snapshot shows to be as declared are not run; the others are, live."""
    unit = Still((MANY, ("p/1",)), due=frozenset({"o/3", "p/1"}))
    other = Still((("o/9",),), name="other")
    assert await make(unit, other).handle(sweep()) == Verdict(204, "nothing to do")
    assert sorted(unit.log) == ["+o/3", "+p/1", "-o/3", "-p/1"]
    assert other.log == []
    assert unit.known == [{}, {}]


async def test_one_failure_stops_no_other_owner_of_a_sweep() -> None:
    """Every due owner is run, a bounded number at a time, and the worst verdict is the sweep's."""
    unit = Still((MANY,), failing({"o/0": AWAY, "o/1": ZeroDivisionError()}), due=frozenset(MANY))
    assert (await make(unit).sweep()).status == 500
    assert len(unit.log) == 2 * len(MANY)
    assert unit.most == engine.PARALLEL


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


async def test_a_sweep_ends_with_its_deadline() -> None:
    """What is slower than the deadline is tried again; nothing of the sweep goes on then, and the next can begin."""
    go = asyncio.Event()
    ended: list[str] = []

    class Slow(Still):
        async def sweep(self, reader: Reader) -> Sequence[Owner]:
            try:
                await go.wait()
            finally:
                ended.append(self.name)
            return []

    made = make(Slow(), deadline_s=0.01)
    assert await made.handle(sweep()) == Verdict(503, "deadline exceeded")
    await made.drain()
    assert ended == ["still"]
    go.set()
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


async def test_a_unit_is_told_how_each_run_ended() -> None:
    """Success is a 204; a failure that is tried again is none."""
    unit = Still((("o/1", "o/2"),), failing({"o/2": AWAY}))
    await make(unit).handle(look())
    assert sorted(unit.endings) == [("o/1", True), ("o/2", False)]


class Few(Stub):
    """An API server with one ConfigMap, and a list of what it was asked for."""

    def __init__(self, *, complete: bool) -> None:
        self.complete = complete
        self.asked: list[str] = []

    async def list(self, kind: Kind, namespace: str = "", **more: object) -> Listing:
        since = f" since {version}" if (version := more.get("not_older_than")) else ""
        self.asked.append(f"list {kind.kind} {namespace} {more.get('limit', '')}".rstrip() + since)
        return Listing([OBJECT], str(len(self.asked)), complete=self.complete)

    async def get(self, kind: Kind, name: str, namespace: str) -> Object:
        self.asked.append(f"get {kind.kind} {namespace}/{name}")
        return OBJECT


class WholeKind(Still):
    """Finds its owners by all ConfigMaps that there are; its run asks for some of them."""

    async def owners(self, key: Key, hint: Mapping[str, str], reader: Reader) -> Stages:
        await reader.all_shared(CONFIG_MAP, 3)
        return await super().owners(key, hint, reader)


async def ask(_: str, reader: Reader) -> None:
    assert await reader.list(CONFIG_MAP, "n", name="c") == [OBJECT]
    assert await reader.get(CONFIG_MAP, "c", "n") == OBJECT


async def test_a_kind_that_is_known_whole_is_not_asked_for_again() -> None:
    """One request found the owners and answers the run: lists, and objects by name, that are there or not."""
    api = Few(complete=True)

    async def act(owner: str, reader: Reader) -> None:
        await ask(owner, reader)
        assert await reader.list(CONFIG_MAP, "elsewhere") == []
        assert await reader.list(CONFIG_MAP, labels={"a": "b"}) == []
        assert await reader.get(CONFIG_MAP, "other", "n") is None

    assert (await make(WholeKind(act=act), api=api).handle(look())).status == 204
    assert api.asked == ["list ConfigMap  3"]


async def test_a_kind_of_many_objects_is_asked_for_one_by_one() -> None:
    """A page that is not all of it answers nothing."""
    api = Few(complete=False)
    assert (await make(WholeKind(act=ask), api=api).handle(look())).status == 204
    assert api.asked == ["list ConfigMap  3", "list ConfigMap n since 1", "get ConfigMap n/c"]


async def test_further_lists_of_a_kind_are_as_of_the_first() -> None:
    """Within what an event causes; not by a second look, nor to verify, nor by a run that began later."""
    api, first = Few(complete=False), True

    async def act(_: str, reader: Reader) -> None:
        nonlocal first
        await reader.list(CONFIG_MAP, "a")
        await reader.list(NAMESPACE)
        if not first:
            return
        first = False
        again = reader.anew()
        await again.list(CONFIG_MAP, "b")
        await again.list_shared(CONFIG_MAP, "c")
        await again.list(CONFIG_MAP, "d")

        async def verified(fresh: Reader) -> int:
            return len(await fresh.list(CONFIG_MAP, "e"))

        reader.depends_on(verified, 1)
        assert await reader.unchanged()

    tried = make(WholeKind(act=act), api=api)
    assert (await tried.handle(look())).status == 204
    assert api.asked == [
        "list ConfigMap  3",
        "list ConfigMap a since 1",
        "list Namespace",
        "list ConfigMap b",
        "list ConfigMap c since 4",
        "list ConfigMap d since 4",
        "list ConfigMap e",
    ]
    api.asked.clear()
    assert (await tried.handle(engine.requested(FUNCTION, "still", "o/1", "c"))).status == 204
    assert api.asked == ["list ConfigMap a", "list Namespace"]


async def test_what_is_asked_for_anew_is_read_anew() -> None:
    """What is concluded from the order of two reads, and what is verified, is no matter of what was known before."""
    api = Few(complete=True)

    async def act(_: str, reader: Reader) -> None:
        assert await reader.get(CONFIG_MAP, "c", "n", again=True) == OBJECT

    assert (await make(WholeKind(act=act), api=api).handle(look())).status == 204
    assert api.asked == ["list ConfigMap  3", "get ConfigMap n/c"]
