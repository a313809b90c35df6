"""An HTTP proxy on loopback that passes on what is sent after CONNECT, and remembers what it was asked for."""

from __future__ import annotations

import asyncio
import ssl
from urllib.parse import urlsplit


class ConnectProxy:
    """Leads every CONNECT to one server, whatever it names.  Runs between ``async with`` and its end.

    ``asked`` are the names of the CONNECTs, ``received`` counts the bytes that came back from the server.
    """

    def __init__(self, server_url: str, context: ssl.SSLContext | None = None) -> None:
        self._target = urlsplit(server_url)
        self._context = context
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self.asked: list[str] = []
        self.received = 0

    @property
    def url(self) -> str:
        """The value of a ``proxy-url``."""
        assert self._server is not None
        scheme = "https" if self._context else "http"
        return f"{scheme}://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> ConnectProxy:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._context)
        return self

    async def __aexit__(self, *error: object) -> None:
        assert self._server is not None
        self._server.close()
        for writer in list(self._writers):
            writer.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        try:
            method, name, _ = (await reader.readuntil(b"\r\n\r\n")).decode().split(" ", 2)
            assert method == "CONNECT"
            self.asked.append(name)
            there, back = await asyncio.open_connection(self._target.hostname, self._target.port)
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            try:
                await asyncio.gather(self._pump(reader, back), self._pump(there, writer, counted=True))
            finally:
                back.close()
        except (OSError, asyncio.IncompleteReadError):
            pass  # one side went away, and so does the other
        finally:
            self._tasks.discard(task)
            self._writers.discard(writer)
            writer.close()

    async def _pump(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, *, counted: bool = False) -> None:
        while data := await source.read(65536):
            self.received += len(data) if counted else 0
            target.write(data)
            await target.drain()
        target.close()
