"""The command ``tenantry console`` as a process, and what it answers."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from times import LOCAL_S, START_S


class Console:
    """One that runs: ``url`` is its address, with the token and a slash at the end."""

    def __init__(self, process: asyncio.subprocess.Process, url: str, session: aiohttp.ClientSession) -> None:
        self.process = process
        self.url = url
        self.session = session
        self.origin, _, rest = url.partition("://")[2].partition("/")
        self.token = rest.rstrip("/")
        self.had = ""
        """The id of the last event of a stream, as a page that comes again sends it."""

    async def get(self, path: str = "", **parameters: str) -> Any:
        """An answer as JSON, or as text where it is none."""
        async with self.session.get(self.url + path, params=parameters) as answer:
            text = await answer.text()
            return json.loads(text) if answer.content_type == "application/json" else text

    @asynccontextmanager
    async def events(self, had: str = "") -> AsyncIterator[AsyncIterator[tuple[str, Any]]]:
        """The stream: names and data."""
        async with self.session.get(self.url + "events", params={"had": had}) as answer:
            assert answer.content_type == "text/event-stream"
            yield self._events(answer)

    async def _events(self, answer: aiohttp.ClientResponse) -> AsyncIterator[tuple[str, Any]]:
        name = ""
        async for line in answer.content:
            field, _, value = line.decode().rstrip("\n").partition(": ")
            if field == "event":
                name = value
            elif field == "id":
                self.had = value
            elif field == "data":
                yield name, json.loads(value)

    async def end(self) -> int:
        """Ctrl-C; the exit code."""
        self.process.send_signal(signal.SIGINT)
        return await asyncio.wait_for(self.process.wait(), LOCAL_S)


async def awaited(events: AsyncIterator[tuple[str, Any]], wanted: str, holds: Any = bool) -> Any:
    """The data of the next event of a name for which something holds."""
    async with asyncio.timeout(LOCAL_S):
        async for name, data in events:
            if name == wanted and holds(data):
                return data
    raise AssertionError(f"the stream ended without {wanted}")


@asynccontextmanager
async def serving(kubeconfig: Path, *arguments: str | Path) -> AsyncIterator[Console]:
    """The command, until the block ends."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tenantry.cli", "console", "--no-open", "--kubeconfig", str(kubeconfig), *map(str, arguments)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONUTF8": "1"},
    )
    assert process.stdout is not None
    try:
        line = (await asyncio.wait_for(process.stdout.readline(), START_S)).decode()
        assert line.startswith("console: http://127.0.0.1:"), line
        async with aiohttp.ClientSession(trust_env=False, timeout=aiohttp.ClientTimeout(total=LOCAL_S)) as session:
            yield Console(process, line.split()[1], session)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
