"""The dead-letter sink for tests: as a process under its own identity, what brokers send it, what is stored, and the command."""

from __future__ import annotations

import asyncio
import base64
import io
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import upping
from one_function import ready, serving

from tenantry.api import Api
from tenantry.model.event import Event
from tenantry.model.kinds import CONFIG_MAP, Object
from tenantry.model.names import SYSTEM_NAMESPACE
from tenantry.serving.cloudevents import encode_binary
from tenantry.serving.dead_letters.book import Book
from tenantry.serving.dead_letters.store import CONFIG_MAP_NAME, FIELD, Store
from tenantry.testing.audit import AuditLog

SINK = "dead-letters"
FUNCTION = "namespace-registration"
MOST_BYTES = 256 * 1024
"""Of the one object that keeps dead letters, whatever comes in."""
MOST_LETTERS = 500


@asynccontextmanager
async def sinks(number: int, kubeconfig: Path, folder: Path) -> AsyncIterator[list[tuple[asyncio.subprocess.Process, str]]]:
    """Replicas of the sink, each a process with its URL."""
    async with AsyncExitStack() as stack:
        made = []
        for _ in range(number):
            command = (sys.executable, "-m", "tenantry.cli", "serve", SINK)
            made.append(await stack.enter_async_context(serving(kubeconfig, None, folder, command=command)))
        await asyncio.gather(*(ready(*each) for each in made))
        yield made


def refused(
    name: str,
    *,
    identity: str = "",
    reason: str = "the API server is away",
    status: int = 503,
    data: Any = None,
    **extensions: str,
) -> Event:
    """An event about a namespace as a broker sends it when no try succeeded."""
    about = {"apiversion": "v1", "kind": "Namespace", "namespace": "", "name": name, "watch": FUNCTION}
    why = {"knativeerrorcode": str(status), "knativeerrordata": base64.b64encode(reason.encode()).decode()}
    return Event(
        identity or f"id-{name}",
        "https://10.0.0.1:443",
        "dev.knative.apiserver.resource.update",
        subject=f"/apis/v1/namespaces//namespace/{name}",
        datacontenttype="application/json" if data is not None else None,
        extensions={**about, **why, **extensions},
        data=data,
    )


class Sender:
    """A broker, or somebody who reaches the sink: many requests at once over kept connections."""

    def __init__(self, at_once: int = 50) -> None:
        self._slots = asyncio.Semaphore(at_once)
        self._session: aiohttp.ClientSession

    async def __aenter__(self) -> Sender:
        self._session = aiohttp.ClientSession(
            trust_env=False, connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=60)
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def post(self, url: str, headers: Mapping[str, str], body: bytes = b"") -> int:
        """The status of the answer; 0 without one."""
        async with self._slots:
            try:
                async with self._session.post(
                    url, headers=headers, data=io.BytesIO(body), skip_auto_headers=("Content-Type",), allow_redirects=False
                ) as response:
                    return response.status
            except aiohttp.ClientError:
                return 0

    async def send(self, url: str, event: Event) -> int:
        """Send an event."""
        return await self.post(url, *encode_binary(event))


async def kept(admin: Api) -> Book:
    """What is stored."""
    return await Store(admin).read()


async def stored(admin: Api) -> Object | None:
    """The object that keeps it."""
    return await admin.get(CONFIG_MAP, CONFIG_MAP_NAME, SYSTEM_NAMESPACE)


async def empty(admin: Api) -> None:
    """Take the store away, as before the first dead letter."""
    await admin.delete(CONFIG_MAP, CONFIG_MAP_NAME, SYSTEM_NAMESPACE)


def size(live: Object | None) -> int:
    """Bytes of what is stored."""
    return len(str((live or {})["data"][FIELD]).encode())


def writes(audit_log: AuditLog) -> int:
    """How often the sinks' identity wrote so far, refusals and conflicts included."""
    return sum(event["verb"] != "get" for event in audit_log.of(SINK))


async def tenantry(kubeconfig: Path, *arguments: str) -> tuple[int, str, str]:
    """The command ``tenantry dead-letters``: exit code, output, errors."""
    return await upping.tenantry("dead-letters", *arguments, KUBECONFIG=str(kubeconfig))
