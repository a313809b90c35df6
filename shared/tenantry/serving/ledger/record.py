"""What an event tells the ledger, checked: one decision or a part of one, or that a process begins or ends.

An event is signed by one of our functions when it gets here.  It is checked all the same, so that what is stored can be read.
"""

from __future__ import annotations

import json
import zlib
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel

from tenantry.model.event import DECISION_TYPE, DECISIONS_BEGUN_TYPE, DECISIONS_ENDED_TYPE

_Text = Annotated[str, Field(max_length=1024)]
_Name = Annotated[str, Field(min_length=1, max_length=1024)]
_Count = Annotated[int, Field(ge=0, lt=2**53)]


class NoRecord(ValueError):
    """The data of an event are none of ours; the message has nothing of them."""


class _Part(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True, strict=True)


class NamedTold(_Part):
    """An object by its names."""

    api_version: _Text = ""
    kind: _Text = ""
    namespace: _Text = ""
    name: _Text = ""


class CauseTold(NamedTold):
    """What asked for the run: an object's event, or a sweep."""

    sweep: bool = False
    event: _Text = ""
    time: _Text = ""


class InputTold(NamedTold):
    """An object that was read; no version where it was not there."""

    resource_version: _Text = ""


class WriteTold(NamedTold):
    """A write that was carried out."""

    verb: Literal["create", "update", "status", "delete"]
    resource_version: _Text = ""
    changed: tuple[str, ...] = ()
    given_up: tuple[str, ...] = ()
    fields_left_out: _Count = 0
    role: _Text = ""
    subjects_added: tuple[str, ...] = ()
    subjects_removed: tuple[str, ...] = ()
    subjects_left_out: _Count = 0


class RefusedTold(NamedTold):
    """A write that was refused."""

    cause: _Text


class VerdictTold(_Part):
    """How the run ended."""

    status: int
    reason: _Text
    complete: bool


class _OfProcess(_Part):
    instance: _Name
    sequence: _Count
    function: _Name
    service: _Name
    time: _Name


class DecisionTold(_OfProcess):
    """One decision, or a part of one."""

    type: Literal["dev.tenantry.decision"]
    unit: _Name
    owner: _Name
    causes: tuple[CauseTold, ...]
    causes_left_out: _Count = 0
    inputs: tuple[InputTold, ...]
    inputs_left_out: _Count = 0
    writes: tuple[WriteTold, ...]
    refused: tuple[RefusedTold, ...] = ()
    verdict: VerdictTold
    began_ms: _Count
    duration_ms: _Count
    part: int = 1
    parts: int = 1


class BegunTold(_OfProcess):
    """A process begins."""

    type: Literal["dev.tenantry.decisions.begun"]
    host: _Text = ""


class EndedTold(_OfProcess):
    """A process has told everything, and ends."""

    type: Literal["dev.tenantry.decisions.ended"]
    dropped: _Count = 0


Told = DecisionTold | BegunTold | EndedTold
TYPES = frozenset((DECISION_TYPE, DECISIONS_BEGUN_TYPE, DECISIONS_ENDED_TYPE))
_TOLD: TypeAdapter[Told] = TypeAdapter(Annotated[Told, Field(discriminator="type")])


def told_in(data: Any) -> Told:
    """What the data of an event tell.

    Raises:
        NoRecord: they are none of ours.
    """
    try:
        return _TOLD.validate_json(json.dumps(data))  # strict, and lists are tuples: as JSON only
    except (ValidationError, ValueError, RecursionError):
        raise NoRecord("no decision") from None


def packed(value: Any) -> bytes:
    """What is looked at as a whole only, as small as it gets."""
    return zlib.compress(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode(), 6)


def unpacked(blob: bytes) -> Any:
    """From `packed`."""
    return json.loads(zlib.decompress(blob))
