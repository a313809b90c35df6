"""Requests to one API server under one identity: connections, credentials, retries and bounds.

Built on the official client's REST layer (connection pool, TLS, credentials) without its typed API classes, which cost more to
import than everything else together.  Rules that hold for every request: a timeout, a bounded number in flight, the answer's
status checked, 429 repeated after the time that the server asks for (bounded), 401 repeated once with the token read again.
There is no client-side rate limit: the server's priority and fairness decides.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode

import aiohttp
from pydantic_core import to_json

from tenantry import __version__
from tenantry.api.depth import decoded
from tenantry.api.errors import TooManyRequests, TransientError, Unauthorized, error_from
from tenantry.api.official import RESTClientObject
from tenantry.api.tokens import Token
from tenantry.api.turns import Turns, party
from tenantry.model import limits
from tenantry.model.kinds import Object

TIMEOUT_S = 30.0
CONNECT_TIMEOUT_S = 10.0
"""TLS included: where CPU is short at both ends, a first connection takes seconds."""
PATIENCE_S = 20.0
"""How long one request waits in all for a server that answers 429."""
JSON = "application/json"


class LargePage(Exception):
    """A page of a list has more bytes than `limits.PAGE_BYTES`."""


class Wire:
    """Connections to one API server."""

    def __init__(
        self,
        configuration: Any,
        user_agent: str,
        token: Token | None,
        concurrency: int,
        timeout_s: float,
        impersonated: Sequence[tuple[str, str]] = (),
    ) -> None:
        configuration.connection_pool_maxsize = max(concurrency * 2, 8)  # watches hold one each
        self.server = str(configuration.host).rstrip("/")
        self._configuration = configuration
        self._token = token
        self._impersonated = tuple(impersonated)
        """Headers, of which that for groups comes once for each."""
        self._rest = RESTClientObject(configuration)
        route = {"proxy": configuration.proxy, "server_hostname": configuration.tls_server_name}
        self._route: dict[str, Any] = {key: value for key, value in route.items() if value}
        self.turns = Turns(concurrency)
        self._large = asyncio.Lock()
        self._timeout = aiohttp.ClientTimeout(total=timeout_s, sock_connect=CONNECT_TIMEOUT_S)
        self._headers = {"Accept": JSON, "User-Agent": f"tenantry/{__version__} ({user_agent})"}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._rest.close()

    async def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = JSON,
    ) -> Object:
        """Any request, for example for a subresource such as a token; JSON both ways."""
        return (await self._sized(method, path, query, body, content_type))[0]

    async def _sized(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = JSON,
        *,
        accept: str = JSON,
        most: int = 0,
    ) -> tuple[Object, int]:
        """The answer, and its bytes.

        Raises:
            LargePage: it has more than ``most`` bytes, where that is given; the rest was not read.
        """
        headers = {**self._headers, "Content-Type": content_type, "Accept": accept}
        data = None if body is None else to_json(body)
        give_up_at = time.monotonic() + PATIENCE_S
        asked_again = False
        while True:
            async with self.turns.turn(party.get()):
                response = await self._send(method, path, query, data, headers, self._timeout)
                try:
                    raw = await (_at_most(response, most) if most else response.read())
                except (aiohttp.ClientError, TimeoutError, OSError) as error:
                    raise TransientError(f"{method} {path}: the answer broke off: {describe(error)}") from error
                answer = await self._decode(raw)  # before the turn ends: how many wait decides how much memory answers take
            if response.status < 300:
                return answer, len(raw)
            failure = error_from(response.status, answer, retry_after=patience(response), method=method)
            if isinstance(failure, Unauthorized) and self._token is not None and not asked_again:
                asked_again = True
                self._token.forget()
                continue
            if not isinstance(failure, TooManyRequests) or time.monotonic() + failure.retry_after > give_up_at:
                raise failure
            await asyncio.sleep(failure.retry_after)

    async def _decode(self, raw: bytes) -> Object:
        """The object of an answer: of large ones one at a time, and what is ready otherwise goes between two of them (a-14)."""
        if len(raw) <= limits.ANSWER_SMALL_BYTES:
            return decode(raw)
        async with self._large:
            found = decode(raw)
            await asyncio.sleep(0)
            return found

    async def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        data: bytes | None,
        headers: Mapping[str, str],
        timeout: aiohttp.ClientTimeout,
    ) -> aiohttp.ClientResponse:
        rest = self._rest
        if rest.pool_manager is None:
            rest.pool_manager = rest._create_pool_manager()
        auth = await self._configuration.auth_settings()
        if "BearerToken" in auth:
            headers = {**headers, "Authorization": auth["BearerToken"]["value"]}
        url = self.server + path + ("?" + urlencode(query) if query else "")
        try:
            response: aiohttp.ClientResponse = await rest.pool_manager.request(
                method,
                url,
                data=data,
                headers=[*headers.items(), *self._impersonated],
                timeout=timeout,
                allow_redirects=False,
                **self._route,
            )
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise TransientError(f"{method} {path}: {describe(error)}") from error
        return response


async def _at_most(response: aiohttp.ClientResponse, most: int) -> bytes:
    """The body of an answer; `LargePage` when it has more bytes, and the connection is given up."""
    raw = bytearray()
    async for part in response.content.iter_any():
        raw += part
        if len(raw) > most:
            response.close()
            raise LargePage
    return bytes(raw)


def patience(response: aiohttp.ClientResponse) -> float | None:
    """The seconds that ``Retry-After`` asks to wait, given as such or as a date (RFC 9110, 10.2.3)."""
    asked = response.headers.get("Retry-After", "")
    if asked.isdecimal():
        return float(asked)
    try:
        return max(0.0, parsedate_to_datetime(asked).timestamp() - time.time())
    except ValueError:
        return None


def decode(raw: bytes) -> Object:
    """The JSON object of an answer; proxies answer with text, which becomes the message."""
    try:
        value = decoded(raw)
    except ValueError:
        return {"message": raw[:200].decode("utf-8", "replace")}
    return value if isinstance(value, dict) else {}


def describe(error: BaseException) -> str:
    """What went wrong, in a word."""
    return "timed out" if isinstance(error, TimeoutError) else (str(error) or type(error).__name__)
