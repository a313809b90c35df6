"""Load on one function, as a process of its own: ``python generator.py HOST PORT CONNECTIONS SECONDS < requests``.

Standard input holds JSON: a list of whole HTTP requests in base64.  With SECONDS above 0 they are sent in turn, again and
again, for that time; with 0 each once.  Each connection is kept and has one request on its way at a time.  Prints
JSON: answers, seconds, and answers by status.  Only the standard library, no parser: an answer has no body, so it ends with
its headers; that costs about 25 us a request, far below what a function needs.
"""

from __future__ import annotations

import asyncio
import base64
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator


class _Connection(asyncio.Protocol):
    def __init__(self, load: Load) -> None:
        self._load = load
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def next(self) -> None:
        request = self._load.take()
        if request is None:
            self._transport.close()
        else:
            self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._rest += data
        if not self._rest.endswith(b"\r\n\r\n") and b"content-length" not in self._rest.lower():
            return
        self._load.statuses[self._rest[9:12].decode()] += 1
        self._rest = b""
        self.next()

    def connection_lost(self, exc: Exception | None) -> None:
        self._load.ended()


class Load:
    """The requests, and what came of them."""

    def __init__(self, requests: list[bytes], seconds: float) -> None:
        self.statuses: Counter[str] = Counter()
        self._requests = requests
        self._seconds = seconds
        self._left: Iterator[bytes] = iter(requests)
        self._until = 0.0
        self._open = 0
        self._done = asyncio.Event()

    def take(self) -> bytes | None:
        if self._seconds and time.perf_counter() >= self._until:
            return None
        request = next(self._left, None)
        if request is None and self._seconds:
            self._left = iter(self._requests)
            request = next(self._left)
        return request

    def ended(self) -> None:
        self._open -= 1
        if self._open == 0:
            self._done.set()

    async def run(self, host: str, port: int, connections: int) -> dict[str, object]:
        loop = asyncio.get_running_loop()
        made = [(await loop.create_connection(lambda: _Connection(self), host, port))[1] for _ in range(connections)]
        self._open = connections
        began = time.perf_counter()
        self._until = began + self._seconds
        for connection in made:
            connection.next()
        await self._done.wait()
        seconds = time.perf_counter() - began
        return {"answers": sum(self.statuses.values()), "seconds": seconds, "statuses": dict(self.statuses)}


def main() -> None:
    host, port, connections, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    requests = [base64.b64decode(text) for text in json.load(sys.stdin)]
    print(json.dumps(asyncio.run(Load(requests, seconds).run(host, port, connections))))


if __name__ == "__main__":
    main()
