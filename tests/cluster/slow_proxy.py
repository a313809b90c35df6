"""A TCP proxy in front of the API server whose gate a test opens and closes."""

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

    async def __aenter__(self) -> Gate:
        self._server = await asyncio.start_server(self._serve, self._address, 0)
        return self

    async def __aexit__(self, *error: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def close(self) -> None:
        """From now on what is sent waits; `waiting` is set when something does."""
        self.waiting.clear()
        self._open.clear()

    def open(self) -> None:
        """Let through what waits."""
        self._open.set()

    def kubeconfig(self, original: Path, target: Path) -> Path:
        """A kubeconfig like the original one, but through this proxy."""
        assert self._server is not None
        document = yaml.safe_load(original.read_text())
        port = self._server.sockets[0].getsockname()[1]
        for cluster in document["clusters"]:
            cluster["cluster"]["server"] = f"https://{self._address}:{port}"
        target.write_text(yaml.safe_dump(document))
        return target

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        there, back = await asyncio.open_connection(self._target.hostname, self._target.port)
        try:
            await asyncio.gather(self._pump(reader, back, gated=True), self._pump(there, writer, gated=False))
        except OSError:
            pass  # one side went away, and so does the other
        finally:
            self._tasks.discard(task)
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
