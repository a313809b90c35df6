"""What a unit of work is: the only thing that a new feature has to write.

An *owner* is what a run is for, written ``<type>/<name>`` (``project/p-a``).  The engine maps a key to
owners through `Unit.owners`, observes one owner, lets the pure plan decide, and writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from tenantry.engine.reader import Prefetch, Reader
from tenantry.model.kinds import Key, Kind
from tenantry.model.plan import Plan, Refusal

Observed = TypeVar("Observed")
Owner = str

EVERY: Sequence[Sequence[Owner]] = (("*",),)
"""What `Unit.owners` answers for a key that concerns every owner there is.

They are looked at as in a sweep: planned from one snapshot, and only those that are due are run.
"""

ANY_KIND = Kind("*", "*", "*")
"""Among a unit's kinds: events of kinds that no unit names concern it too, because what it keeps may be of any kind."""


class Unit(Protocol[Observed]):
    """A unit: five methods, of which ``plan`` and ``report`` are pure."""

    name: str
    kinds: frozenset[Kind]
    """The kinds whose events concern this unit."""

    async def owners(self, key: Key, hint: Mapping[str, str], reader: Reader) -> Sequence[Sequence[Owner]]:
        """The owners that a key concerns, in stages: a stage starts when the one before has succeeded; or `EVERY`.

        ``hint`` holds the labels of the event's payload, if it had any.  They may add owners to look at
        when the object is gone, and decide nothing.
        """
        ...

    def accepts(self, owner: Owner) -> bool:
        """Whether this is a well-formed owner of this unit; requests by event may name any."""
        ...

    def pause_s(self, owner: Owner) -> float:
        """Seconds, at least, between two runs for this owner: what arrives meanwhile shares the next one.  0: no pause."""
        ...

    def ended(self, owner: Owner, succeeded: bool) -> None:
        """Told after each run how it ended.  May only keep hints: a process remembers nothing for sure."""
        ...

    async def observe(self, owner: Owner, reader: Reader) -> Observed:
        """Read what the decision needs."""
        ...

    def plan(self, observed: Observed) -> Plan:
        """The writes that make the cluster as declared."""
        ...

    def report(self, observed: Observed, refusals: Sequence[Refusal]) -> Plan:
        """Conditions and Events that tell the user what is wrong, or that it no longer is."""
        ...

    def prefetch(self) -> Sequence[Prefetch]:
        """The lists that a sweep reads once instead of reading objects one by one."""
        ...

    async def sweep(self, reader: Reader) -> Sequence[Owner]:
        """Every owner there is, those whose declaration is gone included."""
        ...


Units = Iterable[Unit[Any]]
"""A function's units.  They look at an event at the same time, and none relies on what another does: they may run apart."""
