"""The HTTP methods that every entry answers: an event by POST, a probe by GET, the handshake by OPTIONS."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

log = logging.getLogger("tenantry")

_ALLOW = {"Allow": "POST, OPTIONS"}


async def respond(
    request: Request,
    take: Callable[[Request], Awaitable[Response]],
    start: Callable[[], Awaitable[object]] | None = None,
) -> Response:
    """Answer one request; ``take`` handles events, and the process is ready when ``start`` has returned once."""
    match request.method, request.scope["path"]:
        case "POST", _:
            return await take(request)
        case "GET" | "HEAD", "/health/liveness" | "/health/readiness" as path:
            try:
                if start is not None and path.endswith("readiness"):
                    await start()
            except Exception:
                log.exception("not ready")
                return PlainTextResponse("not ready", 503)
            return PlainTextResponse("ok")
        case "OPTIONS", _:
            return Response(status_code=200, headers=_ALLOW)
        case _:
            return PlainTextResponse("method not allowed", 405, _ALLOW)
