"""Serving one function in one process: functions-framework's ASGI app under uvicorn.

Imports run with the garbage collector off and are frozen afterwards.  Idle connections are kept for longer
than any proxy in front keeps them, because a request on a connection that was just closed is lost.  On
SIGTERM no new connection is taken, what runs is finished, spans are flushed, and the exit code is 0.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib.util
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tenantry.serving.installed import descriptor_of

KEEP_ALIVE_S = 620
GRACE_S = 25


def source_of(name: str) -> Path:
    """The ``main.py`` of a function.

    Raises:
        UnknownFunction: it is not installed.
    """
    descriptor_of(name)
    spec = importlib.util.find_spec(name.replace("-", "_"))
    assert spec is not None
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0]) / "main.py"


def make_app(name: str) -> tuple[Any, Any]:
    """The ASGI application of a function and its `tenantry.serving.Function`.

    Raises:
        UnknownFunction: it does not exist.
    """
    source = source_of(name)
    gc.disable()
    try:
        import functions_framework.aio

        app = functions_framework.aio.create_asgi_app("handle", str(source))
        module = importlib.import_module(f"{name.replace('-', '_')}.function")
    finally:
        gc.enable()
    gc.collect()
    gc.freeze()
    return app, module.function


def make_server(app: Any, host: str, port: int) -> Any:
    """A uvicorn server for an application; ``await server.serve()`` runs it."""
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
        http="httptools",
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S,
        server_header=False,
    )
    return Server(config)


def _bind(host: str, port: int) -> socket.socket:
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
    listener = listener or _bind(host, port)
    await function.start(kubeconfig)
    server = make_server(app, host, port)
    loop = asyncio.get_running_loop()

    def stop() -> None:
        server.should_exit = True

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    try:
        await server.serve(sockets=[listener])
    finally:
        await function.stop()
        end_telemetry()
