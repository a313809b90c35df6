"""HTTP entries of a cluster that one machine has in this process: on loopback, each on a port that is free."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any


class OnLoopback:
    """Serves between `_serve` and `_end`; ``url`` is the address, empty before."""

    def __init__(self) -> None:
        self.url = ""
        self._server: Any = None
        self._serving: asyncio.Task[None] | None = None

    def _serve(self, make: Callable[[str, int], Any]) -> None:
        """Serve what ``make`` gives for a host and port (`tenantry.serving.server.make_server`)."""
        listener = socket.create_server(("127.0.0.1", 0))
        host, port = listener.getsockname()
        self.url = f"http://{host}:{port}/"
        self._server = make(host, port)
        self._serving = asyncio.create_task(self._server.serve(sockets=[listener]))

    async def _end(self) -> None:
        """Answer what was asked, and end."""
        if self._serving is not None:
            self._server.should_exit = True
            await self._serving
