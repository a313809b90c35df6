"""Where events are sent: over HTTP, or to a broker in the same process.

A `Sink` takes one event and answers with an HTTP status; when there was no answer at all it raises `NoAnswer`.  What that
means (try again, drop, dead-letter) is the sender's rule, not the sink's.  All HTTP of one machine goes through one
`Poster`: one pool of kept connections, no proxies or credentials of the environment, no redirects.
"""

from __future__ import annotations

import io
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import NamedTuple, Self

import aiohttp
from yarl import URL

from tenantry.model.event import Event

Sink = Callable[[Event], Awaitable[int]]
"""Takes an event; returns an HTTP status; raises `NoAnswer`."""

KEEP_ALIVE_S = 4.0
"""Idle connections are dropped before the server does it (uvicorn: 5 s), else the next POST may meet a closed one."""
CONNECT_TIMEOUT_S = 5.0
_LARGE = 2**20  # aiohttp warns of larger bodies that it is to write in one piece


class NoAnswer(Exception):
    """Refused, reset or timed out: nobody knows whether the event arrived."""


class Answer(NamedTuple):
    """What came back: status, headers (names in any case) and the whole body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Poster:
    """An HTTP client that only posts.  Use as an async context manager, or call `close`."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self._urls: dict[str, URL] = {}
        self._timeouts: dict[float | None, aiohttp.ClientTimeout] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections; a later `post` opens new ones."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, timeout_s: float | None = None) -> Answer:
        """POST and read the whole answer, within ``timeout_s`` in all (None: as long as it takes).

        Raises:
            NoAnswer: the connection failed or the time is up.
        """
        target = self._urls.get(url)
        if target is None:
            target = self._urls[url] = URL(url)
        timeout = self._timeouts.get(timeout_s)
        if timeout is None:
            timeout = aiohttp.ClientTimeout(total=timeout_s, sock_connect=CONNECT_TIMEOUT_S)
            self._timeouts[timeout_s] = timeout
        try:
            response = await self._open().post(
                target,
                headers=headers,
                data=body if len(body) <= _LARGE else io.BytesIO(body),
                timeout=timeout,
                allow_redirects=False,
            )
            try:
                content = await response.read()
            finally:
                response.release()
        except TimeoutError:
            raise NoAnswer(f"{url} did not answer within {timeout_s or CONNECT_TIMEOUT_S:g} s") from None
        except (aiohttp.ClientError, OSError) as error:
            raise NoAnswer(f"{url}: {error or type(error).__name__}") from error
        return Answer(response.status, response.headers, content)

    def _open(self) -> aiohttp.ClientSession:
        # Made here and not in the constructor: a session belongs to a running event loop.
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_S),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
                skip_auto_headers=("Accept", "Accept-Encoding"),
            )
        return self._session
