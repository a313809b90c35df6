"""How much of the wire one process takes in at a time: bodies by bytes, JSON by its number of values (a-12).

Any client of the port may send the largest body that is accepted, fifty times at once.  So bodies beyond a small size are
read a few at a time, each within a time limit, and JSON is counted before it is parsed: a value costs some 60 to 200 bytes of
memory, whatever its text costs on the wire.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tenantry.model import limits
from tenantry.serving.attributes import BadEvent

_TEXT = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_BEGINNINGS = (b",", b"[", b"{")


def has_more_values(text: bytes, most: int = limits.EVENT_VALUES) -> bool:
    """Whether a JSON text has more values than that, without parsing it: in a few milliseconds for each MiB.

    Each value but the first follows a comma or an opening bracket; those inside texts are not counted.
    """
    if _marks(text) <= most:
        return False
    if text.count(b'"') - text.count(b'\\"') > 4 * most:  # a quote opens or closes the text of a key or a value
        return True
    return _marks(_TEXT.sub(b"", text)) > most


def _marks(text: bytes) -> int:
    return sum(text.count(mark) for mark in _BEGINNINGS)


class Gate:
    """Lets a few large bodies be in memory at a time; small ones pass."""

    def __init__(self) -> None:
        self._large = asyncio.Semaphore(limits.EVENTS_LARGE_AT_ONCE)

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Hold one of the places for large bodies; waits until there is one.

        Raises:
            BadEvent: 408, it was held for longer than `limits.EVENT_READ_S`.
        """
        async with self._large:
            try:
                async with asyncio.timeout(limits.EVENT_READ_S):
                    yield
            except TimeoutError:
                raise BadEvent(408, "the body did not come in time") from None
