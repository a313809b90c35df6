"""The client of an API server: raw JSON in, raw JSON out, every failure typed.

`Wire` makes the requests; `Api` has the operations: get, list, watch, apply, create, patch, delete.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import aiohttp

from tenantry.api.connect import load_configuration
from tenantry.api.depth import decoded
from tenantry.api.discovery import Discovery
from tenantry.api.errors import (
    ConflictError,
    ConnectError,
    Expired,
    Invalid,
    KindNotServed,
    NotFound,
    TransientError,
    error_from,
)
from tenantry.api.schema import Schemas
from tenantry.api.tokens import Token
from tenantry.api.turns import Turns, party
from tenantry.api.wire import CONNECT_TIMEOUT_S, JSON, TIMEOUT_S, LargePage, Wire, decode, describe, patience
from tenantry.model import limits
from tenantry.model.comparison import Schema
from tenantry.model.kinds import Kind, Object, can_be_name

SEARCHES = 4
"""Lists by field over all namespaces at a time. An API server whose cache is behind answers them from etcd and decodes every
object of the kind for each: thirty at a time, among a few hundred large objects, took it 5 GiB and half a minute (a-14)."""
CONCURRENCY = 32
LARGE_S = 60.0
"""Seconds for which a kind that has a large object is taken to have it still."""
FIELD_MANAGERS = "tenantry-"
"""Every field manager of ours begins so."""

Keep = Callable[[Object], Object]
"""What of an object is kept; called right after it was read, for a list in its order and before the next page is read."""

_APPLY = "application/apply-patch+yaml"
_JSON_PATCH = "application/json-patch+json"
_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_GROUPS = "application/json;as=APIGroupDiscoveryList;g=apidiscovery.k8s.io;v=v2"


@dataclass(frozen=True, slots=True)
class Listing:
    """A consistent list: the items and their resource version; not complete when a limit cut it off."""

    items: list[Object]
    resource_version: str
    complete: bool = True


class Api(Wire):
    """An asynchronous client of one API server under one identity.

    ``field_manager`` owns every field that it writes.  ``keeps`` reduces each object of a kind when it is read: large fields
    that tenants control and no function uses never stay in memory (a-14).  Use it as an async context manager, or call `close`.
    All methods raise the errors of `tenantry.api.errors`.
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
        impersonated: Sequence[tuple[str, str]] = (),
    ) -> None:
        super().__init__(configuration, field_manager, token, concurrency, timeout_s, impersonated)
        self.field_manager = field_manager
        self._keeps = dict(keeps or {})
        self._searches = Turns(SEARCHES)
        self._large_until: dict[Kind, float] = {}
        self._discovery = Discovery(self.request)
        self._schemas = Schemas(self.request)

    @classmethod
    async def connect(
        cls,
        *,
        field_manager: str,
        kubeconfig: Path | None = None,
        concurrency: int = CONCURRENCY,
        timeout_s: float = TIMEOUT_S,
        keeps: Mapping[Kind, Keep] | None = None,
        user: str = "",
        groups: Sequence[str] = (),
    ) -> Self:
        """A client for the cluster that the kubeconfig, or else the environment, names.

        With ``user`` every request impersonates that user, in these ``groups``: the kubeconfig must be of somebody who may.

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
                impersonated=[("Impersonate-User", user), *(("Impersonate-Group", each) for each in groups)] if user else (),
            )
        except (OSError, ValueError) as error:  # also those of ssl
            raise ConnectError(f"the certificates that the kubeconfig names cannot be used: {error}") from error

    # -- reading ---------------------------------------------------------------------------------------

    async def get(self, kind: Kind, name: str, namespace: str = "", *, whole: bool = False) -> Object | None:
        """The live object, or None when there is none: also without its namespace, and for a name that no object can have.

        With ``whole`` it comes as the server gives it, not reduced by ``keeps``.
        """
        if not can_be_name(name) or not (namespace == "" or can_be_name(namespace)):
            return None
        try:
            found, size = await self._sized("GET", kind.path(namespace, name))
            self._note_size(kind, size)
            return found if whole else self._kept(kind, found)
        except KindNotServed:
            raise
        except NotFound:
            return None

    async def head(self, kind: Kind, name: str, namespace: str = "") -> Object | None:
        """The metadata of the live object, with all of its ``managedFields``, read without its contents; None without one."""
        try:
            return (await self._sized("GET", kind.path(namespace, name), accept=_METADATA))[0]
        except KindNotServed:
            raise
        except NotFound:
            return None

    async def version(self, kind: Kind, name: str, namespace: str = "") -> str:
        """The resourceVersion of the live object, read without its contents; empty when there is none."""
        found = await self.head(kind, name, namespace)
        return str(found["metadata"]["resourceVersion"]) if found is not None else ""

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
        With ``limit`` at most that many items come back; with ``one_page`` none, when they are more bytes than a page.  With
        ``metadata_only`` items have nothing but their metadata.  With ``not_older_than``, the resource version of an earlier list
        of the kind, the result is at least as new as that one: an API server answers it from its cache at once (and may give more
        than ``limit``), where a consistent list can wait for up to 100 ms.
        """
        if namespace and not can_be_name(namespace):
            return Listing([], "")
        selectors = {"labelSelector": label_selector, "fieldSelector": field_selector}
        query = {name: value for name, value in selectors.items() if value}
        newer = {"resourceVersion": not_older_than, "resourceVersionMatch": "NotOlderThan"} if not_older_than else {}
        path, accept = kind.path(namespace), _METADATA_LIST if metadata_only else JSON
        async with self._searches.turn(party.get()) if field_selector and not namespace else nullcontext():
            try:
                return await self._list(kind, path, query | newer, limit, accept, keep, one_page)
            except Expired:
                return await self._list(kind, path, query, limit, accept, keep, one_page)

    async def _list(
        self, kind: Kind, path: str, query: dict[str, str], limit: int, accept: str, keep: Keep | None, one_page: bool
    ) -> Listing:
        items: list[Object] = []
        at_once = most = limit or limits.PAGE_OBJECTS
        while True:
            query["limit"] = str(at_once)
            try:
                page, size = await self._sized("GET", path, query, accept=accept, most=limits.PAGE_BYTES if at_once > 1 else 0)
            except LargePage:
                if one_page:
                    return Listing([], "", complete=False)
                at_once = max(1, at_once // 4)
                page = None
            query.pop("resourceVersion", None)  # a token has its own; and a cache may answer with more than a page
            query.pop("resourceVersionMatch", None)
            if page is None:
                continue
            found = page["items"] or ()
            self._note_size(kind, size // max(1, len(found)))
            for item in found:
                # Lists leave these out of their items; every reader of ours wants them.
                item["apiVersion"], item["kind"] = kind.api_version, kind.kind
                forget_others(item)
                kept = self._kept(kind, item)
                items.append(kept if keep is None else keep(kept))
            metadata = page["metadata"]
            query["continue"] = metadata.get("continue") or ""
            if not query["continue"] or (limit and len(items) >= limit):
                return Listing(items, metadata["resourceVersion"], complete=not query["continue"])
            # The next page has as many as are likely to fit, with as much to spare.
            at_once = max(1, min(most - len(items) if limit else most, limits.PAGE_BYTES * len(found) // max(1, 2 * size)))
            del page, found

    def has_large(self, kind: Kind) -> bool:
        """Whether a large object of the kind was read lately, by itself or among others: a list of all is dear then."""
        return time.monotonic() < self._large_until.get(kind, 0.0)

    def _note_size(self, kind: Kind, size: int) -> None:
        if size > limits.ANSWER_SMALL_BYTES:
            self._large_until[kind] = time.monotonic() + LARGE_S

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
        response = await self._send("GET", kind.path(namespace), query, None, self._headers, timeout)
        try:
            if response.status != 200:
                raise error_from(response.status, decode(await response.read()), retry_after=patience(response))
            async for line in response.content:
                change = decoded(line)
                if change["type"] == "ERROR":
                    status = change["object"]
                    raise error_from(int(status.get("code") or 500), status)
                yield change["type"], change["object"]
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise TransientError(f"the watch of {kind.plural} broke off: {describe(error)}") from error
        finally:
            response.close()

    def _kept(self, kind: Kind, obj: Object) -> Object:
        keep = self._keeps.get(kind)
        return obj if keep is None else keep(obj)

    async def served(self, api_version: str, kind: str, *, again: bool = False) -> Kind | None:
        """How a kind is served: its plural and scope; None when it is not.

        Answers are cached for a while: see `tenantry.api.discovery`.  With ``again`` the cache does not count.
        """
        return await self._discovery.find(api_version, kind, again=again)

    async def groups(self) -> Object:
        """All groups but the core group with their versions and resources, as ``APIGroupDiscoveryList``, read now."""
        return (await self._sized("GET", "/apis", accept=_GROUPS))[0]

    async def core(self) -> Object:
        """The core group alone, in the same form, read now."""
        return (await self._sized("GET", "/api", accept=_GROUPS))[0]

    async def preferred(self, group: str, kind: str, *, again: bool = False) -> Kind | None:
        """A kind, by its name or its plural, in the version of its group that the server prefers; None when it is not served."""
        return await self._discovery.preferred(group, kind, again=again)

    def doubt_missing(self) -> None:
        """That kinds are missing is asked for again: `tenantry.api.discovery`."""
        self._discovery.doubt()

    async def has_status(self, kind: Kind) -> bool:
        """Whether the status of a kind is written by itself."""
        return await self._discovery.has_status(kind)

    async def is_foreign(self, kind: Kind) -> bool:
        """Whether a kind that we have a CRD for is served by one of another system."""
        return await self._discovery.is_foreign(kind)

    async def schema(self, kind: Kind) -> Schema:
        """How the API server merges and compares the fields of a kind, remembered for a while: see `tenantry.api.schema`."""
        return await self._schemas.find(kind)

    # -- writing ---------------------------------------------------------------------------------------

    async def apply(
        self, kind: Kind, body: Object, *, force: bool = True, subresource: str = "", dry_run: bool = False, manager: str = ""
    ) -> Object:
        """Server-side apply of all fields that our field manager, or ``manager``, owns; returns the object as stored.

        What is left out is given up.  A ``metadata.uid`` in the body makes sure that an object that was deleted meanwhile is not
        made again: the answer is then a `ConflictError`.
        """
        metadata = body["metadata"]
        path = kind.path(metadata.get("namespace", ""), metadata["name"]) + (f"/{subresource}" if subresource else "")
        query = {"fieldManager": manager or self.field_manager, "force": "true" if force else "false"}
        if dry_run:
            query["dryRun"] = "All"
        return self._kept(kind, await self.request("PATCH", path, query, body, content_type=_APPLY))

    async def create(self, kind: Kind, body: Object, *, dry_run: bool = False, manager: str = "") -> Object:
        """Create, and only create: `AlreadyExists` when the object exists.  ``manager`` owns its fields, or else our own."""
        path = kind.path(body["metadata"].get("namespace", ""))
        query = {"fieldManager": manager or self.field_manager, **({"dryRun": "All"} if dry_run else {})}
        return self._kept(kind, await self.request("POST", path, query, body))

    async def replace(self, kind: Kind, body: Object) -> Object:
        """Update all of an object, which has the uid and resourceVersion that it is replaced at: `ConflictError` at any other."""
        path = kind.path(body["metadata"].get("namespace", ""), body["metadata"]["name"])
        return self._kept(kind, await self.request("PUT", path, {"fieldManager": self.field_manager}, body))

    async def json_patch(
        self,
        kind: Kind,
        name: str,
        namespace: str,
        operations: Sequence[Object],
        *,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Object:
        """A JSON patch (RFC 6902) of one object; a ``test`` that fails is a `ConflictError`."""
        query = {"fieldManager": self.field_manager, **({"dryRun": "All"} if dry_run else {})}
        path = kind.path(namespace, name) + (f"/{subresource}" if subresource else "")
        try:
            return self._kept(kind, await self.request("PATCH", path, query, operations, content_type=_JSON_PATCH))
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
        dry_run: bool = False,
    ) -> bool:
        """Delete under preconditions; an object that is deleted already is fine.  Returns whether it is gone.

        False: it may be there still, as one that waits for its finalizers, or with ``dry_run``.

        Raises:
            ConflictError: it is not the object (uid) or not the state (resourceVersion) that was meant.
        """
        preconditions = {"uid": uid, "resourceVersion": resource_version}
        body: Object = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
        if given := {name: value for name, value in preconditions.items() if value}:
            body["preconditions"] = given
        if dry_run:
            body["dryRun"] = ["All"]
        try:
            answer = await self.request("DELETE", kind.path(namespace, name), None, body)
        except KindNotServed:
            raise
        except NotFound:
            return True
        return not dry_run and bool(answer.get("kind") == "Status")


def forget_others(item: Object) -> None:
    """Drop the field ownership of others from a listed object: half of its size, and unused here."""
    entries = item["metadata"].get("managedFields")
    if entries:
        ours = [entry for entry in entries if entry.get("manager", "").startswith(FIELD_MANAGERS)]
        item["metadata"]["managedFields"] = ours
