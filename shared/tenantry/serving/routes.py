"""What a function answers to others than senders of events: a question in JSON, by POST, for who has the token of that path.

The token is read anew for each question, so that a new one counts at once; nothing of a question or its headers is logged.
"""

from __future__ import annotations

import hmac
import json
import logging
import os
from collections.abc import Awaitable, Callable, Iterable
from importlib import import_module
from pathlib import Path

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from tenantry.api import Api
from tenantry.api.errors import ApiError
from tenantry.engine.reader import Reader
from tenantry.engine.request import MalformedRequest
from tenantry.model import limits
from tenantry.model.descriptor import Route
from tenantry.serving.attributes import BadEvent
from tenantry.serving.cloudevents import read_body

log = logging.getLogger("tenantry")

ROOT = "/api/"
"""What is below it is no event's, where a function has routes."""


async def answer_question(request: Request, routes: Iterable[Route], connect: Callable[[], Awaitable[Api]]) -> Response:
    """Answer one request below `ROOT`; whoever has no token does not learn more than that."""
    route = next((each for each in routes if each.path == request.scope["path"]), None)
    token = _token(route) if route is not None and request.method == "POST" else b""
    if route is None or not token:
        return PlainTextResponse("not found", 404)
    scheme, _, sent = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not hmac.compare_digest(sent.strip().encode("latin-1"), token):
        return PlainTextResponse("forbidden", 403)
    try:
        question = json.loads(await read_body(request, limits.EVENT_SMALL_BYTES))
        return JSONResponse(await import_module(route.module).answer(question, Reader(await connect())))
    except BadEvent as error:
        return PlainTextResponse(error.reason, error.status)
    except MalformedRequest as error:
        return PlainTextResponse(str(error), 400)
    except (ValueError, RecursionError):
        return PlainTextResponse("no JSON", 400)
    except ClientDisconnect:
        return PlainTextResponse("the sender went away", 400)
    except ApiError as error:
        log.error("%s", error.message)
        return PlainTextResponse("the API server does not answer", 503)  # and not an answer that would be taken for the truth


def _token(route: Route) -> bytes:
    """The token; empty where there is none."""
    try:
        return Path(os.environ.get(route.variable, "")).read_bytes().strip()
    except OSError:
        return b""
