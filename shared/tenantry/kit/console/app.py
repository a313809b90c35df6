"""The routes of the console, behind one door: this machine's own address, the token, and GET alone.

A web page cannot reach it by a name that leads here (``Host``), nor guess the token, which is in the path; and no answer says
that another origin may read it.  Another user of the machine has no token either.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from tenantry.api.errors import ApiError
from tenantry.cli.one_line import WrongUse
from tenantry.kit.console.asked import about, who_can
from tenantry.kit.console.decided import Decided
from tenantry.kit.console.live import Live
from tenantry.kit.console.page import page, policy
from tenantry.kit.console.running import Running
from tenantry.serving.config import ConfigError

KEEP_S = 15.0
"""So often something is sent, so that a page that has gone is noticed."""
AGAIN_MS = 2000
"""After so long a page whose stream broke asks again."""
_HEADERS = {
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
NO_TOKEN = "not allowed: open the whole address that `tenantry console` printed"  # noqa: S105 - it is none
NO_HOST = "not allowed: this is served on this machine only, at the address that `tenantry console` printed"
ONLY_GET = "not allowed: this page is for looking, so it answers to GET only"


class App:
    """The ASGI application."""

    def __init__(self, live: Live, decided: Decided, running: Running, token: str, port: int) -> None:
        self._live = live
        self._decided = decided
        self._running = running
        self._prefix = f"/{token}".encode()
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        headers = {**_HEADERS, "content-security-policy": policy()}
        self._headers = [(name.encode(), value.encode()) for name, value in headers.items()]
        self._routes = Starlette(
            routes=[
                Route("/", self._page, methods=["GET"]),
                Route("/map", self._map, methods=["GET"]),
                Route("/about", self._about, methods=["GET"]),
                Route("/can", self._can, methods=["GET"]),
                Route("/events", self._events, methods=["GET"]),
            ]
        )

    def end(self) -> None:
        """Let streams end: the server waits for them."""
        self._live.news.end()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        path = scope["path"].encode("latin-1", "replace")
        head, slash, rest = path[1:].partition(b"/")
        refused = self._refused(Request(scope), b"/" + head)
        inner: Any = refused or (self._routes if slash else RedirectResponse(f"{self._prefix.decode()}/"))

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *self._headers]}
            await send(message)

        inside = f"/{rest.decode('latin-1')}"
        await inner({**scope, "path": inside, "raw_path": inside.encode("latin-1"), "root_path": ""}, receive, sending)

    def _refused(self, request: Request, prefix: bytes) -> Response | None:
        if request.headers.get("host", "") not in self._hosts:
            return PlainTextResponse(NO_HOST, 403)
        if request.method != "GET":
            return PlainTextResponse(ONLY_GET, 405, {"allow": "GET"})
        return None if hmac.compare_digest(prefix, self._prefix) else PlainTextResponse(NO_TOKEN, 403)

    async def _page(self, _: Request) -> Response:
        return HTMLResponse(page(self._live.text))

    async def _map(self, _: Request) -> Response:
        return Response(self._live.text, media_type="application/json")

    async def _about(self, request: Request) -> Response:
        try:
            return JSONResponse(await about(self._live, self._decided, request.query_params))
        except WrongUse as error:
            return JSONResponse({"error": error.message}, 404)

    async def _can(self, request: Request) -> Response:
        try:
            return JSONResponse(await who_can(self._live.api, request.query_params))
        except (ApiError, ConfigError, WrongUse) as error:
            return JSONResponse({"error": getattr(error, "message", str(error))}, 400)

    async def _events(self, request: Request) -> Response:
        """Server-sent events: ``map`` (it is newer), ``state``, ``running``, ``story``; the id says what a page has had."""
        had = request.headers.get("last-event-id") or request.query_params.get("had", "")
        version, _, number = had.partition(".")
        stream = self._stream(_number(version), _number(number))
        return StreamingResponse(stream, media_type="text/event-stream")

    async def _stream(self, version: int, number: int) -> AsyncIterator[str]:
        live, decided, news, told, running = self._live, self._decided, self._live.news, None, 0
        yield f"retry: {AGAIN_MS}\n\n"
        with news:
            while not news.ended:
                coming = news.next()
                if (state := {"old": live.old, "noDecisions": decided.missing}) != told:
                    told = state
                    yield _event("state", state)
                if live.version != version:
                    version = live.version
                    yield _event("map", {"version": version}, f"{version}.{number}")
                if decided.version != number:
                    number = decided.version
                    yield _event("story", decided.told, f"{version}.{number}")
                if self._running.version != running:
                    running = self._running.version
                    yield _event("running", self._running.told)
                with suppress(TimeoutError):
                    async with asyncio.timeout(KEEP_S):
                        await coming.wait()
                        continue
                yield ":\n\n"


def _event(name: str, data: Any, number: str = "") -> str:
    numbered = f"id: {number}\n" if number else ""
    return f"event: {name}\n{numbered}data: {json.dumps(data, ensure_ascii=False)}\n\n"


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0
