"""Durations as Flux writes them: ``90s`` is read, ``1m30s`` is printed."""

from __future__ import annotations

import re
from decimal import Decimal

_UNITS_MS = {"ms": Decimal(1), "s": Decimal(1000), "m": Decimal(60_000), "h": Decimal(3_600_000)}
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)")
_WHOLE = re.compile(rf"(?:{_PART.pattern})+")
_LONGEST_MS = 2**63 // 10**6
"""What the API server's type holds: 63 bits of nanoseconds."""


def duration(text: str) -> str:
    """A duration in the one form in which Flux' own command prints it (f-147): ``1m0s``, ``1h0m0s``, ``1.5s``, ``500ms``.

    Raises:
        ValueError: it is none, or not longer than nothing; the message says what one looks like.
    """
    if not text.isascii() or _WHOLE.fullmatch(text) is None:
        raise ValueError(f"{text!r} is no duration: write it with units, such as 30s, 1m30s or 2h")
    total = sum((Decimal(number) * _UNITS_MS[unit] for number, unit in _PART.findall(text)), Decimal())
    if not 0 < total <= _LONGEST_MS:
        raise ValueError(f"{text!r} is no usable duration: it must be longer than 0s and shorter than 292 years")
    if total < _UNITS_MS["s"]:
        return f"{_plain(total)}ms"
    minutes, ms = divmod(total, _UNITS_MS["m"])
    hours, minutes = divmod(minutes, 60)
    seconds = f"{_plain(ms / _UNITS_MS['s'])}s"
    if hours:
        return f"{hours:f}h{minutes:f}m{seconds}"
    return f"{minutes:f}m{seconds}" if minutes else seconds


def _plain(number: Decimal) -> str:
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
