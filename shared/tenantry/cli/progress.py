"""What is going on, on stderr, of what takes longer than two seconds."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Self

import click

from tenantry.api import Keep
from tenantry.model.kinds import Object

PROGRESS_S = 2.0


class ReadProgress:
    """Counts objects as they are read, and says every two seconds how many there are: nothing of what is over sooner."""

    def __init__(self, doing: str, every_s: float = PROGRESS_S) -> None:
        self._doing = doing
        self._every_s = every_s
        self._telling: asyncio.Task[None] | None = None
        self._count = 0

    async def __aenter__(self) -> Self:
        self._telling = asyncio.create_task(self._tell())
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._telling is not None:
            self._telling.cancel()
            with suppress(asyncio.CancelledError):
                await self._telling

    def counting(self, keep: Keep) -> Keep:
        """The same ``keep``, counted."""

        def counted(obj: Object) -> Object:
            self.count()
            return keep(obj)

        return counted

    def count(self) -> None:
        """One more."""
        self._count += 1

    async def _tell(self) -> None:
        while True:
            await asyncio.sleep(self._every_s)
            click.echo(f"tenantry: {self._doing}, {self._count:,} objects so far", err=True)
