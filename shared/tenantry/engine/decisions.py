"""Notes of what runs decide, for who listens: nothing is noted, and nothing costs anything, where nobody does.

A `Note` belongs to one run: its readers add what they read, its writer what it wrote.  When the run has ended,
`DecisionNotes.ended` says whether that is a decision: something was written, or the run ended otherwise than the one before for
that owner.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from opentelemetry.trace import SpanContext, format_span_id, format_trace_id

from tenantry.engine.context import event_id, event_time
from tenantry.model import limits
from tenantry.model.decision import Cause, DecisionMade, RefusedWrite, WriteMade, write_made
from tenantry.model.kinds import Key, Kind, Object, key_in
from tenantry.model.plan import Change, Refusal

if TYPE_CHECKING:
    from tenantry.engine.verdict import Verdict

OnDecision = Callable[[DecisionMade], None]
"""Gets each decision when its run has ended; must not wait, and not fail."""


class Note:
    """What one run has read, written and was refused."""

    __slots__ = ("began", "inputs", "inputs_left_out", "refused", "started", "writes", "written")

    def __init__(self) -> None:
        self.began = time.time()
        self.started = time.perf_counter()
        self.inputs: dict[Key, str] = {}
        self.inputs_left_out = 0
        self.writes: list[WriteMade] = []
        self.written: set[Key] = set()
        self.refused: list[RefusedWrite] = []

    def read(self, key: Key, obj: Mapping[str, object] | None) -> None:
        """An object was read, or none was there.  What the run has written itself is no input of it any more."""
        if key in self.written:
            return
        if key not in self.inputs and len(self.inputs) >= limits.DECISION_INPUTS:
            self.inputs_left_out += 1
            return
        metadata = obj.get("metadata") if obj is not None else None
        self.inputs[key] = str(metadata.get("resourceVersion") or "") if isinstance(metadata, dict) else ""

    def listed(self, kind: Kind, items: Sequence[Object]) -> None:
        """Objects were read in a list."""
        for number, item in enumerate(items):
            if len(self.inputs) >= limits.DECISION_INPUTS:
                self.inputs_left_out += len(items) - number
                return
            self.read(key_in(kind, item["metadata"]["name"], item["metadata"].get("namespace", "")), item)

    def wrote(self, change: Change, stored: Object) -> None:
        """A change was made."""
        self.written.add(change.key)
        self.writes.append(write_made(change, stored))

    def was_refused(self, refusal: Refusal) -> None:
        """A change was refused."""
        self.refused.append(RefusedWrite(refusal.key, refusal.cause))


class DecisionNotes:
    """What is told of the runs of one function; nothing without a listener."""

    def __init__(self, listener: OnDecision | None) -> None:
        self._listener = listener
        self._unwell: dict[tuple[str, str], tuple[int, str]] = {}
        """By unit and owner how the last run ended, where it did not end well."""

    def woken(self, key: Key | None = None) -> tuple[Cause, ...]:
        """The event that is handled now, as the cause of what it asks for."""
        return (Cause(key, event_id.get(), event_time.get()),) if self._listener is not None else ()

    def note(self) -> Note | None:
        """For a run that begins; None where nobody listens."""
        return Note() if self._listener is not None else None

    def ended(
        self, unit: str, owner: str, causes: tuple[Sequence[Cause], int], note: Note, verdict: Verdict, span: SpanContext
    ) -> None:
        """Tell of a run that has ended, if it was a decision."""
        assert self._listener is not None
        is_news = self._is_news(unit, owner, verdict)
        if not (note.writes or is_news):
            return
        self._listener(
            DecisionMade(
                unit,
                owner,
                *causes,
                note.inputs,
                note.inputs_left_out,
                note.writes,
                note.refused,
                verdict.status,
                verdict.reason,
                verdict.complete,
                note.began,
                round((time.perf_counter() - note.started) * 1000),
                _traceparent(span),
            )
        )

    def _is_news(self, unit: str, owner: str, verdict: Verdict) -> bool:
        """Whether a run ended otherwise than the one before; of one that is not remembered it is taken that it ended well."""
        name, before = (unit, owner), self._unwell.pop((unit, owner), None)
        if verdict.status == 204 and verdict.complete:
            return before is not None
        now = verdict.status, verdict.reason
        if len(self._unwell) >= limits.REMEMBERED:
            del self._unwell[next(iter(self._unwell))]
        self._unwell[name] = now
        return now != before


def _traceparent(span: SpanContext) -> str:
    if not span.is_valid:
        return ""
    return f"00-{format_trace_id(span.trace_id)}-{format_span_id(span.span_id)}-{span.trace_flags:02x}"
