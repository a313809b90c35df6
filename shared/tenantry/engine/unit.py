"""What a unit of work is: the only thing that a new feature has to write.

The engine maps the key of an event to owners through `Unit.owners`.  For each owner the `Handler` of its type observes,
decides what is to be written, which is pure, and says how it went.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

from tenantry.engine.last_runs import State
from tenantry.engine.reader import Reader
from tenantry.engine.snapshot import Prefetch
from tenantry.model.identifiers import is_dns_subdomain
from tenantry.model.kinds import Key, Kind
from tenantry.model.plan import NOTHING, Plan, Refusal

Observed = TypeVar("Observed")


class Owner(NamedTuple):
    """What a run is for: ``Owner("project", "p-a")``, ``Owner("chart", "demo", "cattle-helm-system")``.

    As text, in events and logs, ``project/p-a`` and ``chart/cattle-helm-system/demo``.
    """

    type: str
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        return "/".join(part for part in (self.type, self.namespace, self.name) if part)

    @classmethod
    def parse(cls, text: str) -> Owner | None:
        """The owner that a text names; None where it names none."""
        match text.split("/"):
            case [type_, name] if type_ and name:
                return cls(type_, name)
            case [type_, namespace, name] if type_ and namespace and name:
                return cls(type_, name, namespace)
        return None


Stages = Sequence[Sequence[Owner]]
"""Owners whose runs follow one after the other: a stage starts when the one before has succeeded."""

EVERY: Stages = ((Owner("*", "*"),),)
"""What `Unit.owners` answers for a key that concerns every owner there is.

They are looked at as in a sweep: planned from one snapshot, and only those that are due are run.
"""

ANY_KIND = Kind("*", "*", "*")
"""Among a unit's kinds: events of kinds that it does not name concern it too, because what it keeps may be of any kind."""


class OutdatedError(Exception):
    """Raised while observing: what was read belongs to two moments, so it is to be read anew."""


def _nothing(*_: Any) -> Plan:
    return NOTHING


def is_cluster_scoped(owner: Owner) -> bool:
    """Whether an owner has a name that objects can have, and no namespace."""
    return is_dns_subdomain(owner.name) and not owner.namespace


def taken_away(_: Any, plan: Plan) -> frozenset[Hashable]:
    """What a plan takes away: what is usually observed a second time before it is done."""
    return plan.taken_away()


@dataclass(frozen=True, kw_only=True)
class Handler(Generic[Observed]):
    """How the owners of one type are looked after: functions, of which only ``observe`` does I/O.

    >>> Handler[Member](observe=observe_member, plan=plan_member, report=report_member)
    """

    observe: Callable[[Owner, Reader], Awaitable[Observed]]
    """Reads what the decision needs; raises `OutdatedError` when what was read belongs to two moments."""
    plan: Callable[[Observed], Plan] = _nothing
    """The writes that make the cluster as declared."""
    report: Callable[[Observed, Sequence[Refusal]], Plan] = _nothing
    """Status conditions and Events that say what is wrong, or that it no longer is."""
    accepts: Callable[[Owner], bool] = is_cluster_scoped
    """Whether this is a well-formed owner of the type; requests by event may name any."""
    pause_s: float = 0.0
    """Seconds, at least, between two runs for an owner: events that arrive meanwhile share the next one.  0: no pause."""
    party: Callable[[Owner], str] = lambda _: ""
    """For whom a run is (`tenantry.api.turns`), where that is not for whom the events are; empty: it is.  Long runs of many
    owners, as one party, let the short ones of others go first."""
    gathers: bool = False
    """Whether the pause gathers changes of many into one write of a common object: then news do not end it."""
    doubtful: Callable[[Observed, Plan], frozenset[Hashable]] = taken_away
    """What of a plan is done only when a second observation, which reads everything anew, leads to it too."""
    second_look_after_s: Callable[[Observed], float] = lambda _: 0.0
    """Seconds until that second observation."""
    unsettled: Callable[[Observed], bool] = lambda _: False
    """Whether somebody is about to change what was observed: two looks that agree are then not enough, and it is looked again."""
    refused_again_after_s: float = 0.0
    """Seconds after which a run that an admission policy of ours refused something looks once more: the API server gives policies
    their param out of a cache, which is a little behind (p-170).  0: it does not."""
    waits: Callable[[Observed], bool] = lambda _: False
    """Whether a part of what is to be done waits for another run, which is about to change what is in the way: then it is looked
    once more, as after a refusal, and after that the event is tried again."""
    step_by_step: bool = False
    """Whether what comes after a plan's writes is decided from what is there then: it is looked again, until nothing is to be
    written but the report."""
    told_next: bool = False
    """Whether an owner of the next stage tells what was refused for want of a right: then that stage runs although it was."""
    writes_at_once: int = 0
    """How many writes of a run are under way, at most: few where they only tell, beside others on which something waits.
    0: `tenantry.model.limits.WRITES_AT_ONCE`."""
    rests_on_reads: bool = False
    """Whether a run decides by what it reads itself, and by nothing that this process has read for others, and has done all that
    is to be done when it ends well: then events that tell only of what the last run for the owner has read need no run
    (`tenantry.engine.last_runs`)."""
    ended: Callable[[Owner, bool], None] = lambda _, __: None
    """Called after each run with whether it succeeded.  May only keep hints: a process remembers nothing for sure."""
    at_rest: Callable[[Owner, Observed], None] = lambda _, __: None
    """Called in a sweep for an owner that is as declared, with what the lists showed.  May only keep hints."""


