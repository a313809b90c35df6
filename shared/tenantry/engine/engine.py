"""The engine of one function: events in, verdicts out.

For each owner: observe, plan, write the differences, report, and look again at what the decision was
based on.  Before a plan that takes something away everything is read anew, and planned again.  A lost race
starts over, a bounded number of times.  A fan-out above `FAN_OUT_ABOVE` owners is handed to the broker, one
event for each owner, when there is a broker to hand it to; below, and without one, it is done here, in
parallel and bounded.  A key that concerns every owner is a sweep of its unit: one snapshot says who is due,
and only those are run.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

from tenantry.api import Api
from tenantry.api.errors import ApiError
from tenantry.api.turns import Turns, party
from tenantry.engine import telemetry
from tenantry.engine.context import running_owner
from tenantry.engine.decision import decide, stands_aside
from tenantry.engine.decisions import DecisionNotes, OnDecision
from tenantry.engine.due import LEADS, due
from tenantry.engine.failure import failed, step_aside
from tenantry.engine.flight import Ask, JustRead, SingleFlight, nobody_waits
from tenantry.engine.last_runs import LastRuns, ReadStates, is_ended
from tenantry.engine.news import nothing_new
from tenantry.engine.reader import Reader
from tenantry.engine.request import Ignore, Look, Request, RunOwner, Sweep, party_of, request_of, requested
from tenantry.engine.shared import Shared
from tenantry.engine.snapshot import Lists
from tenantry.engine.tasks import PARALLEL, in_parallel
from tenantry.engine.unit import ANY_KIND, EVERY, OutdatedError, Owner, Stages, Unit, Units
from tenantry.engine.verdict import BUSY, DONE, NOTHING_NEW, NOTHING_TO_DO, Verdict, missing_right, verdict_for, worst
from tenantry.engine.write import OnWrite, Writer
from tenantry.model import limits
from tenantry.model.descriptor import Service
from tenantry.model.event import Event
from tenantry.model.kinds import Key

log = logging.getLogger("tenantry")

ATTEMPTS = 5
FAN_OUT_ABOVE = 50
EVERY_PAUSE_S = 0.25
LED_WITHIN_S = 5.0  # so long a sweep waits for what leads before it looks at lists: side by side both take twice as long
TOLD = "refused and told"
WAITS = "waits for what another run is about to change"
BUG = Verdict(500, "internal error")
TOO_SLOW = Verdict(503, "deadline exceeded")
LONGEST_SWEEP_S = 600.0
DEADLINE_S = 40.0  # below the timeoutSeconds of the Knative Services, so that it is us who answer

Emit = Callable[[Event], Awaitable[None]]


class Engine:
    """One function's units over one API client.

    ``emit`` sends an event to the broker (for fan-outs); ``on_write`` sees every change that is made, ``on_decision`` what each
    run decided.  ``service`` is what this process is, where that is not called like the function.  The value of ``project_label``
    says for whom the requests are that the event of a Namespace takes.
    """

    def __init__(
        self,
        function: str,
        api: Api,
        units: Units,
        *,
        emit: Emit | None = None,
        on_write: OnWrite | None = None,
        deadline_s: float = DEADLINE_S,
        service: Service | None = None,
        on_decision: OnDecision | None = None,
        project_label: str = "",
    ) -> None:
        self.function = function
        self._service = service or Service(function, function)
        self._api = api
        self._units = {unit.name: unit for unit in units}
        self._kinds = {unit.name: {kind.gvk: kind for kind in unit.kinds} for unit in self._units.values()}
        self._kinds_of = {unit.name: {(kind.group, kind.kind) for kind in unit.kinds} for unit in self._units.values()}
        self._emit = emit
        self._emitting = asyncio.Lock()
        self._writer = Writer(api, function, on_write)
        self._decisions = DecisionNotes(on_decision)
        self._flight = SingleFlight()
        self._runs = Turns(limits.RUNS_AT_ONCE)
        self._shared = Shared(
            frozenset(each.kind for unit in self._units.values() for each in unit.prefetch() if not each.narrows)
        )
        self._last = LastRuns()
        self.states = {unit.name: {kind.gvk: state for kind, state in unit.states.items()} for unit in self._units.values()}
        """By unit what of an object is a state of its own (`request_of`)."""
        self._pending = 0
        self._deadline_s = deadline_s
        self._project_label = project_label

    async def handle(self, event: Event) -> Verdict:
        """`answer` what the event asks for.

        Raises:
            MalformedRequest: an event of ours that names nothing.
        """
        return await self.answer(request_of(event, self.function, self.states))

    async def answer(self, request: Request) -> Verdict:
        """Do what is asked for and say how it went."""
        if isinstance(request, Ignore):
            return NOTHING_TO_DO
        if self._pending >= limits.RUNS_PENDING:
            return Verdict(429, "too many events at once", retry_after=1.0)
        self._pending += 1
        party.set(party_of(request, self._project_label))
        try:
            async with asyncio.timeout(self._deadline_s):
                match request:
                    case Look():
                        return await self._look(request)
                    case RunOwner():
                        return await self._run_requested(request)
                    case Sweep():
                        return await self.sweep()
        except TimeoutError:
            return TOO_SLOW
        except ApiError as error:
            return await failed(error, self._api, self._service)
        finally:
            self._pending -= 1

    async def drain(self) -> None:
        """Wait for what runs; call before closing the API client."""
        await self._flight.drain()

    # -- events ----------------------------------------------------------------------------------------

    async def _look(self, request: Look) -> Verdict:
        """Let every unit that the key concerns look; one that fails keeps none of the others back."""
        wanted = (request.key.api_version.rpartition("/")[0], request.key.kind)
        concerned = [unit for unit in self._units.values() if wanted in self._kinds_of[unit.name] or ANY_KIND in unit.kinds]
        if len(concerned) == 1:  # as almost always, and then no task is needed
            return await self._look_of(concerned[0], request)
        return worst(await asyncio.gather(*(self._look_of(unit, request) for unit in concerned)))

    async def _look_of(self, unit: Unit, request: Look) -> Verdict:
        told, reader = request.told.get(unit.name), Reader(self._api, (request.key,), shared=self._shared)
        reader.hear(request.key, told, self._last, partial(_name, unit))
        woken = self._decisions.woken(request.key)
        ask = Ask(
            frozenset({request.key}),
            told={request.key: told} if told is not None else {},
            events=woken,
            parties=frozenset({party.get()}),
        )
        try:
            if await stands_aside(unit, self._api):
                return NOTHING_TO_DO
            if (verdict := await self._run_hinted(unit, request, told, ask)) is not None:
                return verdict
            stages = await unit.owners(request.key, request.hint, reader)
            if stages is EVERY:
                return await self._run_every(unit, ask)
            return await self._run_stages(unit, stages, reader.known, request.key, ask)
        except ApiError as error:
            return await failed(error, self._api, self._service)
        except Exception:
            log.exception("a bug: %s could not look at %s", unit.name, request.key)
            return BUG

    async def _run_hinted(self, unit: Unit, request: Look, told: Hashable, ask: Ask) -> Verdict | None:
        """Run whom the event hints at; None where that run did not know what the event tells, and others are to be looked for."""
        owner = unit.hinted(request.key, request.hint) if told is not None and not is_ended(told) else None
        if owner is None or not unit.accepts(owner):
            return None
        knows = partial(self._last.knows, _name(unit, owner), request.key, told)
        verdict = NOTHING_NEW if knows() else await self._run(unit, owner, ask, {})
        return verdict if knows() else None

    async def _run_stages(self, unit: Unit, stages: Stages, known: JustRead, cause: Key, ask: Ask) -> Verdict:
        verdicts: list[Verdict] = []
        for stage in stages:
            if len(stage) > FAN_OUT_ABOVE and self._emit is not None and stage is stages[-1]:
                await self._fan_out(unit, stage, cause, ask)  # only the last: nothing here waits for its success
                continue
            done = await self._run_all(unit, stage, known, ask)
            known = {}  # what was read before a stage is not live after it
            verdicts += done
            if any(each.status != 204 and each.complete for each in done):
                break
        return worst(verdicts)

    async def _run_every(self, unit: Unit, ask: Ask) -> Verdict:
        """A sweep of the unit; events that come during one share the next, for which only what leads does not wait."""

        async def work(together: Ask, _: JustRead) -> Verdict:
            return await self._sweep_unit(unit, together, every=False)

        if (name := f"{unit.name}:*") in self._flight.busy():
            await self._run_all(unit, unit.leading, {}, ask)
        return await self._flight.run(name, Ask(events=ask.events), {}, work, pause_s=EVERY_PAUSE_S)

    async def _run_all(self, unit: Unit, owners: Sequence[Owner], known: JustRead, ask: Ask) -> list[Verdict]:
        fresh = known if len(owners) <= PARALLEL else {}
        return await in_parallel(owners, lambda owner: self._run(unit, owner, ask, fresh))

    async def _fan_out(self, unit: Unit, owners: Sequence[Owner], cause: Key, ask: Ask) -> None:
        assert self._emit is not None
        emit = self._emit
        async with self._emitting:  # one fan-out after the other: each waits for the broker
            await in_parallel(owners, lambda owner: emit(requested(self.function, unit.name, str(owner), str(cause), ask.events)))

    async def _run_requested(self, request: RunOwner) -> Verdict:
        unit, owner = self._units.get(request.unit), Owner.parse(request.owner)
        if unit is None or owner is None or not unit.accepts(owner) or await stands_aside(unit, self._api):
            return NOTHING_TO_DO
        woken = self._decisions.woken()
        return await self._run(unit, owner, Ask(events=(request.cause,) if woken and request.cause else woken), {})

    # -- one owner -------------------------------------------------------------------------------------

    async def _run(self, unit: Unit, owner: Owner, ask: Ask, known: JustRead) -> Verdict:
        async def work(together: Ask, fresh: JustRead) -> Verdict:
            return await self._reconcile(unit, owner, together, fresh)

        def is_news(of: Ask) -> bool:
            busy = unit.handlers[owner.type].gathers or self._runs.is_full or self._api.turns.is_full
            return not busy and any(not self._last.is_echo(name, key, of.told.get(key)) for key in of.causes)

        name, pause_s = _name(unit, owner), unit.handlers[owner.type].pause_s
        place = self._place if owner not in unit.leading else nobody_waits  # others hold places, and wait for it
        if whom := unit.handlers[owner.type].party(owner):
            ask = replace(ask, parties=frozenset({whom}))
        return await self._flight.run(name, ask, known, work, pause_s=pause_s, place=place, is_news=is_news)

    @asynccontextmanager
    async def _place(self, ask: Ask) -> AsyncIterator[bool]:
        """Hold one of the places for runs."""
        at_once, whom = not self._runs.is_full, self._party_of(ask)
        party.set(whom)
        async with self._runs.turn(whom):
            yield at_once

    def _party_of(self, ask: Ask) -> str:
        """For whom a run is made: of several events for the one of their parties that had the least."""
        return self._api.turns.least(ask.parties) if ask.parties else party.get()

    async def _reconcile(self, unit: Unit, owner: Owner, ask: Ask, known: JustRead) -> Verdict:
        begun, note = time.perf_counter(), self._decisions.note()
        running_owner.set(str(owner))
        with telemetry.tracer.start_as_current_span(
            "reconcile", attributes={"tenantry.unit": unit.name, "tenantry.owner": str(owner)}
        ) as span:
            try:
                self._last.begins(_name(unit, owner))
                noted = ReadStates(self.states[unit.name]) if unit.handlers[owner.type].rests_on_reads else None
                reader = Reader(self._api, ask.causes, known, self._shared, noted)
                reader.note = note
                if noted is not None and await self._knows_all(unit, owner, ask, reader, noted):
                    return NOTHING_NEW
                verdict = await self._converge(unit, owner, ask, reader)
            except ApiError as error:
                verdict = await failed(error, self._api, self._service)
            except Exception:
                log.exception("a bug: the run for %s ended", owner)
                verdict = BUG
            well = verdict.status == 204 and verdict.complete
            unit.handlers[owner.type].ended(owner, well)
            if not well:
                self._last.ended_badly(_name(unit, owner))
            if note is not None:
                told = ask.events, ask.more_events
                self._decisions.ended(unit.name, str(owner), told, note, verdict, span.get_span_context())
            span.set_attribute("tenantry.verdict", verdict.status)
            span.set_attribute("tenantry.writes", verdict.writes)
        telemetry.reconcile_duration.record(time.perf_counter() - begun, {"function": self.function, "unit": unit.name})
        return verdict

    async def _knows_all(self, unit: Unit, owner: Owner, ask: Ask, reader: Reader, noted: ReadStates) -> bool:
        return await nothing_new(self._last, _name(unit, owner), ask, reader, noted, self._kinds[unit.name], unit.readable)

    async def _converge(self, unit: Unit, owner: Owner, ask: Ask, first: Reader) -> Verdict:
        name, states, handler = _name(unit, owner), self.states[unit.name], unit.handlers[owner.type]
        writes, patient, raced = 0, False, False
        gate = asyncio.Semaphore(handler.writes_at_once or limits.WRITES_AT_ONCE)
        for attempt in range(ATTEMPTS):
            try:
                plan, observed, reader = await decide(handler, owner, first.anew(attempt, raced=raced) if attempt else first)
            except OutdatedError as error:
                log.info("%s", error)
                continue
            outcome = await self._writer.write(plan, gate, states, first.note)
            writes += outcome.writes
            self._last.wrote(name, outcome.written)
            raced = raced or outcome.conflict or bool(outcome.refusals)
            if outcome.transient is not None:
                return verdict_for(outcome.transient, writes)
            if outcome.conflict:
                await step_aside(attempt)
                continue
            waits = handler.waits(observed)
            stale = waits or any(each.by_our_policy for each in outcome.refusals)
            stale = stale and not patient and handler.refused_again_after_s > 0
            further = handler.step_by_step and outcome.writes > 0 and not outcome.refusals
            if outcome.deleted or stale or further:  # something is to be made anew, tried once more, or comes next: look again
                await asyncio.sleep(handler.refused_again_after_s if stale else 0)
                patient = patient or stale
                continue
            report = handler.report(observed, tuple(outcome.refusals))
            reported = await self._writer.write(report, gate, states, first.note)
            writes += reported.writes
            self._last.wrote(name, reported.written)
            if reported.transient is not None:
                return verdict_for(reported.transient, writes)
            if reported.conflict:
                await step_aside(attempt)
                continue
            if lacks := [each for each in (*outcome.refusals, *reported.refusals) if each.cause == "rights"]:
                return Verdict(503, missing_right(lacks[0].message), writes=writes, complete=not handler.told_next)
            if waits:
                return Verdict(409, WAITS, writes=writes)
            complete = not outcome.refusals and not reported.refusals
            if not writes or not ask.verify or await reader.unchanged():
                if complete and reader.noted is not None:
                    kinds = self._kinds[unit.name]
                    self._last.ended_well(name, kinds, reader.noted, (*outcome.written, *reported.written))
                if not writes and complete:
                    return NOTHING_TO_DO
                return Verdict(204, DONE.reason if complete else TOLD, writes=writes, complete=complete)
        return Verdict(409, BUSY.reason, writes=writes)

    # -- sweep -----------------------------------------------------------------------------------------

    async def sweep(self) -> Verdict:
        """Run every owner of every unit; owners that a snapshot shows to be as declared cost no request.

        One owner's failure stops no other, and one unit's no other.  A sweep without transient failure counts as complete.
        Who asks during a sweep shares the next one.  Who asks and has to be answered before the end asks again: the sweep
        goes on meanwhile.  One that never ends is given up after `LONGEST_SWEEP_S`.
        """

        async def work(together: Ask, _: JustRead) -> Verdict:
            try:
                async with asyncio.timeout(LONGEST_SWEEP_S):
                    return await self._sweep_all(together)
            except TimeoutError:
                return TOO_SLOW

        return await self._flight.run("*", Ask(events=self._decisions.woken()), {}, work)

    async def _sweep_all(self, ask: Ask) -> Verdict:
        self._api.doubt_missing()
        lists = Lists()  # for the first look of all units, which begin together
        verdict = worst(await asyncio.gather(*(self._sweep_unit(unit, ask, lists) for unit in self._units.values())))
        if verdict.status == 204:
            telemetry.sweep_completed(self.function)
        log.info("sweep: %s, %d writes", verdict.reason, verdict.writes)
        return verdict

    async def _sweep_unit(self, unit: Unit, ask: Ask, lists: Lists | None = None, *, every: bool = True) -> Verdict:
        """Run who is due, and look at lists again after the writes: one look for all in place of one for each.

        Who is due then may not have been before: one owner's writes may be what another waits for.  Only who
        was refused, or failed, is not tried again.
        """
        verdicts: list[Verdict] = []
        asked = replace(ask, verify=False)
        stuck: set[Owner] = set()
        for attempt in range(ATTEMPTS):
            try:
                if await stands_aside(unit, self._api):
                    break
                await self._flight.landed((_name(unit, owner) for owner in unit.leading), LED_WITHIN_S)
                busy = self._flight.busy()  # they may write what they read before the lists: run again
                todo = await due(unit, self._api, lists, busy, stuck, leads=attempt < LEADS, every=every)
            except ApiError as error:
                return worst([*verdicts, await failed(error, self._api, self._service)])
            except Exception:
                log.exception("a bug: %s could not be swept", unit.name)
                return worst([*verdicts, BUG])
            lists = None
            if not todo:
                break
            done = await in_parallel(todo, lambda owner: self._run(unit, owner, asked, {}))
            verdicts += done
            stuck |= {owner for owner, verdict in zip(todo, done, strict=True) if verdict.status != 204 or not verdict.complete}
            leads = attempt < LEADS and all(owner in unit.leading for owner in todo)
            if not leads and not any(verdict.writes for verdict in done):
                break
        return worst(verdicts)


def _name(unit: Unit, owner: object) -> str:
    """An owner's among those of all units."""
    return f"{unit.name}:{owner}"
