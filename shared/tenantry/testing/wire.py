"""A request to the API server and its answer, as the fault proxy holds them: addressed, decoded when somebody asks.

The address follows the API server's own rules (``/api/v1`` and ``/apis/GROUP/VERSION``, ``namespaces/NAME/PLURAL/NAME/SUB``);
the verb is ours: an apply patch is ``apply``, every other patch ``patch``.  A create has the name that its body gives.
"""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote

from pydantic_core import from_json, to_json

if TYPE_CHECKING:
    import aiohttp

    from tenantry.testing.fault import Meets

APPLY = "application/apply-patch+yaml"
READS = frozenset({"get", "list", "watch"})
_MANAGER = re.compile(r"\(([^)]*)\)")
_NAMESPACE_SUBRESOURCES = frozenset({"status", "finalize"})


def decoded(content: bytes) -> Any:
    """The JSON value, or None where there is none: an empty body, text, protobuf."""
    try:
        return from_json(content) if content else None
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Address:
    """What a URL path names; everything is empty for paths outside the resource API, such as ``/version``."""

    api_version: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @classmethod
    def of(cls, path: str) -> Address:
        """The address that a path has."""
        parts = [unquote(part) for part in path.strip("/").split("/")]
        if parts[0] == "api" and len(parts) > 2:
            api_version, rest = parts[1], parts[2:]
        elif parts[0] == "apis" and len(parts) > 3:
            api_version, rest = f"{parts[1]}/{parts[2]}", parts[3:]
        else:
            return cls()
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2 and not (len(rest) == 3 and rest[2] in _NAMESPACE_SUBRESOURCES):
            namespace, rest = rest[1], rest[2:]
        name = rest[1] if len(rest) > 1 else ""
        return cls(api_version, rest[0], namespace, name, "/".join(rest[2:]))


@dataclass(eq=False)
class Request:
    """One request on its way.  A fault may change ``query``; what else it changes does not arrive.

    ``function`` is the field manager that the client names in its User-Agent.  ``headers`` (names in lower case) hold the
    credentials, which is why nothing of them is recorded.
    """

    seq: int
    method: str
    path: str
    query: dict[str, str]
    headers: Mapping[str, str]
    content: bytes
    faults: list[Meets] = field(default_factory=list)
    """The faults of the proxy, for one that has to go on with the next request."""
    as_of: Callable[[str], Awaitable[Response]] | None = None
    """The same read, answered by the server from an exact earlier resource version."""
    at: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        address = Address.of(self.path)
        self.api_version, self.resource, self.subresource = address.api_version, address.resource, address.subresource
        self.namespace, self.name = address.namespace, address.name
        self.named = bool(address.name)
        found = _MANAGER.search(self.headers.get("user-agent", ""))
        self.function = found.group(1) if found else ""
        self.verb = self._verb()
        if self.verb == "create" and not self.name and isinstance(self.body, dict):
            self.name = str((self.body.get("metadata") or {}).get("name") or "")
        if self.resource == "namespaces":
            self.namespace = ""

    @classmethod
    def parse(cls, seq: int, method: str, target: str, headers: Mapping[str, str], content: bytes) -> Request:
        """A request from what the wire says; ``target`` is path and query."""
        path, _, query = target.partition("?")
        return cls(seq, method, path, dict(parse_qsl(query, keep_blank_values=True)), headers, content)

    def _verb(self) -> str:
        match self.method:
            case "GET" | "HEAD":
                if self.query.get("watch", "") in ("1", "true"):
                    return "watch"
                return "get" if self.name or not self.resource else "list"
            case "PATCH":
                return "apply" if self.headers.get("content-type", "").startswith(APPLY) else "patch"
            case "DELETE":
                return "delete" if self.name else "deletecollection"
            case _:
                return {"POST": "create", "PUT": "update"}.get(self.method, self.method.lower())

    @property
    def is_write(self) -> bool:
        """Whether it asks for a change; a dry run does not."""
        return self.verb not in READS and "dryRun" not in self.query

    @property
    def group(self) -> str:
        """The API group; empty for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def key(self) -> tuple[str, str, str, str]:
        """apiVersion, plural, namespace and name of the object."""
        return self.api_version, self.resource, self.namespace, self.name

    @cached_property
    def body(self) -> Any:
        """The decoded body, or None."""
        return decoded(self.content)

    @cached_property
    def user(self) -> str:
        """The user that the bearer token claims to be, for error messages; nothing is verified."""
        parts = self.headers.get("authorization", "").removeprefix("Bearer ").split(".")
        if len(parts) != 3:
            return "system:anonymous"
        claims = decoded(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return str(claims.get("sub", "")) if isinstance(claims, dict) else ""


@dataclass(eq=False)
class Response:
    """One answer; status 0 means that there is none and the connection is reset.  A watch has a stream instead of content."""

    status: int
    content: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    fault: str = ""
    stream: aiohttp.ClientResponse | None = None

    @classmethod
    def json(cls, status: int, body: Any, headers: Mapping[str, str] | None = None) -> Response:
        """An answer with a JSON body."""
        return cls(status, to_json(body), {"Content-Type": "application/json", **(headers or {})})

    @cached_property
    def body(self) -> Any:
        """The decoded body, or None."""
        return decoded(self.content)

    def by(self, fault: str) -> Response:
        """The same answer, with the fault that acted on it; one that acted before stays named."""
        names = ", ".join(name for name in (self.fault, fault) if name)
        return Response(self.status, self.content, self.headers, names, self.stream)
