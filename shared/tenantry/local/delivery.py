"""The arithmetic of delivery: which answers are tried again, and after which delay.

The rules are those of the channel-based broker of Knative 1.22, as seen on the real binaries.  Tried again: no answer at
all, 404, 408, 409, 429 and everything from 500.  Not: every other 4xx, and every 3xx (the real one follows redirects
first; here they are failures, since a function must not send them).  The delay before retry n (n from 0) is delay * 2^n
when exponential, delay * n when linear (so the first retry comes at once), and zero when policy or delay is missing.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tenantry.local.specs import DeliverySpec

NO_ANSWER = 0
"""The status of a try that got no answer: refused, reset, timed out."""
NOT_AN_EVENT = 502
"""A 2xx whose body is no CloudEvent counts as this, and is tried again."""
BROKEN_REPLY = 400
"""A 2xx whose CloudEvent is broken counts as this, and is not tried again."""
ERROR_BODY_LIMIT = 768
"""Bytes of an error's body beyond which the real dispatcher crashes when there is a dead-letter sink."""

_RETRIED = frozenset((404, 408, 409, 429))
_DURATION = re.compile(
    r"P(?:(?P<w>[0-9]+)W)?(?:(?P<d>[0-9]+)D)?"
    r"(?:T(?=[0-9])(?:(?P<h>[0-9]+)H)?(?:(?P<m>[0-9]+)M)?(?:(?P<s>[0-9]+(?:[.,][0-9]+)?)S)?)?"
)
_UNITS = {"w": 604800.0, "d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0}


def parse_duration(value: object) -> float:
    """Seconds of an ISO 8601 duration such as ``PT0.2S`` or ``P1DT2H``.

    Raises `ValueError`, also for years and months, which have no fixed length, and for plain numbers.
    """
    found = _DURATION.fullmatch(value) if isinstance(value, str) else None
    parts = {unit: text for unit, text in found.groupdict().items() if text} if found else {}
    if not parts:
        raise ValueError(f"{value!r} is not an ISO 8601 duration such as PT0.2S, PT30S or PT5M")
    return sum(float(text.replace(",", ".")) * _UNITS[unit] for unit, text in parts.items())


def timestamp() -> str:
    """Now, as the ``time`` of an event: RFC 3339 in UTC."""
    return datetime.now(UTC).isoformat(timespec="microseconds")[:-6] + "Z"


def is_success(status: int) -> bool:
    """Whether the answer ends the delivery well."""
    return 200 <= status < 300


def is_retried(status: int) -> bool:
    """Whether a try with this outcome is followed by another one."""
    return status == NO_ANSWER or status >= 500 or status in _RETRIED


def backoff(spec: DeliverySpec, retry: int) -> float:
    """Seconds before the retry of this number, from 0."""
    if spec.backoff_policy is None or spec.backoff_delay is None:
        return 0.0
    if spec.backoff_policy == "linear":
        return spec.backoff_delay * retry
    return spec.backoff_delay * float(2**retry)


def delay(spec: DeliverySpec, retry: int, status: int, retry_after: str | None) -> float:
    """Seconds before the retry, ``Retry-After`` included: the longer of the two counts.

    The header counts on 429 and 503 only, and only up to ``retryAfterMax``, without which it is ignored.
    """
    seconds = backoff(spec, retry)
    if spec.retry_after_max and retry_after and status in (429, 503):
        seconds = max(seconds, min(_seconds(retry_after), spec.retry_after_max))
    return seconds


def _seconds(header: str) -> float:
    if header.isdecimal():
        return float(header)
    try:
        when = parsedate_to_datetime(header)
    except ValueError:
        return 0.0
    return max(0.0, (when.replace(tzinfo=when.tzinfo or UTC) - datetime.now(UTC)).total_seconds())
