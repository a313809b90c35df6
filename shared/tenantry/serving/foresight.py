"""What functions would do about a change: their own units run over the cluster with the change laid on top.

Each object that is changed is told to the units of every function, as an event would tell it; what they write is laid on too, and
told in turn, until nothing changes any more.  What Kubernetes' own controllers do meanwhile is done in their place
(`tenantry.engine.overlay.controllers`).  Units are made anew for each look, so that nothing is spared because of a hint, and no
run waits: where one would wait before it looks again, all else is done meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Self

from pydantic_core import to_json

from tenantry.api import Api
from tenantry.engine import Engine, Verdict
from tenantry.engine.context import running_owner
from tenantry.engine.overlay.api import OverlayApi
from tenantry.engine.overlay.asking import DryRuns
from tenantry.engine.overlay.controllers import Controllers
from tenantry.engine.overlay.store import NOBODY, Actor, Overlay, Written, acting
from tenantry.engine.reader import Reader
from tenantry.engine.request import Look, Request, RunOwner, Sweep
from tenantry.engine.unit import ANY_KIND, Handler, Owner, Unit
from tenantry.model.config import Config
from tenantry.model.descriptor import Descriptor, Service
from tenantry.model.kinds import Key, Kind, Object, labels_of
from tenantry.model.names import SYSTEM_NAMESPACE, field_manager
from tenantry.serving.function import Function, Settings
from tenantry.serving.installed import descriptor_of

LOOKS = 20_000
"""Looks, at most: who has not come to rest then never does."""
SAME_STATES = 8
"""So often, at most, one function makes an object what it was before: then it counts as coming to no rest."""
LONGEST_S = 3600.0
YIELD_S = 0.002
"""A run that waits looks so often whether others still run."""


_waits: ContextVar[bool] = ContextVar("waits", default=False)
"""Whether the run of this task would wait before it looks again."""
_asking: ContextVar[tuple[str, str]] = ContextVar("asking", default=("", ""))
"""Service and unit that are asked."""
_meanwhile: ContextVar[bool] = ContextVar("meanwhile", default=False)
"""Whether a run waits while this is done."""


@dataclass(frozen=True, slots=True)
class StuckUnit:
    """A unit that did not come to an end with something: what it was asked, and what it answered."""

    service: str
    unit: str
    about: str
    reason: str


@dataclass(slots=True)
class Foreseen:
    """What would come of a change."""

    written: list[Written]
    problems: list[StuckUnit] = field(default_factory=list)
    restless: str = ""
    """What was written again and again, if something was."""


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """A Service of a function with its view of the cluster."""

    service: Service
    function: Function
    settings: Settings
    over: OverlayApi
    kinds: Mapping[str, frozenset[tuple[str, str]]]
    """By unit, group and kind of what concerns it."""


@dataclass(slots=True)
class _Asked:
    """A request for one unit of a Service."""

    request: Request
    step: int
    cause: str
    of: tuple[str, str]


class Foresight:
    """Functions over one cluster and one overlay.  Made by `foresight`."""

    def __init__(self, parts: Sequence[PlannedPart], hands: OverlayApi, kinds: Iterable[Kind], bugs: Bugs) -> None:
        self.hands = hands
        """The API by which the change itself is made: what is written with it is laid on, as the change."""
        self.overlay = hands.overlay
        self.looks = 0
        self._parts = parts
        self._controllers = Controllers(hands, kinds)
        self._restless = ""
        self._running: set[tuple[str, str, Owner]] = set()
        self._sleeping = 0
        self._held: set[tuple[str, str]] = set()
        self._noted = 0
        self._queue: dict[str, _Asked] = {}
        self._later: dict[str, tuple[_Asked, Verdict, int]] = {}
        self._counts: Counter[tuple[str, Key, int]] = Counter()
        self._bugs = bugs

    async def to_rest(self, said: Callable[[], None] = lambda: None) -> Foreseen:
        """Follow what was laid on until nothing changes; ``said`` hears of each look that is done."""
        await self._work_off(said)
        while not self._restless and (await self._controllers.later(self._step()) or self._again()):
            await self._work_off(said)
        problems = [
            StuckUnit(
                *asked.of,
                about=_about(asked.request),
                reason=self._bugs.said.get(_about(asked.request), verdict.reason),
            )
            for asked, verdict, _ in self._later.values()
        ]
        acting.set(NOBODY)
        return Foreseen(self.overlay.written, problems, self._restless)

    async def _work_off(self, said: Callable[[], None] = lambda: None) -> None:
        """Have all looked at that is to be looked at, and what is written meanwhile."""
        while not self._restless:
            self._controllers.note()
            self._restless = self._tell()
            name = next((name for name, each in self._queue.items() if each.of not in self._held), None)
            if name is None:
                return
            asked = self._queue.pop(name)
            await self._ask(asked)
            self.looks += 1
            said()
            if self.looks > LOOKS:
                self._restless = f"{len(self._queue)} objects are still to be looked at"

    async def _others_first(self) -> None:
        """Where a run waits before it looks again: what other runs and units are to do is done meanwhile.

        The same unit has to wait for it, as runs for one owner do; and what is done meanwhile waits for nothing.  Of runs that
        all wait the first goes on.
        """
        self._sleeping += 1
        while len(self._running) > self._sleeping:  # noqa: ASYNC110 - each is told by a callback of the engine, not awaited
            await asyncio.sleep(YIELD_S)
        self._sleeping -= 1
        who, owner, inside, of = acting.get(), running_owner.get(), _meanwhile.set(True), _asking.get()
        self._held.add(of)
        await self._work_off()
        self._held.discard(of)
        _meanwhile.reset(inside)
        _asking.set(of)
        acting.set(who)
        running_owner.set(owner)

    def sweep(self) -> None:
        """Have every owner of every unit looked at: what a schedule asks for."""
        for part in self._parts:
            for unit in part.kinds:
                self._add(_Asked(Sweep(), 1, "the sweep", (part.service.name, unit)))

    def run(self, owner: Owner, function: str = "", unit: str = "") -> list[tuple[str, str]]:
        """Have one owner looked at, by the units that know its type; they are returned."""
        found = []
        for part in self._parts:
            for each in self._fresh(part):
                fits = function in ("", part.service.function) and unit in ("", each.name)
                if fits and each.accepts(owner):
                    found.append((part.service.name, each.name))
        for of in found:
            self._add(_Asked(RunOwner(of[1], str(owner)), 1, f"owner {owner}", of))
        return found

    @property
    def units(self) -> dict[str, list[str]]:
        """The units of each Service that is asked."""
        return {part.service.name: list(part.kinds) for part in self._parts}

    def _step(self) -> int:
        return max((each.actor.step for each in self.overlay.written), default=0) + 1

    def _add(self, asked: _Asked) -> None:
        self._queue.setdefault(_name(asked), asked)

    def _tell(self) -> str:
        """Have what was written since looked at; says what is written without end."""
        for written in self.overlay.written[self._noted :]:
            self._noted += 1
            hint = {str(name): str(value) for name, value in labels_of(written.after or written.before).items()}
            for of in self._concerned(written.key):
                self._add(_Asked(Look(written.key, hint), written.actor.step + 1, str(written.key), of))
            state = written.actor.name, written.key, _state(written.after)
            self._counts[state] += 1
            if written.actor.unit and self._counts[state] > SAME_STATES:
                return f"{written.actor.name} writes {written.key} again and again"
        return ""

    async def _ask(self, asked: _Asked) -> None:
        if not _meanwhile.get():
            self._running.clear()  # whatever ended without saying so
            self._sleeping = 0
        part = next(each for each in self._parts if each.service.name == asked.of[0])
        unit = next(each for each in self._fresh(part) if each.name == asked.of[1])
        acting.set(Actor(part.service.function, unit.name, asked.cause, asked.step))
        running_owner.set("")
        _asking.set(asked.of)
        engine = Engine(part.service.function, part.over, [unit], deadline_s=LONGEST_S, service=part.service)
        self._bugs.about = _about(asked.request)
        verdict = await engine.answer(asked.request)
        await engine.drain()
        if verdict.status == 204:
            self._later.pop(_name(asked), None)
        else:
            self._later[_name(asked)] = asked, verdict, len(self.overlay.written)

    def _concerned(self, key: Key) -> Iterator[tuple[str, str]]:
        """The units that a key concerns, each with its Service."""
        wanted = {(key.api_version.rpartition("/")[0], key.kind), (ANY_KIND.group, ANY_KIND.kind)}
        for part in self._parts:
            yield from ((part.service.name, unit) for unit, kinds in part.kinds.items() if wanted & kinds)

    def _fresh(self, part: PlannedPart) -> list[Unit]:
        return [self._hurried(unit) for unit in part.function.units(part.settings)]

    def _hurried(self, unit: Unit) -> Unit:
        """The unit with handlers that wait for nothing."""
        unit.handlers = {name: self._handler(each) for name, each in unit.handlers.items()}
        return unit

    def _handler(self, handler: Handler[Any]) -> Handler[Any]:
        def ended(owner: Owner, well: bool) -> None:
            self._running.discard((*_asking.get(), owner))
            handler.ended(owner, well)

        def second_look_after_s(observed: Any) -> float:
            _waits.set(handler.second_look_after_s(observed) > 0 and not _meanwhile.get())
            return 0.0

        async def observe(owner: Owner, reader: Reader) -> Any:
            if _waits.get():
                _waits.set(False)
                await self._others_first()
            if reader.live:
                self._running.add((*_asking.get(), owner))
            return await handler.observe(owner, reader)

        return replace(
            handler,
            observe=observe,
            pause_s=0.0,
            refused_again_after_s=0.0,
            second_look_after_s=second_look_after_s,
            ended=ended,
        )

    def _again(self) -> bool:
        """Ask again what did not end well, where something has changed since."""
        for name, (asked, _, count) in self._later.items():
            if count < len(self.overlay.written):
                self._queue.setdefault(name, asked)
        return bool(self._queue)


@asynccontextmanager
async def foresight(
    config: Config,
    services: Iterable[Service],
    *,
    kubeconfig: Path | None = None,
    hands: str = "kubectl",
    ask: DryRuns | None = None,
    as_functions: bool = False,
) -> AsyncIterator[Foresight]:
    """Connect, and lay nothing on yet.

    Args:
        config: the configuration that the functions have, or would have.
        services: those that are asked.
        hands: the field manager of the change itself.
        ask: by which the server is asked about each write; default: it is not.
        as_functions: questions about writes are asked in the name of each Service's account.

    Raises:
        ConfigError: a function cannot be made with this configuration.
    """
    overlay = Overlay()
    async with AsyncExitStack() as stack:
        bugs = stack.enter_context(Bugs())
        live = await stack.enter_async_context(await Api.connect(field_manager=hands, kubeconfig=kubeconfig))
        parts: list[PlannedPart] = []
        kinds: dict[tuple[str, str], Kind] = {}
        for service in services:
            descriptor = descriptor_of(service.function)
            function, settings = function_of(descriptor), Settings(config, service.duty)
            manager = field_manager(service.function)
            asking = None
            if ask is not None:
                user = f"system:serviceaccount:{SYSTEM_NAMESPACE}:{service.name}" if as_functions else ""
                asking = await stack.enter_async_context(
                    await Api.connect(field_manager=manager, kubeconfig=kubeconfig, user=user)
                )
            units = list(function.units(settings))
            every = [kind for unit in units for kind in (*unit.kinds, *(each.kind for each in unit.prefetch()))]
            every += [each.kind for each in descriptor.makes]
            kinds |= {(kind.group, kind.kind): kind for kind in every if kind != ANY_KIND}
            named = {unit.name: frozenset((kind.group, kind.kind) for kind in unit.kinds) for unit in units}
            over = OverlayApi(live, overlay, field_manager=manager, keeps=function.keeps, ask=ask, asking=asking)
            parts.append(PlannedPart(service, function, settings, over, named))
        yield Foresight(parts, OverlayApi(live, overlay, ask=ask), kinds.values(), bugs)


def function_of(descriptor: Descriptor) -> Function:
    """The function that a descriptor describes."""
    package = descriptor.units[0][0].partition(".")[0]
    function: Function = import_module(f"{package}.function").function
    return function


class Bugs(logging.Handler):
    """Keeps quiet what engines log while they plan, but for bugs, whose messages it keeps."""

    def __init__(self) -> None:
        super().__init__()
        self.said: dict[str, str] = {}
        self.about = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a bug's message."""
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            self.said[self.about] = f"a bug: {type(error).__name__}: {error}"

    def __enter__(self) -> Self:
        log = logging.getLogger("tenantry")
        self._before = log.propagate
        log.propagate = False
        log.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        log = logging.getLogger("tenantry")
        log.removeHandler(self)
        log.propagate = self._before


def _state(obj: Object | None) -> int:
    """An object's state, without what only counts."""
    if obj is None:
        return 0
    counted = ("resourceVersion", "generation", "managedFields")
    metadata = {name: value for name, value in obj["metadata"].items() if name not in counted}
    return hash(to_json({**obj, "metadata": metadata}))


def _about(request: Request) -> str:
    match request:
        case Look():
            return str(request.key)
        case RunOwner():
            return f"owner {request.owner}"
        case _:
            return "the sweep"


def _name(asked: _Asked) -> str:
    about = repr(asked.request.key) if isinstance(asked.request, Look) else _about(asked.request)
    return f"{asked.of} {about}"
