"""One HTTP request as exact bytes over one connection: no client library tidies the headers up."""

from __future__ import annotations

import contextlib
import http.client
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

Headers = Sequence[tuple[bytes, bytes]]


@dataclass(frozen=True)
class Entry:
    """A running HTTP entry."""

    url: str


@dataclass(frozen=True)
class Response:
    """What came back: names of ``headers`` in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


def render(method: str, path: str, host: str, headers: Headers, length: int | None) -> bytes:
    """Return the head of a request; without a length the body is announced as chunked."""
    framing = (b"Content-Length", str(length).encode()) if length is not None else (b"Transfer-Encoding", b"chunked")
    lines = [f"{method} {path} HTTP/1.1".encode(), b"Host: " + host.encode(), b"Connection: close"]
    lines += [name + b": " + value for name, value in (*headers, framing)]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def exchange(
    url: str,
    headers: Headers = (),
    body: bytes = b"",
    *,
    method: str = "POST",
    path: str = "/",
    declared_length: int | None = None,
    timeout: float = 30.0,
) -> Response:
    """Send one request and return the answer; ``declared_length`` overrides the true length of the body."""
    length = len(body) if declared_length is None else declared_length
    return _send(url, render(method, path, urlsplit(url).netloc, headers, length), [body], method, timeout)


def exchange_chunked(url: str, headers: Headers, chunks: Iterable[bytes], *, timeout: float = 30.0) -> Response:
    """Send a POST whose length is not declared; stop sending as soon as the server has closed its side."""
    framed = (f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n" for chunk in chunks if chunk)
    head = render("POST", "/", urlsplit(url).netloc, headers, None)
    return _send(url, head, (part for parts in (framed, [b"0\r\n\r\n"]) for part in parts), "POST", timeout)


def _send(url: str, head: bytes, parts: Iterable[bytes], method: str, timeout: float) -> Response:
    target = urlsplit(url)
    assert target.hostname is not None
    assert target.port is not None
    with socket.create_connection((target.hostname, target.port), timeout=timeout) as connection:
        connection.sendall(head)
        # A server that refuses the body early may close before it has read everything; its answer is still there.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for part in parts:
                connection.sendall(part)
        answer = http.client.HTTPResponse(connection, method=method)
        answer.begin()
        return Response(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
