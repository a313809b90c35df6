"""A bare HTTP/1.1 client over TLS: one httptools parser per connection, no pool logic, no redirects, no cookies.

It creates load and the floor, so it must cost as little as possible: about a third of the CPU of the client that the
functions use.  Requests beyond the number of connections wait in line, in order.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httptools
from pydantic_core import from_json, to_json

JSON = "application/json"


class _Connection(asyncio.Protocol):
    """One request at a time."""

    def __init__(self) -> None:
        self.transport: asyncio.WriteTransport | None = None
        self.on_chunk: Callable[[bytes], None] | None = None
        self._parser: Any = None
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None
        self._body: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self.transport = transport

    def send(self, raw: bytes) -> asyncio.Future[tuple[int, bytes]]:
        assert self.transport is not None
        self._parser = httptools.HttpResponseParser(self)
        self._body = []
        self._answer = asyncio.get_running_loop().create_future()
        self.transport.write(raw)
        return self._answer

    def data_received(self, data: bytes) -> None:
        if self._parser is not None:
            self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        if self.on_chunk is not None:
            self.on_chunk(body)
        else:
            self._body.append(body)

    def on_message_complete(self) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result((self._parser.get_status_code(), b"".join(self._body)))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionError(f"the server closed the connection: {exc}"))


class Wire:
    """Requests over a fixed number of connections; an async context manager."""

    def __init__(self, url: str, ca_file: Path | None, token: str, connections: int = 16) -> None:
        parts = urlsplit(url)
        self._host, self._port = str(parts.hostname), int(parts.port or 443)
        self._tls = ssl.create_default_context(cafile=str(ca_file)) if ca_file else None
        self._headers = (
            f"Host: {self._host}:{self._port}\r\nAuthorization: Bearer {token}\r\nUser-Agent: bench\r\nAccept: {JSON}\r\n"
        )
        self._connections = connections
        self._idle: asyncio.LifoQueue[_Connection] = asyncio.LifoQueue()
        self._all: list[_Connection] = []
        self._watches: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Wire:
        for _ in range(self._connections):
            self._idle.put_nowait(await self._connect())
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._watches:
            task.cancel()
        await asyncio.gather(*self._watches, return_exceptions=True)
        for connection in self._all:
            if connection.transport is not None:
                connection.transport.close()
        await asyncio.sleep(0)

    async def _connect(self) -> _Connection:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(_Connection, self._host, self._port, ssl=self._tls)
        self._all.append(connection)
        return connection

    async def _open(self) -> _Connection:
        """An idle connection; the API server closes one that asks nothing for half a minute."""
        connection = await self._idle.get()
        return await self._connect() if connection.transport is None or connection.transport.is_closing() else connection

    async def exchange(self, method: str, path: str, body: Any = None, content_type: str = JSON) -> tuple[int, bytes]:
        data = b"" if body is None else (body if isinstance(body, bytes) else to_json(body))
        connection = await self._open()
        head = f"{method} {path} HTTP/1.1\r\n{self._headers}Content-Type: {content_type}\r\nContent-Length: {len(data)}\r\n\r\n"
        try:
            return await connection.send(head.encode() + data)
        finally:
            self._idle.put_nowait(connection)

    async def raw(self, request: bytes) -> int:
        """The status of a whole request, sent as it is."""
        connection = await self._open()
        try:
            return (await connection.send(request))[0]
        finally:
            self._idle.put_nowait(connection)

    async def do(self, method: str, path: str, body: Any = None, content_type: str = JSON, *, but: tuple[int, ...] = ()) -> bytes:
        """The answer's body; anything from 400, ``but`` these, ends the bench."""
        status, answer = await self.exchange(method, path, body, content_type)
        if status >= 400 and status not in but:
            raise RuntimeError(f"{method} {path}: {status} {answer[:300]!r}")
        return answer

    async def json(self, method: str, path: str, body: Any = None, content_type: str = JSON) -> Any:
        return from_json(await self.do(method, path, body, content_type))

    async def apply(self, path: str, body: Any, manager: str = "bench-floor") -> None:
        """Server-side apply with force."""
        await self.do("PATCH", f"{path}?fieldManager={manager}&force=true", body, "application/apply-patch+yaml")

    async def watch(self, path: str, on_change: Callable[[str, Any], None]) -> None:
        """Tell every change from now on, until the end; on a connection of its own.

        When that is not possible any more, whoever began it is cancelled, for he would wait in vain.
        """
        path += "&" if "?" in path else "?"
        listed = await self.json("GET", f"{path}limit=1")
        began_by = asyncio.current_task()
        task = asyncio.create_task(self._follow(path, listed["metadata"]["resourceVersion"], on_change))

        def ended(_: asyncio.Task[None]) -> None:
            if not task.cancelled() and began_by is not None:
                began_by.cancel(f"the watch of {path} ended: {task.exception()!r}")

        task.add_done_callback(ended)
        self._watches.append(task)

    async def _follow(self, path: str, version: str, on_change: Callable[[str, Any], None]) -> None:
        """Tell every change since a version; when the API server ends the watch, of who is too slow, on from the last change."""
        rest = b""

        def on_chunk(chunk: bytes) -> None:
            nonlocal rest, version
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                change = from_json(line)
                version = change["object"]["metadata"].get("resourceVersion", version)
                on_change(change["type"], change["object"])

        status, body = 200, b""
        while status == 200:
            connection, rest = await self._connect(), b""
            connection.on_chunk = on_chunk
            request = f"GET {path}watch=1&resourceVersion={version}&timeoutSeconds=3600 HTTP/1.1\r\n{self._headers}\r\n"
            status, body = await connection.send(request.encode())
        raise ConnectionError(f"{status} {body[:200]!r}")


class Watched:
    """What watches have shown so far, and when the last change of it arrived."""

    def __init__(self) -> None:
        self.changed_at = 0.0
        self._progress = asyncio.Event()

    def _changed(self) -> None:
        self.changed_at = time.perf_counter()
        self._progress.set()

    async def until(self, holds: Callable[[], bool], within: float = 120.0) -> float:
        """The moment of the change with which it held."""
        async with asyncio.timeout(within):
            while not holds():
                self._progress.clear()
                await self._progress.wait()
        return self.changed_at
