"""A recording, fault-injecting reverse proxy between functions and the real API server.

Functions reach it by kubeconfig.  It ends TLS with a certificate of its own (`tenantry.testing.tls`), speaks TLS to the API
server, whose certificate it verifies, and passes the bearer token on, so that authentication, authorisation and audit see
the function and not the proxy.  Each request meets the faults in order; each fault can answer itself, or ask what stands
behind it, the API server at last.  A request that was begun is ended and recorded, also when its client is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import struct
from pathlib import Path
from socket import SO_LINGER, SOL_SOCKET
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlencode

import aiohttp
import yaml
from aiohttp import web
from yarl import URL

from tenantry.testing import answers
from tenantry.testing.fault import Meets
from tenantry.testing.recording import Recording
from tenantry.testing.tls import loopback_context
from tenantry.testing.upstream import Upstream, read_kubeconfig
from tenantry.testing.wire import READS, Request, Response

_HOP_BY_HOP = frozenset(
    {"connection", "keep-alive", "transfer-encoding", "content-length", "te", "upgrade", "expect", "host", "accept-encoding"}
)
_MOST_BYTES = 16 * 2**20
_CONNECT_S = 10.0


class FaultProxy:
    """Listens on loopback between ``async with`` and its end.

    Args:
        kubeconfig: names the API server; of its identity nothing is used.
        folder: for the kubeconfigs that it makes; must exist.

    ``faults`` may be changed at any time and counts from the next request on; ``recording`` has what went through.
    At the end an error inside a fault is raised, because the run was then not what it claims to be.
    """

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        self.recording = Recording()
        self.faults: list[Meets] = []
        self.url = ""
        self._folder = folder
        self._upstream = Upstream.of(kubeconfig)
        self._certificate = ""
        self._session: aiohttp.ClientSession
        self._server: asyncio.Server
        self._web: web.Server
        self._numbers = itertools.count(1)
        self._work: set[asyncio.Task[Response]] = set()
        self._failures: list[Exception] = []

    async def __aenter__(self) -> Self:
        context, self._certificate = loopback_context()
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=self._upstream.context or False),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
        )
        self._session._retry_connection = False  # a request that is sent twice must be seen twice
        loop = asyncio.get_running_loop()
        self._web = web.Server(
            self._handle,
            request_factory=_with_room,
            handler_cancellation=True,
            access_log=None,
            lingering_time=0,
            auto_decompress=False,
        )
        self._server = await loop.create_server(self._web, "127.0.0.1", 0, ssl=context, backlog=1024)
        self.url = f"https://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.close()
        for task in self._work:
            task.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)
        await self._web.shutdown(timeout=0.5)
        await self._server.wait_closed()
        await self._session.close()
        if self._failures and error is None:
            raise self._failures[0]

    def kubeconfig_for(self, kubeconfig: Path) -> Path:
        """A kubeconfig with the same identity that leads through the proxy; the token is followed in its file.

        Raises:
            ValueError: the identity is a client certificate, which no proxy can pass on.
        """
        _, _, user = read_kubeconfig(kubeconfig)
        if "client-certificate" in user or "client-certificate-data" in user:
            raise ValueError(f"{kubeconfig} has a client certificate; a proxy can pass on only a token")
        if "tokenFile" in user:
            user = {**user, "tokenFile": str((kubeconfig.parent / user["tokenFile"]).absolute())}
        authority = self._folder / "proxy-ca.crt"
        authority.write_text(self._certificate)
        made = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "proxy", "cluster": {"server": self.url, "certificate-authority": str(authority.absolute())}}],
            "users": [{"name": "same", "user": user}],
            "contexts": [{"name": "proxied", "context": {"cluster": "proxy", "user": "same"}}],
            "current-context": "proxied",
        }
        path = self._folder / f"{kubeconfig.name.removesuffix('.kubeconfig')}-proxied.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(made, sort_keys=False))
        return path

    # -- one request -----------------------------------------------------------------------------------

    async def _handle(self, incoming: web.BaseRequest) -> web.StreamResponse:
        content = await incoming.read()
        headers = {name.lower(): value for name, value in incoming.headers.items()}
        request = Request.parse(next(self._numbers), incoming.method, incoming.raw_path, headers, content)
        if request.verb in READS:
            request.faults, request.as_of = self.faults, lambda version: self._read_as_of(request, version)
        work = asyncio.create_task(self._exchange(request, incoming.transport))
        self._work.add(work)
        work.add_done_callback(self._work.discard)
        response = await asyncio.shield(work)
        if response.status == 0:
            _reset(incoming.transport)
            return web.Response()  # goes nowhere
        if response.stream is not None:
            return await self._pass_on(incoming, response, response.stream)
        return web.Response(status=response.status, body=response.content, headers=response.headers)

    async def _exchange(self, request: Request, client: asyncio.Transport | None) -> Response:
        answers: list[Response] = []
        revision = self.recording.revision

        async def ask_server() -> Response:
            nonlocal revision
            revision = self.recording.revision
            answers.append(await self._forward(request))
            return answers[-1]

        try:
            response = await _through(tuple(self.faults), 0, request, ask_server)
        except Exception as error:
            self._failures.append(error)
            response = Response(0, fault=f"the fault failed: {error!r}")
        if client is None or client.is_closing():
            response = Response(0, fault=response.fault)
        answer = answers[-1] if answers else None
        if answer is not None and answer.stream is not None and response.stream is None:
            answer.stream.close()
        self.recording.add(request, response, answer, revision)
        return response

    async def _forward(self, request: Request) -> Response:
        """Ask the API server; without an answer from it, none is given (status 0)."""
        headers = {name: value for name, value in request.headers.items() if name not in _HOP_BY_HOP}
        try:
            answer = await self._session.request(
                request.method, self._url(request.path, request.query), data=request.content or None, headers=headers,
                allow_redirects=False,
            )  # fmt: skip
            passed = {name: value for name, value in answer.headers.items() if name.lower() not in _HOP_BY_HOP}
            if request.verb == "watch" and answer.status == 200:
                return Response(answer.status, headers=passed, stream=answer)
            return Response(answer.status, await answer.read(), passed)
        except (aiohttp.ClientError, TimeoutError, OSError):
            return Response(0)

    def _url(self, path: str, query: dict[str, str]) -> URL:
        return URL(f"{self._upstream.server}{path}" + (f"?{urlencode(query)}" if query else ""), encoded=True)

    async def _read_as_of(self, request: Request, version: str) -> Response:
        """The answer that the same read had at an exact resource version, under the same identity, from etcd's history.

        A GET cannot ask for an exact version, a list can; so an object is read as the list of its name.
        """
        exact = {"resourceVersion": version, "resourceVersionMatch": "Exact"}
        headers = {name: request.headers[name] for name in ("authorization", "accept") if name in request.headers}
        headers["user-agent"] = "tenantry-testing"
        path, query = request.path, {**request.query, **exact}
        if request.verb == "get":
            path, _, name = path.rpartition("/")
            query["fieldSelector"] = f"metadata.name={request.name}"
            assert quote(request.name, safe=":") == name, "only whole objects can be read as of a version"
        query.pop("continue", None)
        async with self._session.get(self._url(path, query), headers=headers) as answer:
            response = Response(answer.status, await answer.read(), {"Content-Type": answer.headers.get("Content-Type", "")})
        if response.status != 200 or request.verb == "list":
            return response
        items = response.body["items"]
        if not items:
            return answers.not_found(request)
        body: dict[str, Any] = {"kind": response.body["kind"].removesuffix("List"), "apiVersion": request.api_version, **items[0]}
        return Response.json(200, body)

    async def _pass_on(self, incoming: web.BaseRequest, response: Response, stream: aiohttp.ClientResponse) -> web.StreamResponse:
        outgoing = web.StreamResponse(status=response.status, headers=response.headers)
        outgoing.enable_chunked_encoding()
        try:
            await outgoing.prepare(incoming)
            async for chunk in stream.content.iter_any():
                await outgoing.write(chunk)
            await outgoing.write_eof()
        except (aiohttp.ClientError, OSError):
            _reset(incoming.transport)  # a watch that broke off must not look like one that ended
        finally:
            stream.close()
        return outgoing


async def _through(faults: tuple[Meets, ...], index: int, request: Request, ask_server: Any) -> Response:
    """Let the request meet the faults from ``index`` on; the server stands behind the last one, and is asked at most once."""
    if index == len(faults):
        found: Response = await ask_server()
        return found
    behind: Response | None = None

    async def forward() -> Response:
        nonlocal behind
        if behind is None:
            behind = await _through(faults, index + 1, request, ask_server)
        return behind

    answer = await faults[index].meet(request, forward)
    return answer if answer is not None else await forward()


def _with_room(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
    return web.BaseRequest(message, payload, protocol, writer, task, asyncio.get_running_loop(), client_max_size=_MOST_BYTES)


def _reset(transport: asyncio.Transport | None) -> None:
    """End a connection as a crash of the other side does: RST, nothing flushed."""
    if transport is None:
        return
    socket = transport.get_extra_info("socket")
    with contextlib.suppress(OSError, AttributeError):
        socket.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
