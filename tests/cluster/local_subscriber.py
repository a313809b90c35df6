"""A real HTTP server on loopback that records what it is sent and answers as it is told."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web


@dataclass
class Call:
    """One request as it came."""

    at: float
    headers: dict[str, str]
    body: bytes


@dataclass
class Subscriber:
    """``answer`` makes the answer for the n-th request, from 0; by default an empty 204."""

    url: str = ""
    calls: list[Call] = field(default_factory=list)
    answer: Callable[[int], web.Response] = lambda _: web.Response(status=204)
    hang_s: float = 0.0
    gate: asyncio.Event | None = None
    running: int = 0
    most: int = 0

    @property
    def times(self) -> list[float]:
        """Seconds of each call after the first one."""
        return [call.at - self.calls[0].at for call in self.calls]

    async def handle(self, request: web.BaseRequest) -> web.Response:
        body = b"".join([chunk async for chunk in request.content.iter_any()])  # `read` stops at 1 MiB
        number = len(self.calls)
        self.calls.append(Call(time.monotonic(), {k.lower(): v for k, v in request.headers.items()}, body))
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            if self.gate is not None:
                await self.gate.wait()
            await asyncio.sleep(self.hang_s)
            return self.answer(number)
        finally:
            self.running -= 1


@asynccontextmanager
async def subscriber(host: str = "127.0.0.1") -> AsyncIterator[Subscriber]:
    """A running subscriber on a free port of an address of this machine."""
    recording = Subscriber()
    runner = web.ServerRunner(web.Server(recording.handle, access_log=None), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, host, 0).start()
    recording.url = f"http://{host}:{runner.addresses[0][1]}/"
    try:
        yield recording
    finally:
        await runner.cleanup()
