"""Reading a cluster with changes laid on top: every answer is as if all that was laid on were there.

Live answers are kept: a plan is of one moment.  What is not read for want of a right is noted, and raised as ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping
from copy import deepcopy
from typing import Any

from tenantry.api import Api, Keep, Listing
from tenantry.api.client import forget_others
from tenantry.api.errors import ApiError, Forbidden, KindNotServed, NotFound
from tenantry.api.review import REVIEWS
from tenantry.api.wire import JSON
from tenantry.engine.overlay.rights import allowed
from tenantry.engine.overlay.selecting import fits_fields, fits_labels, parsed_labels
from tenantry.engine.overlay.store import ObjectPlace, Overlay, place_of
from tenantry.model.kinds import Kind, Object, can_be_name


class OverlayReads(Api):
    """One identity's view of a cluster with an overlay, by a client that several share; ``keeps`` is as that of an `Api`."""

    def __init__(self, live: Api, overlay: Overlay, *, field_manager: str = "", keeps: Mapping[Kind, Keep] | None = None) -> None:
        # No client of its own: what is to be read, the live one reads.
        self.field_manager = field_manager or live.field_manager
        self.live = live
        self.overlay = overlay
        self.turns = live.turns
        self.server = live.server
        self._keeps = dict(keeps or {})
        self._discovery, self._schemas, self._large_until = live._discovery, live._schemas, live._large_until
        self._reads: dict[Hashable, asyncio.Task[Any]] = {}

    async def close(self) -> None:
        """Nothing: the live client is its owner's."""

    # -- reading ---------------------------------------------------------------------------------------

    async def _once(self, asked: Hashable, read: Callable[[], Awaitable[Any]], what: str) -> Any:
        """What a read of the server gives, which is made once; each time where it has no name (None)."""
        if asked is None:
            return await self._noting(read(), what)
        if asked not in self._reads:
            self._reads[asked] = asyncio.ensure_future(read())
        try:
            return await self._noting(asyncio.shield(self._reads[asked]), what)
        except Forbidden:
            raise
        except ApiError:
            self._reads.pop(asked, None)  # it may be there, or answer, the next time
            raise

    async def _noting(self, read: Awaitable[Any], what: str) -> Any:
        """The same read; what cannot be read is noted."""
        try:
            return await read
        except KindNotServed:
            self.overlay.not_served.add(what.split(" ")[1])
            raise
        except ApiError as error:
            if not isinstance(error, NotFound):
                self.overlay.unseen[what] = error.message
            raise

    async def current(self, kind: Kind, name: str, namespace: str = "") -> Object | None:
        """The whole object as it would be, or None; a copy."""
        place = place_of(kind, name, namespace)
        if place in self.overlay.laid:
            laid = self.overlay.laid[place][1]
            return None if laid is None else {**deepcopy(laid), "apiVersion": kind.api_version}
        if place.namespace and self.overlay.is_gone(place.namespace):
            return None
        if not can_be_name(name) or not (namespace == "" or can_be_name(namespace)):
            return None
        what = f"{kind.plural} {namespace}/{name}" if kind.namespaced else f"{kind.plural} {name}"
        found: Object | None = await self._once(
            ("get", kind, place), lambda: self.live.get(kind, name, place.namespace, whole=True), f"get {what}"
        )
        return deepcopy(found)

    async def get(self, kind: Kind, name: str, namespace: str = "", *, whole: bool = False) -> Object | None:
        """The object as it would be, or None."""
        found = await self.current(kind, name, namespace)
        return found if whole or found is None else self._kept(kind, found)

    async def version(self, kind: Kind, name: str, namespace: str = "") -> str:
        """The resourceVersion that the object would have; empty when there would be none."""
        found = await self.current(kind, name, namespace)
        return "" if found is None else str(found["metadata"]["resourceVersion"])

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
        """The objects as they would be: those of the server, but for what is laid on, and that."""
        del not_older_than  # versions of what is laid on are none of the server's
        asked: Hashable = ("list", kind, namespace, label_selector, field_selector, limit, metadata_only, keep, one_page)
        if keep is not None and "<locals>" in getattr(keep, "__qualname__", "<locals>"):
            asked = None  # made for this very list

        async def read() -> tuple[Listing, list[ObjectPlace]]:
            places: list[ObjectPlace] = []

            def noted(item: Object) -> Object:
                metadata = item["metadata"]
                places.append(place_of(kind, metadata["name"], metadata.get("namespace", "")))
                kept = self._kept(kind, item)
                return kept if keep is None else keep(kept)

            found = await self.live.list(
                kind,
                namespace,
                label_selector=label_selector,
                field_selector=field_selector,
                limit=limit,
                metadata_only=metadata_only,
                keep=noted,
                one_page=one_page,
            )
            return found, places[len(places) - len(found.items) :]  # an expired list begins anew

        if namespace and self.overlay.is_gone(namespace):
            return Listing([], self.overlay.version())
        where = f" in {namespace}" if namespace else ""
        found, places = await self._once(asked, read, f"list {kind.plural}{where}")
        laid, selector = self.overlay.laid, parsed_labels(label_selector)
        items = [
            (place, deepcopy(item))
            for place, item in zip(places, found.items, strict=True)
            if place not in laid and not (place.namespace and self.overlay.is_gone(place.namespace))
        ]
        for obj in self.overlay.of_kind(kind):
            place = place_of(kind, obj["metadata"]["name"], obj["metadata"].get("namespace", ""))
            inside = not namespace or not kind.namespaced or place.namespace == namespace
            if inside and fits_labels(obj, selector) and fits_fields(obj, field_selector):
                item = {name: obj[name] for name in ("apiVersion", "kind", "metadata")} if metadata_only else obj
                forget_others(item)
                kept = self._kept(kind, item)
                items.append((place, kept if keep is None else keep(kept)))
        items.sort(key=lambda each: (each[0].namespace, each[0].name))
        return Listing([item for _, item in items], found.resource_version, found.complete)

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
        """Reads, and access reviews, which are answered by the bindings as they would be."""
        del content_type
        if method == "GET":
            return await self.live._sized(method, path, query, accept=accept, most=most)
        if (method, path) == ("POST", REVIEWS):
            return {**body, "status": {"allowed": await allowed(body["spec"], self)}}, 0
        raise NotImplementedError(f"{method} {path} is nothing that can be foreseen")
