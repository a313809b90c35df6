"""The conformance table on the parser alone: the same rows that the HTTP entry has to answer."""

from __future__ import annotations

import traceback

import pytest
from rows import ACCEPTED, CANARY, REFUSED, Row
from samples import SAMPLES, Sample

from tenantry.model.event import Event
from tenantry.serving.cloudevents import BadEvent, parse_event


@pytest.mark.parametrize("row", ACCEPTED)
def test_accepts(row: Row) -> None:
    """Every request that the table accepts becomes an event with the required attributes."""
    event = parse_event(row.headers, row.body)

    assert isinstance(event, Event)
    assert all((event.id, event.source, event.type))


@pytest.mark.parametrize("row", REFUSED)
def test_refuses(row: Row) -> None:
    """Every request that the table refuses is refused with its status, in a few words that echo nothing."""
    with pytest.raises(BadEvent) as refused:
        parse_event(row.headers, row.body)

    assert refused.value.status == row.parsed
    assert 0 < len(refused.value.reason.encode()) < 100
    told = refused.value.reason + "".join(traceback.format_exception_only(refused.value))
    assert CANARY not in told.lower()
    assert refused.value.__context__ is None


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_both_modes_of_a_sample_are_one_event(sample: Sample) -> None:
    """Each minimal event is the same event in binary and in structured mode, with the data that was sent."""
    binary = parse_event(*sample.binary())
    structured = parse_event(*sample.structured())

    assert structured == binary
    assert binary.data == sample.data
    assert binary.datacontenttype == sample.content_type
