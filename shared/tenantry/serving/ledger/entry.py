"""The HTTP entry of the ledger: signed CloudEvents in, an empty 204 when they are on the disk.

Many events that come together are one transaction.  What is not signed by the key of our functions is refused, whoever sends it:
403 where the signature is missing or wrong, 400 where it is no decision.  503 where nothing can be written: brokers come again.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import Any

from opentelemetry import metrics
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response

from tenantry.model import limits
from tenantry.serving import server
from tenantry.serving.cloudevents import BadEvent, parse_event, read_body
from tenantry.serving.intake import Gate
from tenantry.serving.ledger import NAME
from tenantry.serving.ledger.record import TYPES, NoRecord, Told, told_in
from tenantry.serving.ledger.store import Ledger, LedgerError
from tenantry.serving.methods import respond
from tenantry.serving.signing import SIGNATURE, is_signed

log = logging.getLogger("tenantry")

_taken = metrics.get_meter("tenantry").create_counter(
    "tenantry.ledger", unit="{event}", description="Events for the ledger by outcome: kept, refused or not written"
)


class Clerk:
    """Writes what comes, together what comes together, in a thread; `close` writes what is left."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._pending: list[tuple[tuple[Told, str], asyncio.Future[None]]] = []
        self._writing: asyncio.Task[None] | None = None
        self._trouble = ""

    async def keep(self, told: Told, trace: str) -> None:
        """Return when it is on the disk.

        Raises:
            LedgerError: it is not; it may be sent again.
        """
        if len(self._pending) >= limits.LEDGER_SENDERS:
            raise LedgerError("too many events at once")
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pending.append(((told, trace), done))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write())
        await done

    async def close(self) -> None:
        """Write what is left, and close the file."""
        if self._writing is not None:
            await self._writing
        await asyncio.to_thread(self._ledger.close)

    async def _write(self) -> None:
        while self._pending:
            pending, self._pending = self._pending, []
            problem: Exception | None = None
            try:
                await asyncio.to_thread(self._ledger.add, [told for told, _ in pending])
            except LedgerError as error:
                problem = error
            except Exception as error:
                log.exception("a bug: decisions could not be kept")
                problem = LedgerError(repr(error))
            self._say("" if problem is None else str(problem))
            for _, done in pending:
                if not done.done():
                    done.set_result(None) if problem is None else done.set_exception(problem)

    def _say(self, trouble: str) -> None:
        """Say trouble once, and that it is over."""
        if trouble and not self._trouble:
            log.error("%s", trouble)
        elif self._trouble and not trouble:
            log.info("the ledger is written again")
        self._trouble = trouble


class LedgerEntry:
    """An ASGI application over a clerk; without a ``key`` everything is refused."""

    def __init__(self, clerk: Clerk, key: bytes) -> None:
        self._clerk = clerk
        self._key = key
        self._gate = Gate()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        response = await respond(Request(scope, receive), self._take)
        await response(scope, receive, send)

    async def _take(self, request: Request) -> Response:
        try:
            event = parse_event(request.headers.raw, await read_body(request, limits.LEDGER_EVENT_BYTES, self._gate))
            if event.type not in TYPES:
                return self._refused(400, "no decision")
            if not self._key or not is_signed(self._key, event.data, event.extensions.get(SIGNATURE, "")):
                return self._refused(403, "not signed by a function of this installation")
            told = told_in(event.data)
        except BadEvent as error:
            return self._refused(error.status, error.reason)
        except NoRecord as error:
            return self._refused(400, str(error))
        except ClientDisconnect:
            return PlainTextResponse("the sender went away", 400)
        try:
            await self._clerk.keep(told, event.extensions.get("traceparent", "")[:64])
        except LedgerError:
            _taken.add(1, {"outcome": "not written"})
            return PlainTextResponse("not kept yet", 503)
        _taken.add(1, {"outcome": "kept"})
        return Response(status_code=204)

    @staticmethod
    def _refused(status: int, reason: str) -> Response:
        _taken.add(1, {"outcome": "refused"})
        return PlainTextResponse(reason, status)


async def serve(host: str, port: int, *, listener: socket.socket | None = None) -> None:
    """Serve the ledger until SIGTERM or SIGINT, on a ``listener`` that the caller has bound if there is one.

    Raises:
        ConfigError: it cannot start, with the remedy.
        OSError: the port cannot be bound.
    """
    from tenantry.serving.config import ConfigError
    from tenantry.serving.ledger.settings import ledger_from_environment
    from tenantry.serving.logs import set_up_logs
    from tenantry.serving.telemetry import set_up_telemetry

    set_up_logs(NAME)
    end_telemetry = set_up_telemetry(NAME)
    ledger, key = ledger_from_environment()
    try:
        ledger.open()
    except LedgerError as error:
        raise ConfigError(str(error)) from error
    clerk = Clerk(ledger)
    try:
        listener = listener or server.bind(host, port)
        await server.run(server.make_server(LedgerEntry(clerk, key), host, port), listener)
    finally:
        await clerk.close()
        end_telemetry()