class Unit(ABC):
    """One subject of a function."""

    name: str
    kinds: frozenset[Kind]
    """The kinds whose events concern this unit."""
    handlers: Mapping[str, Handler[Any]]
    """By type of owner."""
    states: Mapping[Kind, State] = MappingProxyType({})
    """What of an object of a kind the decisions rest on, where that is less than the whole: a change beside it needs no run."""
    ours: frozenset[Kind] = frozenset()
    """Kinds of which another system may have its own CRD: while that one is served the unit does nothing."""
    readable: frozenset[Kind] = frozenset()
    """Kinds of which an object is read by name to see whether an event needs a run: those that it may get and that are small."""
    leading: Sequence[Owner] = ()
    """Owners whose runs come before anything else is planned in a sweep, where they are due; then lists are read anew.  Where an
    event asks for a sweep and one is under way they run at once, and do not wait for its end, nor for a place among the runs."""

    @abstractmethod
    async def owners(self, key: Key, hint: Mapping[str, str], reader: Reader) -> Stages:
        """The owners that a key concerns; or `EVERY`.

        ``hint`` holds the labels of the event's payload, if it had any.  They may add owners to look at
        when the object is gone, and decide nothing.
        """

    def hinted(self, key: Key, hint: Mapping[str, str]) -> Owner | None:
        """Whom an event says that a key concerns, where that is mostly all.

        It is run before `owners` is asked; where that run knew the object as the event has it, nobody else is looked for.

        Only where what an owner's run has read, and says that it knows (`Reader.knows_only_part`), concerns that owner alone.
        """
        del key, hint
        return None

    @abstractmethod
    def prefetch(self) -> Sequence[Prefetch]:
        """The lists that a sweep reads once instead of reading objects one by one."""

    async def concerned(self, reader: Reader) -> Sequence[Owner]:
        """The owners that a sweep looks at which only events asked for; all of them, where a unit knows no better."""
        return await self.sweep(reader)

    @abstractmethod
    async def sweep(self, reader: Reader) -> Sequence[Owner]:
        """Every owner there is, those whose declaration is gone included."""

    def accepts(self, owner: Owner) -> bool:
        """Whether a handler takes the owner."""
        return owner.type in self.handlers and self.handlers[owner.type].accepts(owner)


Units = Iterable[Unit]
"""A function's units.  They look at an event at the same time, and none relies on what another does: they may run apart."""


def stage(owners: Iterable[Owner]) -> list[list[Owner]]:
    """One stage of owners, each once; no stage where there are none."""
    found = list(dict.fromkeys(owners))
    return [found] if found else []
