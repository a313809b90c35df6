"""The callable that functions-framework loads: ``--target handle``."""

from __future__ import annotations

import functions_framework.aio
from starlette.requests import Request
from starlette.responses import Response

from lock_enforcement.function import function


@functions_framework.aio.http  # type: ignore[untyped-decorator]
async def handle(request: Request) -> Response:
    """Handle one event."""
    return await function.respond(request)
