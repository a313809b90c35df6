"""Tasks that several wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextvars import Context
from typing import Any


def started(run: Coroutine[Any, Any, Any], context: Context | None = None) -> asyncio.Task[Any]:
    """A task whose failure is nobody's when nobody waits for it any more."""
    task = asyncio.create_task(run, context=context)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return task
