"""The one narrow door to the API server: raw JSON in, raw JSON out, every failure typed.

Built on the official client's REST layer (connection pool, TLS, credentials) without its typed API
classes, which cost more to import than everything else together.  Rules that hold for every request: a
timeout, a bounded number in flight, the answer's status checked, 429 waited for as long as the server
asks (bounded), 401 tried once more with the token read anew.  There is no client-side rate limit: the
server's priority and fairness decides.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode

import aiohttp
from pydantic_core import to_json

from tenantry import __version__
from tenantry.api.connect import load_configuration
from tenantry.api.depth import decoded
from tenantry.api.discovery import Discovery
from tenantry.api.errors import (
    ApiError,
    ConflictError,
    ConnectError,
    Invalid,
    KindNotServed,
    NotFound,
    TooManyRequests,
    TransientError,
    Unauthorized,
    error_from,
)
from tenantry.api.official import RESTClientObject
from tenantry.api.tokens import Token
from tenantry.model import limits
from tenantry.model.kinds import Kind, Object, can_be_name

CONCURRENCY = 32
SEARCHES = 4
"""Lists by field over all namespaces at a time. An API server whose cache is behind answers them from etcd and decodes every
object of the kind for each: thirty at a time, among a few hundred large objects, took it 5 GiB and half a minute (a-14)."""
FIELD_MANAGERS = "tenantry-"
"""Every field manager of ours begins so."""
TIMEOUT_S = 30.0
CONNECT_TIMEOUT_S = 5.0
PATIENCE_S = 20.0
"""How long one request waits in all for a server that answers 429."""

Keep = Callable[[Object], Object]
"""What of an object is kept; called right after it was read, and for a list in its order, before the next page is read."""

_APPLY = "application/apply-patch+yaml"
_JSON_PATCH = "application/json-patch+json"
_JSON = "application/json"
_METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


@dataclass(frozen=True, slots=True)
class Listing:
    """A consistent list: the items and the resource version that they are of; not complete when a limit cut it off."""

    items: list[Object]
    resource_version: str
    complete: bool = True


class _LargePage(Exception):
    """A page of a list has more bytes than `limits.PAGE_BYTES`."""


class Api:
    """An asynchronous client of one API server under one identity.

    ``field_manager`` names the owner of every field that it writes.  ``keeps`` says by kind what is kept of every object that the
    server answers with: what tenants can make large and nobody here uses is dropped before anybody holds it (a-14).  Use as an
    async context manager, or call `close`.  All methods raise the errors of `tenantry.api.errors`.
    """

    def __init__(
        self,
        configuration: Any,
        *,
        field_manager: str,
        token: Token | None = None,
        concurrency: int = CONCURRENCY,
        timeout_s: float = TIMEOUT_S,
        keeps: Mapping[Kind, Keep] | None = None,
    ) -> None:
        configuration.connection_pool_maxsize = max(concurrency * 2, 8)  # watches hold one each
        self.field_manager = field_manager
        self.server = str(configuration.host).rstrip("/")
        self._keeps = dict(keeps or {})
        self._configuration = configuration
        self._token = token
        self._rest = RESTClientObject(configuration)
        route = {"proxy": configuration.proxy, "server_hostname": configuration.tls_server_name}
        self._route: dict[str, Any] = {key: value for key, value in route.items() if value}
        self._slots = asyncio.Semaphore(concurrency)
        self._searches = asyncio.Semaphore(SEARCHES)
        self._timeout = aiohttp.ClientTimeout(total=timeout_s, sock_connect=CONNECT_TIMEOUT_S)
        self._discovery = Discovery(self.request)
        self._headers = {"Accept": _JSON, "User-Agent": f"tenantry/{__version__} ({field_manager})"}

    @classmethod
    async def connect(
        cls,
        *,
        field_manager: str,
        kubeconfig: Path | None = None,
        concurrency: int = CONCURRENCY,
        timeout_s: float = TIMEOUT_S,
        keeps: Mapping[Kind, Keep] | None = None,
    ) -> Self:
        """A client for the cluster that the kubeconfig, or else the environment, names.

        Raises:
            ConnectError: there is no usable configuration.  No request is made here.
        """
        configuration, token = await load_configuration(kubeconfig)
        try:
            return cls(
                configuration,
                field_manager=field_manager,
                token=token,
                concurrency=concurrency,
                timeout_s=timeout_s,
                keeps=keeps,
            )
        except (OSError, ValueError) as error:  # also what ssl says of certificates
            raise ConnectError(f"the certificates that the kubeconfig names cannot be used: {error}") from error

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._rest.close()

    # -- reading ---------------------------------------------------------------------------------------

    async def get(self, kind: Kind, name: str, namespace: str = "", *, whole: bool = False) -> Object | None:
        """The live object, or None when there is none: its namespace is gone, or nothing can have such a name.

        With ``whole`` as the server gives it, whatever ``keeps`` says of its kind.
        """
        if not can_be_name(name) or not (namespace == "" or can_be_name(namespace)):
            return None
        try:
            found = await self._json("GET", kind.path(namespace, name))
            return found if whole else self._kept(kind, found)
        except KindNotServed:
            raise
        except NotFound:
            return None

    async def list(
        self,
        kind: Kind,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
        metadata_only: bool = False,
        not_older_than: str = "",
        keep: Keep | None = None,
        one_page: bool = False,
    ) -> Listing:
        """All objects, read consistently (never from a stale cache), page by page.

        Items carry apiVersion and kind, and of ``managedFields`` only our own entries.  Pages have at most `limits.PAGE_BYTES`,
        be the objects as large as they can, and each item becomes what ``keep`` returns for it before the next page is read: so
        a list costs the memory of what is kept of it, and of one page (a-15).

        An expired continue token starts the list anew once, so that the result is of one moment; ``keep`` then sees items again.
        With ``limit`` at most that many items come back; with ``one_page`` none, when they are more bytes than a page.
        With ``metadata_only`` items have nothing but their metadata.  With
        ``not_older_than``, the resource version of an earlier list of the kind, the result is at least as new as that one: an API
        server answers it from its cache at once (and may give more than ``limit``), where a consistent list can wait for up to
        100 ms.
        """
        if namespace and not can_be_name(namespace):
            return Listing([], "")
        async with self._searches if field_selector and not namespace else nullcontext():
            for attempt in (1, 2):
                try:
                    return await self._list(
                        kind, namespace, label_selector, field_selector, limit, metadata_only, not_older_than, keep, one_page
                    )
                except ApiError as error:
                    if error.status != 410 or attempt == 2:
                        raise
                    not_older_than = ""
        raise AssertionError("unreachable")

    async def _list(
        self,
        kind: Kind,
        namespace: str,
        label_selector: str,
        field_selector: str,
        limit: int,
        metadata_only: bool,
        not_older_than: str,
        keep: Keep | None,
        one_page: bool,
    ) -> Listing:
        query: dict[str, str] = {}
        if label_selector:
            query["labelSelector"] = label_selector
        if field_selector:
            query["fieldSelector"] = field_selector
        if not_older_than:
            query |= {"resourceVersion": not_older_than, "resourceVersionMatch": "NotOlderThan"}
        items: list[Object] = []
        at_once = most = limit or limits.PAGE_OBJECTS
        accept = _METADATA_LIST if metadata_only else _JSON
        while True:
            query["limit"] = str(at_once)
            try:
                page, size = await self._sized(
                    "GET", kind.path(namespace), query, accept=accept, most=limits.PAGE_BYTES if at_once > 1 else 0
                )
            except _LargePage:
                if one_page:
                    return Listing([], "", complete=False)
                at_once = max(1, at_once // 4)
                page = None
            query.pop("resourceVersion", None)  # a token has its own; and a cache may answer with more than a page
            query.pop("resourceVersionMatch", None)
            if page is None:
                continue
            found = page["items"] or ()
            for item in found:
                # Lists leave these out of their items; every reader of ours wants them.
                item["apiVersion"], item["kind"] = kind.api_version, kind.kind
                _forget_others(item)
                kept = self._kept(kind, item)
                items.append(kept if keep is None else keep(kept))
            metadata = page["metadata"]
            query["continue"] = metadata.get("continue") or ""
            if not query["continue"] or (limit and len(items) >= limit):
                return Listing(items, metadata["resourceVersion"], complete=not query["continue"])
            # The next page has as many as are likely to fit, with as much to spare.
            at_once = max(1, min(most - len(items) if limit else most, limits.PAGE_BYTES * len(found) // max(1, 2 * size)))
            del page, found

    async def watch(
        self,
        kind: Kind,
        namespace: str = "",
        *,
        resource_version: str,
        label_selector: str = "",
        timeout_s: float = 300.0,
    ) -> AsyncIterator[tuple[str, Object]]:
        """Changes after ``resource_version`` as (``ADDED|MODIFIED|DELETED|BOOKMARK``, object).

        Ends when the server ends the watch; go on from the last resource version seen.

        Raises:
            Expired: the resource version is too old; list again.
        """
        query = {
            "watch": "1",
            "resourceVersion": resource_version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(int(timeout_s)),
        }
        if label_selector:
            query["labelSelector"] = label_selector
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S, sock_read=timeout_s + 30)
        response = await self._send("GET", kind.path(namespace), query, None, dict(self._headers), timeout)
        try:
            if response.status != 200:
                raise error_from(response.status, _decode(await response.read()), retry_after=_patience(response))
            async for line in response.content:
                change = decoded(line)
                if change["type"] == "ERROR":
                    status = change["object"]
                    raise error_from(int(status.get("code") or 500), status)
                yield change["type"], change["object"]
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise TransientError(f"the watch of {kind.plural} broke off: {_describe(error)}") from error
        finally:
            response.close()

    def _kept(self, kind: Kind, obj: Object) -> Object:
        keep = self._keeps.get(kind)
        return obj if keep is None else keep(obj)

    async def served(self, api_version: str, kind: str, *, again: bool = False) -> Kind | None:
        """How a kind is served: its plural and scope; None when it is not.

        Answers are remembered for a while: see `tenantry.api.discovery`.  With ``again`` the server is asked now.
        """
        return await self._discovery.find(api_version, kind, again=again)

    # -- writing ---------------------------------------------------------------------------------------

    async def apply(
        self, kind: Kind, body: Object, *, force: bool = True, subresource: str = "", dry_run: bool = False, manager: str = ""
    ) -> Object:
        """Server-side apply of all fields that our field manager, or ``manager``, owns; returns the object as stored.

        What is left out is given up.  A ``metadata.uid`` in the body makes sure that an object which
        vanished meanwhile is not made again: the answer is then a `ConflictError`.
        """
        metadata = body["metadata"]
        path = kind.path(metadata.get("namespace", ""), metadata["name"])
        query = {"fieldManager": manager or self.field_manager, "force": "true" if force else "false"}
        if dry_run:
            query["dryRun"] = "All"
        return self._kept(kind, await self._json("PATCH", _sub(path, subresource), query, body, content_type=_APPLY))

    async def create(self, kind: Kind, body: Object, *, dry_run: bool = False) -> Object:
        """Create, and only create: `AlreadyExists` when somebody was faster."""
        path = kind.path(body["metadata"].get("namespace", ""))
        query = {"fieldManager": self.field_manager, **({"dryRun": "All"} if dry_run else {})}
        return self._kept(kind, await self._json("POST", path, query, body))

    async def json_patch(self, kind: Kind, name: str, namespace: str, operations: Sequence[Object]) -> Object:
        """A JSON patch (RFC 6902) of one object; a ``test`` that fails is a `ConflictError`."""
        query = {"fieldManager": self.field_manager}
        path = kind.path(namespace, name)
        try:
            return self._kept(kind, await self._json("PATCH", path, query, operations, content_type=_JSON_PATCH))
        except Invalid as error:
            raise ConflictError(error.message, status=error.status, reason=error.reason) from error

    async def delete(
        self,
        kind: Kind,
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: str = "Background",
    ) -> None:
        """Delete under preconditions; an object that is gone already is fine.

        Raises:
            ConflictError: it is not the object (uid) or not the state (resourceVersion) that was meant.
        """
        preconditions = {"uid": uid, "resourceVersion": resource_version}
        body: Object = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
        if given := {name: value for name, value in preconditions.items() if value}:
            body["preconditions"] = given
        try:
            await self._json("DELETE", kind.path(namespace, name), None, body)
        except KindNotServed:
            raise
        except NotFound:
            return

    async def request(self, method: str, path: str, query: Mapping[str, str] | None = None, body: Any = None) -> Object:
        """Any other request, for example a subresource such as a token; JSON both ways."""
        return await self._json(method, path, query, body)

    # -- the wire --------------------------------------------------------------------------------------

    async def _json(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = _JSON,
    ) -> Object:
        return (await self._sized(method, path, query, body, content_type))[0]

    async def _sized(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = _JSON,
        *,
        accept: str = _JSON,
        most: int = 0,
    ) -> tuple[Object, int]:
        """The answer, and its bytes.

        Raises:
            _LargePage: it has more than ``most`` bytes, where that is given; the rest was not read.
        """
        headers = {**self._headers, "Content-Type": content_type, "Accept": accept}
        data = None if body is None else to_json(body)
        give_up_at = time.monotonic() + PATIENCE_S
        asked_again = False
        while True:
            async with self._slots:
                status, answer, size, retry_after = await self._exchange(method, path, query, data, headers, most)
            if status < 300:
                return answer, size
            error = error_from(status, answer, retry_after=retry_after, method=method)
            if isinstance(error, Unauthorized) and self._token is not None and not asked_again:
                asked_again = True
                self._token.forget()
                continue
            if not isinstance(error, TooManyRequests) or time.monotonic() + error.retry_after > give_up_at:
                raise error
            await asyncio.sleep(error.retry_after)

    async def _exchange(
        self, method: str, path: str, query: Mapping[str, str] | None, data: bytes | None, headers: dict[str, str], most: int = 0
    ) -> tuple[int, Object, int, float | None]:
        response = await self._send(method, path, query, data, dict(headers), self._timeout)
        try:
            raw = await (_at_most(response, most) if most else response.read())
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise TransientError(f"{method} {path}: the answer broke off: {_describe(error)}") from error
        return response.status, _decode(raw), len(raw), _patience(response)

    async def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        data: bytes | None,
        headers: dict[str, str],
        timeout: aiohttp.ClientTimeout,
    ) -> aiohttp.ClientResponse:
        rest = self._rest
        if rest.pool_manager is None:
            rest.pool_manager = rest._create_pool_manager()
        auth = await self._configuration.auth_settings()
        if "BearerToken" in auth:
            headers["Authorization"] = auth["BearerToken"]["value"]
        url = self.server + path + ("?" + urlencode(query) if query else "")
        try:
            response: aiohttp.ClientResponse = await rest.pool_manager.request(
                method, url, data=data, headers=headers, timeout=timeout, allow_redirects=False, **self._route
            )
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise TransientError(f"{method} {path}: {_describe(error)}") from error
        return response


async def _at_most(response: aiohttp.ClientResponse, most: int) -> bytes:
    """The body of an answer; `_LargePage` when it has more bytes, and the connection is given up."""
    raw = bytearray()
    async for part in response.content.iter_any():
        raw += part
        if len(raw) > most:
            response.close()
            raise _LargePage
    return bytes(raw)


def _patience(response: aiohttp.ClientResponse) -> float | None:
    """The seconds that ``Retry-After`` asks to wait, given as such or as a date (RFC 9110, 10.2.3)."""
    asked = response.headers.get("Retry-After", "")
    if asked.isdecimal():
        return float(asked)
    try:
        return max(0.0, parsedate_to_datetime(asked).timestamp() - time.time())
    except ValueError:
        return None


def _forget_others(item: Object) -> None:
    """Drop the field ownership of others from a listed object: half of its size, and nobody here asks for it."""
    entries = item["metadata"].get("managedFields")
    if entries:
        ours = [entry for entry in entries if entry.get("manager", "").startswith(FIELD_MANAGERS)]
        item["metadata"]["managedFields"] = ours


def _sub(path: str, subresource: str) -> str:
    return f"{path}/{subresource}" if subresource else path


def _decode(raw: bytes) -> Object:
    """The JSON object of an answer; proxies answer with text, which becomes the message."""
    try:
        value = decoded(raw)
    except ValueError:
        return {"message": raw[:200].decode("utf-8", "replace")}
    return value if isinstance(value, dict) else {}


def _describe(error: BaseException) -> str:
    return "timed out" if isinstance(error, TimeoutError) else (str(error) or type(error).__name__)
