"""Whether the functions run, when they swept last, what waits and what was given up.

Where a time comes from: on one machine `tenantry up` has seen the answer to the sweep; a Deployment is asked through the API
server.  A Knative Service that may scale to zero has forgotten it with its last pod, and nothing is written at rest: then the
time is not known, and the state says how to learn it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tenantry.model.conditions import find_condition
from tenantry.model.descriptor import Service
from tenantry.model.kinds import Object

_EVERY = re.compile(r"/(\d+) ")
LATE = 2.5
"""Periods of its schedule after which a sweep is late: one may have been missed, and the next is under way."""
_KNATIVE_SWEEP = "scales to zero and keeps no time: see the metric tenantry.sweep.age; a sweep that is given up is a dead letter"


@dataclass(frozen=True, slots=True)
class Told:
    """What one `tenantry up` says: ``document`` is as `tenantry.local.told` has it; it is empty where ``why`` says why."""

    holder: str
    document: Mapping[str, Any]
    why: str = ""


@dataclass(frozen=True, slots=True)
class ServiceState:
    """One Service.  ``up`` is None where nobody can say; ``swept`` is empty before the first sweep and where it is not known."""

    name: str
    function: str
    up: bool | None
    state: str
    swept: str = ""
    every_s: int = 0
    note: str = ""
    failed: bool = False
    """Its last sweep was not complete; it is tried again, and given up as a dead letter."""

    def age_s(self, now: datetime) -> float | None:
        """Seconds since its last complete sweep."""
        return (now - datetime.fromisoformat(self.swept)).total_seconds() if self.swept else None

    def is_late(self, now: datetime) -> bool:
        """Whether a sweep is overdue."""
        age = self.age_s(now)
        return age is not None and bool(self.every_s) and age > LATE * self.every_s

    def is_well(self, now: datetime) -> bool:
        """Whether nothing is known to be wrong."""
        return self.up is not False and not self.is_late(now)

    def document(self, now: datetime) -> Object:
        """As JSON has it; ages in seconds."""
        age = self.age_s(now)
        return {
            "name": self.name,
            "function": self.function,
            "up": self.up,
            "state": self.state,
            "lastSweep": self.swept or None,
            "ageSeconds": round(age) if age is not None else None,
            "everySeconds": self.every_s or None,
            **({"late": True} if self.is_late(now) else {}),
            **({"note": self.note} if self.note else {}),
        }


@dataclass(frozen=True, slots=True)
class GivenUp:
    """A dead letter."""

    function: str
    key: str
    status: int
    count: int
    last: str
    reason: str

    def document(self) -> Object:
        """As JSON has it."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class System:
    """What runs.  ``backlog`` is None where nobody can say; ``events`` are parts of the way of events that are not ready."""

    services: tuple[ServiceState, ...]
    backlog: int | None
    backlog_note: str
    letters: tuple[GivenUp, ...]
    dropped: int
    events: tuple[str, ...]

    def is_well(self, now: datetime) -> bool:
        """Whether nothing is known to be wrong."""
        return all(each.is_well(now) for each in self.services) and not self.letters and not self.events

    def document(self, now: datetime) -> Object:
        """As JSON has it."""
        return {
            "services": [each.document(now) for each in self.services],
            "backlog": {"waiting": self.backlog, **({"note": self.backlog_note} if self.backlog_note else {})},
            "deadLetters": [each.document() for each in self.letters],
            "droppedDeadLetters": self.dropped,
            "notReady": list(self.events),
        }


def period_s(schedule: str) -> int:
    """The period of a schedule of ours, ``3-59/10 * * * *``; 0 where it has another form."""
    found = _EVERY.search(schedule)
    return int(found[1]) * 60 if found else 0


def told_state(service: Service, schedule: str, told: Mapping[str, Any]) -> ServiceState:
    """A Service by what `tenantry up` tells of it."""
    tried, up = told.get("tried") or {}, bool(told.get("up"))
    note, failed = "", bool(tried) and tried.get("status") != 204
    if failed:
        what = f"answered {tried['status']}" if tried.get("status") else "gave no answer"
        note = f"its last sweep {what} at {tried['at']}: see what `tenantry up` printed then"
    elif not told.get("swept"):
        note = "has not swept yet"
    starts = int(told.get("starts") or 0)
    state = f"running, started {starts} times" if starts > 1 and up else "running" if up else "has ended, see `tenantry up`"
    return ServiceState(service.name, service.function, up, state, str(told.get("swept") or ""), period_s(schedule), note, failed)


def knative_state(service: Service, schedule: str, live: Object) -> ServiceState:
    """A Service by its Knative Service."""
    ready = find_condition(live, "Ready") or {}
    status = ready.get("status")
    up = {"True": True, "False": False}.get(str(status))
    why = " ".join(str(ready.get(part) or "") for part in ("reason", "message")).strip()
    state = "ready" if up else why or "not ready yet" if up is None else f"not ready: {why}"
    return ServiceState(service.name, service.function, up, state, "", period_s(schedule), _KNATIVE_SWEEP)


def deployed_state(service: Service, schedule: str, live: Object, swept: str, note: str) -> ServiceState:
    """A Service by its Deployment, and by what it answers."""
    available, wanted = (
        int((live.get("status") or {}).get("availableReplicas") or 0),
        int((live.get("spec") or {}).get("replicas", 1)),
    )
    state = f"{available} of {wanted} available"
    return ServiceState(service.name, service.function, available > 0, state, swept, period_s(schedule), note)


def absent_state(service: Service, schedule: str, up: bool | None, why: str) -> ServiceState:
    """A Service that nothing runs, or that nobody may look at."""
    return ServiceState(service.name, service.function, up, why, "", period_s(schedule))


def not_ready(found: Iterable[tuple[str, Sequence[Object]]]) -> tuple[str, ...]:
    """Sources, Triggers and the Broker that say that they are not ready, with their reason."""
    texts = []
    for kind, objects in found:
        for each in objects:
            ready = find_condition(each, "Ready") or {}
            if ready.get("status") == "False":
                why = " ".join(str(ready.get(part) or "") for part in ("reason", "message")).strip()
                texts.append(f"{kind} {each['metadata']['name']} is not ready: {why}")
    return tuple(sorted(texts))


def time_text(seconds: float | None) -> str:
    """An age for people: ``just now``, ``40 s``, ``5 min``, ``3 h``, ``2 d``."""
    if seconds is None:
        return "unknown"
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size:.0f} {unit}"
    return f"{max(0, seconds):.0f} s"
