"""What one run decided, as a value: why it was made, what it read, what it wrote and how it ended.

It names objects and fields, and never holds a value of a field, so what Secrets hold cannot be in it.  Of bindings it names
role and subjects too, because people ask who got which right because of what; they are names, and no secrets.

`DecisionMade.documents` are the data of the CloudEvents ``dev.tenantry.decision``, whose form docs/history.md gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tenantry.model import limits
from tenantry.model.kinds import CLUSTER_ROLE_BINDING, ROLE_BINDING, Key, Object
from tenantry.model.plan import Apply, Change, PutBack, Write

_BINDINGS = (ROLE_BINDING.gvk, CLUSTER_ROLE_BINDING.gvk)


@dataclass(frozen=True, slots=True)
class Cause:
    """What asked for a run: the event, and the object that it told of; no object where all owners are looked at."""

    key: Key | None = None
    event: str = ""
    """The id of the event."""
    time: str = ""
    """When its source says that it happened, as the source writes it; empty where it says nothing."""

    def document(self) -> Object:
        """As JSON: the object's names, or ``sweep``, with the event."""
        what: Object = named(self.key) if self.key is not None else {"sweep": True}
        return what | {name: text for name, text in (("event", self.event), ("time", self.time)) if text}


@dataclass(frozen=True, slots=True)
class WriteMade:
    """One write that was carried out: verb, object, paths of fields; of a binding its role, and the subjects that came or went.

    ``version`` is the resourceVersion that the object is stored with; empty of what was deleted.
    """

    verb: str
    key: Key
    version: str = ""
    changed: tuple[str, ...] = ()
    given_up: tuple[str, ...] = ()
    left_out: int = 0
    """Paths that had no room."""
    role: str = ""
    """``ClusterRole/view`` or ``Role/name`` of a binding."""
    added: tuple[str, ...] = ()
    """Subjects, as `subject_name` writes them."""
    removed: tuple[str, ...] = ()
    subjects_left_out: int = 0

    def document(self) -> Object:
        """As JSON, without what is empty."""
        parts = {
            "resourceVersion": self.version,
            "changed": list(self.changed),
            "givenUp": list(self.given_up),
            "fieldsLeftOut": self.left_out,
            "role": self.role,
            "subjectsAdded": list(self.added),
            "subjectsRemoved": list(self.removed),
            "subjectsLeftOut": self.subjects_left_out,
        }
        return {"verb": self.verb, **named(self.key)} | {name: value for name, value in parts.items() if value}


@dataclass(frozen=True, slots=True)
class RefusedWrite:
    """A write that the API server refused: the object and the sort of cause, never the server's words, which quote values."""

    key: Key
    cause: str

    def document(self) -> Object:
        """As JSON."""
        return {**named(self.key), "cause": self.cause}


@dataclass(frozen=True, slots=True)
class DecisionMade:
    """One run that wrote something, or ended otherwise than the run before."""

    unit: str
    owner: str
    causes: Sequence[Cause]
    causes_left_out: int
    inputs: Mapping[Key, str]
    """The resourceVersion of each object that was read; empty of one that was not there."""
    inputs_left_out: int
    writes: Sequence[WriteMade]
    refused: Sequence[RefusedWrite]
    status: int
    reason: str
    complete: bool
    began: float
    """Seconds since 1970."""
    duration_ms: int
    traceparent: str = ""

    def parts(self) -> list[Sequence[WriteMade]]:
        """The writes in portions, each of which names no more than fits into an event, or is a single write."""
        made: list[list[WriteMade]] = [[]]
        texts = 0
        for write in self.writes:
            names = 1 + len(write.changed) + len(write.given_up) + len(write.added) + len(write.removed)
            texts += names
            if made[-1] and texts > limits.DECISION_TEXTS:
                made.append([])
                texts = names
            made[-1].append(write)
        return [*made]

    def documents(self) -> Iterator[Object]:
        """As JSON: one document, or several where the writes name more than `limits.DECISION_TEXTS`; each has all the rest."""
        parts = self.parts()
        common = {
            "unit": self.unit,
            "owner": self.owner,
            "causes": [each.document() for each in self.causes],
            "causesLeftOut": self.causes_left_out,
            "inputs": [{**named(key), "resourceVersion": version} for key, version in self.inputs.items()],
            "inputsLeftOut": self.inputs_left_out,
            "refused": [each.document() for each in self.refused[: limits.DECISION_REFUSED]],
            "verdict": {"status": self.status, "reason": self.reason, "complete": self.complete},
            "beganMs": int(self.began * 1000),
            "durationMs": self.duration_ms,
        }
        for number, writes in enumerate(parts, 1):
            yield {**common, "part": number, "parts": len(parts), "writes": [each.document() for each in writes]}


def write_made(change: Change, stored: Object) -> WriteMade:
    """What a change did, whose object is stored as ``stored`` now (of a deletion: was)."""
    write, why, is_gone = change.write, change.why, change.verb == "delete"
    paths, lost = (why.changed, why.given_up) if why is not None else ((), ())
    most, people = limits.DECISION_FIELDS, limits.DECISION_SUBJECTS
    role, added, removed = "", frozenset[str](), frozenset[str]()
    if change.key.gvk in _BINDINGS:
        before = write.live
        after = None if is_gone else _wanted(write) or before
        role = role_of(after or before)
        had, has = subjects_in(before), subjects_in(after)
        added, removed = has - had, had - has
    return WriteMade(
        change.verb,
        change.key,
        "" if is_gone else str(stored["metadata"].get("resourceVersion") or ""),
        paths[:most],
        lost[:most],
        max(0, len(paths) - most) + max(0, len(lost) - most),
        role,
        tuple(sorted(added))[:people],
        tuple(sorted(removed))[:people],
        max(0, len(added) - people) + max(0, len(removed) - people),
    )


def _wanted(write: Write) -> Object | None:
    match write:
        case Apply():
            return write.wanted
        case PutBack():
            return write.body
    return None


def subject_name(subject: Mapping[str, Any]) -> str:
    """A subject of a binding as text: ``User/alice``, ``Group/devs``, ``ServiceAccount/namespace/name``."""
    parts = (subject.get("kind"), subject.get("namespace"), subject.get("name"))
    return "/".join(str(part)[: limits.DECISION_NAME_CHARACTERS] for part in parts if part)


def subjects_in(binding: Object | None) -> frozenset[str]:
    """The names of a binding's subjects; none of no binding."""
    return frozenset(subject_name(each) for each in (binding or {}).get("subjects") or () if isinstance(each, dict))


def role_of(binding: Object | None) -> str:
    """The role of a binding: ``ClusterRole/view``; empty where it names none."""
    reference = (binding or {}).get("roleRef") or {}
    return f"{reference['kind']}/{reference['name']}" if reference.get("kind") and reference.get("name") else ""


def named(key: Key) -> Object:
    """An object by its names, as JSON."""
    where = {"namespace": key.namespace} if key.namespace else {}
    return {"apiVersion": key.api_version, "kind": key.kind, **where, "name": key.name}
