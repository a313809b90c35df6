"""Serving one function in one process: functions-framework's ASGI app under uvicorn.

Imports run with the garbage collector off and are frozen afterwards.  Idle connections are kept for longer
than any proxy in front keeps them, because a request on a connection that was just closed is lost.  On
SIGTERM no new connection is taken, what runs is finished, spans are flushed, and the exit code is 0.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib
import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tenantry.serving.garbage import settle
from tenantry.serving.installed import descriptor_of

KEEP_ALIVE_S = 620
GRACE_S = 25
_EXECUTION_ID = b"function-execution-id"


def make_app(name: str) -> tuple[Any, Any]:
    """The ASGI application of a function and its `tenantry.serving.Function`.

    Raises:
        UnknownFunction: it does not exist.
    """
    descriptor_of(name)
    gc.disable()
    try:
        import functions_framework.aio

        module = importlib.import_module(f"{name.replace('-', '_')}.function")
        app = functions_framework.aio.create_asgi_app("handle", str(Path(str(module.__file__)).with_name("main.py")))
    finally:
        gc.enable()
    settle()
    return _identified(app), module.function


def _identified(app: Any) -> Any:
    """The application, with the event's id as that of its execution: functions-framework draws twelve random numbers for one."""

    async def entry(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            names = dict(scope["headers"])
            if _EXECUTION_ID not in names:
                scope = {**scope, "headers": [*scope["headers"], (_EXECUTION_ID, names.get(b"ce-id", b"-")[:100])]}
        await app(scope, receive, send)

    return entry


def make_server(app: Any, host: str, port: int, http: Any = "httptools") -> Any:
    """A uvicorn server for an application, with ``http`` as its protocol; ``await server.serve()`` runs it."""
    import uvicorn

    class Server(uvicorn.Server):
        """uvicorn, with signals left to us: they end the process cleanly instead of being raised again."""

        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=http,
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S,
        server_header=False,
    )
    return Server(config)


def bind(host: str, port: int) -> socket.socket:
    """The socket to listen on.  uvicorn would log a port that is taken and exit with a code of its own."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
    except OSError:
        made.close()
        raise
    return made


async def run(server: Any, listener: socket.socket, ending: Callable[[], None] | None = None) -> None:
    """Serve until SIGTERM or SIGINT; ``ending`` is called when one of them arrives."""

    def stop() -> None:
        if ending is not None:
            ending()
        server.should_exit = True

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    await server.serve(sockets=[listener])


async def serve(
    name: str, host: str, port: int, kubeconfig: Path | None = None, *, listener: socket.socket | None = None
) -> None:
    """Serve a function until SIGTERM or SIGINT, on a ``listener`` that the caller has bound if there is one.

    Raises:
        ConfigError, ConnectError, UnknownFunction: it cannot start, with the remedy.
        OSError: the port cannot be bound.
    """
    from tenantry.serving.logs import set_up_logs
    from tenantry.serving.telemetry import set_up_telemetry

    if kubeconfig is not None:
        os.environ["KUBECONFIG"] = str(kubeconfig)
    set_up_logs(name)
    end_telemetry = set_up_telemetry(name)
    app, function = make_app(name)
    function.configure()
    listener = listener or bind(host, port)
    await function.start(kubeconfig)
    try:
        await run(make_server(app, host, port), listener)
    finally:
        await function.stop()
        end_telemetry()
