"""Progress of something slow, for a person: one live line on a terminal, else a line now and then.

Nothing is printed unless the caller hands over a :class:`Progress`; libraries and tests stay silent.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Protocol, TextIO


class Progress(Protocol):
    """Where the steps of something slow are told."""

    def say(self, text: str) -> None:
        """Tell one line that stays."""

    def still(self, text: str) -> None:
        """Tell that something is still going on; may be called many times a second."""


class Silent:
    """Tells nobody."""

    def say(self, text: str) -> None:
        """Drop the line."""

    def still(self, text: str) -> None:
        """Drop the line."""


class Lines:
    """Writes to a stream: a line that is rewritten on a terminal, a line every ``interval`` seconds elsewhere."""

    def __init__(self, stream: TextIO | None = None, interval: float = 20.0) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._terminal = self._stream.isatty() and os.environ.get("TERM") != "dumb"
        self._interval = interval
        self._next = time.monotonic() + interval
        self._open = False

    def say(self, text: str) -> None:
        """Write one line that stays, in place of the live one."""
        self._stream.write(f"\r\x1b[K{text}\n" if self._open else f"{text}\n")
        self._stream.flush()
        self._open = False
        self._next = time.monotonic() + self._interval

    def still(self, text: str) -> None:
        """Rewrite the live line, or write a line when the last one is ``interval`` seconds old."""
        if self._terminal:
            self._stream.write(f"\r\x1b[K{text}")
            self._stream.flush()
            self._open = True
        elif time.monotonic() >= self._next:
            self.say(text)


def duration(seconds: float) -> str:
    """Return ``9 s`` or ``2 min 5 s``."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
