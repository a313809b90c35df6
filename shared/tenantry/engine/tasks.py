"""Tasks that several wait for, and many at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextvars import Context
from typing import Any, TypeVar

PARALLEL = 50

Item = TypeVar("Item")
Result = TypeVar("Result")


def started(run: Coroutine[Any, Any, Any], context: Context | None = None) -> asyncio.Task[Any]:
    """A task whose failure is nobody's when nobody waits for it any more."""
    task = asyncio.create_task(run, context=context)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return task


async def in_parallel(items: Sequence[Item], do: Callable[[Item], Awaitable[Result]]) -> list[Result]:
    """What ``do`` gives for each, at most `PARALLEL` at a time; who waits for his turn costs no task."""
    done: dict[int, Result] = {}
    left = iter(enumerate(items))

    async def work() -> None:
        for number, item in left:
            done[number] = await do(item)

    await asyncio.gather(*(work() for _ in range(min(len(items), PARALLEL))))
    return [done[number] for number in range(len(items))]
