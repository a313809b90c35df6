"""What runs between ``async with`` and its end, and is made of parts that do."""

from __future__ import annotations

from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self


class Lasting:
    """What `_start` enters into ``_stack`` ends with it, the last first; also when `_start` fails or is cancelled."""

    def __init__(self) -> None:
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._stack.aclose()

    async def _start(self) -> None:
        raise NotImplementedError
