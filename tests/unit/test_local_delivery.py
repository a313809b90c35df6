"""The arithmetic of delivery: durations, retried statuses, delays."""

from __future__ import annotations

from typing import Any

import pytest

from tenantry.local.broker import DEFAULT_DELIVERY
from tenantry.local.dead_letters import dead_letter
from tenantry.local.delivery import backoff, delay, is_retried, parse_duration
from tenantry.local.specs import DeliverySpec
from tenantry.model.event import Event


def spec(**fields: Any) -> DeliverySpec:
    return DeliverySpec.model_validate(fields)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("PT0.2S", 0.2), ("PT1S", 1), ("PT1M30S", 90), ("PT5M", 300), ("P1D", 86400), ("P1DT2H", 93600), ("P2W", 1209600),
     ("PT0S", 0)],
)  # fmt: skip
def test_durations(text: str, seconds: float) -> None:
    """ISO 8601 durations are read as seconds."""
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("value", ["", "P", "PT", "1s", "PT1", "P1Y", "P1M", "-PT1S", "pt1s", "P1DT", 15, 0.5, None, True])
def test_what_is_no_duration(value: object) -> None:
    """Go durations, numbers, years, months and signs are refused."""
    with pytest.raises(ValueError, match="ISO 8601"):
        parse_duration(value)


def test_retried_statuses() -> None:
    """No answer, 404, 408, 409, 429 and everything from 500 are tried again, nothing else."""
    assert [status for status in range(600) if is_retried(status)] == [0, 404, 408, 409, 429, *range(500, 600)]


def test_default_delivery_takes_205_seconds() -> None:
    """The default of a cluster, 10 retries from 0.2 s, doubles up to 102.4 s: 204.6 s in all."""
    delays = [backoff(DEFAULT_DELIVERY, retry) for retry in range(DEFAULT_DELIVERY.retry)]

    assert delays[0] == pytest.approx(0.2)
    assert delays[-1] == pytest.approx(102.4)
    assert sum(delays) == pytest.approx(204.6)


def test_linear_delays_begin_with_none() -> None:
    """Linear: the first retry comes at once, then one delay more each time."""
    linear = spec(retry=3, backoffPolicy="linear", backoffDelay="PT0.5S")

    assert [backoff(linear, retry) for retry in range(3)] == [0, 0.5, 1.0]


@pytest.mark.parametrize("fields", [{"backoffPolicy": "exponential"}, {"backoffDelay": "PT1S"}, {}])
def test_no_policy_or_no_delay_is_no_wait(fields: dict[str, str]) -> None:
    """Policy and delay only count together."""
    assert backoff(spec(retry=3, **fields), 2) == 0


@pytest.mark.parametrize(
    ("limit", "status", "header", "seconds"),
    [
        (None, 503, "9", 1),
        ("PT5S", 503, "9", 5),
        ("PT20S", 429, "9", 9),
        ("PT20S", 500, "9", 1),
        ("PT20S", 503, "0", 1),
        ("PT20S", 503, "soon", 1),
        ("PT20S", 503, "Thu, 01 Jan 1970 00:00:00 GMT", 1),
        ("PT20S", 503, "Fri, 31 Dec 2199 23:59:59 GMT", 20),
        ("PT0S", 503, "9", 1),
    ],
)
def test_retry_after(limit: str | None, status: int, header: str, seconds: float) -> None:
    """Retry-After lengthens the delay on 429 and 503, up to retryAfterMax."""
    fields = {"retryAfterMax": limit} if limit else {}

    assert delay(spec(backoffPolicy="exponential", backoffDelay="PT1S", **fields), 0, status, header) == seconds


def test_dead_letters_say_why() -> None:
    """A dead letter carries who failed, with which status, and the start of the answer."""
    event = Event(id="1", source="/s", type="t", extensions={"kind": "x"})

    assert dict(dead_letter(event, "http://f/", 422, b"no").extensions) == {
        "kind": "x",
        "knativeerrordest": "http://f/",
        "knativeerrorcode": "422",
        "knativeerrordata": "bm8=",
    }
    assert len(dead_letter(event, "http://f/", 500, b"x" * 9000).extensions["knativeerrordata"]) == 1024
    assert dead_letter(event, "http://f/", 0, b"").extensions["knativeerrorcode"] == "500"
