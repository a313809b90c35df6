"""A TCP proxy in front of the API server: a test holds what is sent, cuts connections, or takes the server away."""

from __future__ import annotations

import asyncio
from pathlib import Path
from urllib.parse import urlsplit

import yaml


class Gate:
    """Passes bytes both ways; while it is closed, what clients send waits.  Runs between ``async with`` and its end."""

    def __init__(self, server_url: str, address: str = "127.0.0.1") -> None:
        self._target = urlsplit(server_url)
        self._address = address
        self._open = asyncio.Event()
        self._open.set()
        self.waiting = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._port = 0

    async def __aenter__(self) -> Gate:
        await self.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def start(self) -> None:
        """Listen, on the same port each time."""
        self._server = await asyncio.start_server(self._serve, self._address, self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    def stop(self) -> None:
        """Cut all connections and take no more, until `start`."""
        assert self._server is not None
        self._server.close()
        self.cut()

    def cut(self) -> None:
        """Cut all connections."""
        for writer in list(self._writers):
            writer.transport.abort()

    def close(self) -> None:
        """From now on what is sent waits; `waiting` is set when something does."""
        self.waiting.clear()
        self._open.clear()

    def open(self) -> None:
        """Let through what waits."""
        self._open.set()

    def kubeconfig(self, original: Path, target: Path) -> Path:
        """A kubeconfig like the original one, but through this proxy."""
        document = yaml.safe_load(original.read_text())
        for cluster in document["clusters"]:
            cluster["cluster"]["server"] = f"https://{self._address}:{self._port}"
        target.write_text(yaml.safe_dump(document))
        return target

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        there, back = await asyncio.open_connection(self._target.hostname, self._target.port)
        self._writers.add(back)
        try:
            if not writer.is_closing():  # cut while it was connected
                await asyncio.gather(self._pump(reader, back, gated=True), self._pump(there, writer, gated=False))
        except OSError:
            pass  # one side went away, and so does the other
        finally:
            self._tasks.discard(task)
            self._writers -= {writer, back}
            writer.close()
            back.close()

    async def _pump(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, *, gated: bool) -> None:
        while data := await source.read(65536):
            if gated and not self._open.is_set():
                self.waiting.set()
                await self._open.wait()
            target.write(data)
            await target.drain()
        target.close()
