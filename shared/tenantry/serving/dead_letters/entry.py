"""The HTTP entry of the dead-letter sink: CloudEvents in, an empty 204 when the letter is stored.

The path names the function that gave up: the Triggers of a function send its dead letters to ``/<function>``, because Knative's
own attributes do not always name it.  In binary mode only the headers are read, never the body, which can be large and can hold
what objects hold.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from opentelemetry import metrics
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response

from tenantry.api import Api
from tenantry.api.errors import ApiError
from tenantry.model import limits
from tenantry.model.names import field_manager
from tenantry.serving import server
from tenantry.serving.cloudevents import BadEvent, parse_event, read_body
from tenantry.serving.dead_letters import NAME
from tenantry.serving.dead_letters.letter import Letter, letter_of, now, unreadable
from tenantry.serving.dead_letters.store import Collector, Store
from tenantry.serving.installed import descriptors
from tenantry.serving.methods import respond

log = logging.getLogger("tenantry")

_letters = metrics.get_meter("tenantry").create_counter(
    "tenantry.dead_letters", unit="{letter}", description="Events that were given up, by the function that could not handle them"
)


class LettersEntry:
    """An ASGI application over a collector; ``on_letter`` sees every letter as it comes."""

    def __init__(self, collector: Collector, on_letter: Callable[[Letter], None] | None = None) -> None:
        self._collector = collector
        self._on_letter = on_letter

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        response = await respond(Request(scope, receive), self._take)
        await response(scope, receive, send)

    async def _take(self, request: Request) -> Response:
        path, answer = request.url.path, Response(status_code=204)
        try:
            structured = request.headers.get("content-type", "").lower().startswith("application/cloudevents")
            body = await read_body(request, limits.DEAD_LETTER_BODY_BYTES) if structured else b""
            letter = letter_of(parse_event(request.headers.raw, body), path, now())
        except BadEvent as error:
            letter, answer = unreadable(path, error.reason, now()), PlainTextResponse(error.reason, error.status)
        except ClientDisconnect:
            return PlainTextResponse("the sender went away", 400)
        _letters.add(1, {"function": letter.function if letter.function in descriptors() else "unknown"})
        if self._on_letter is not None:
            self._on_letter(letter)
        try:
            await self._collector.take(letter)
        except ApiError:
            return PlainTextResponse("not stored yet", 503)
        except Exception:
            log.exception("a bug: a dead letter could not be taken")
            return PlainTextResponse("internal error", 500)
        return answer


def make_server(entry: LettersEntry, host: str, port: int) -> Any:
    """A uvicorn server for the sink; ``await server.serve()`` runs it."""
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

    class Protocol(HttpToolsProtocol):
        """HTTP, a little of each connection at a time."""

        def connection_made(self, transport: Any) -> None:
            transport.max_size = limits.DEAD_LETTER_READ_BYTES
            super().connection_made(transport)

    return server.make_server(entry, host, port, Protocol)


async def serve(host: str, port: int, kubeconfig: Path | None = None, *, listener: socket.socket | None = None) -> None:
    """Serve the sink until SIGTERM or SIGINT, on a ``listener`` that the caller has bound if there is one.

    Raises:
        ConnectError: there is no usable way to an API server.
        OSError: the port cannot be bound.
    """
    from tenantry.serving.logs import set_up_logs
    from tenantry.serving.telemetry import set_up_telemetry

    set_up_logs(NAME)
    end_telemetry = set_up_telemetry(NAME)
    async with await Api.connect(field_manager=field_manager(NAME), kubeconfig=kubeconfig) as api:
        listener = listener or server.bind(host, port)
        collector = Collector(Store(api))
        try:
            # Hurry before the server stops: it waits for answers, and those wait for the write.
            await server.run(make_server(LettersEntry(collector), host, port), listener, collector.hurry)
        finally:
            await collector.close()
            end_telemetry()
