"""List and watch one collection, and tell every difference: an informer without holes.

A store remembers what was told: uid and resource version per object, and the object itself if asked.  The first list
tells what exists; every later list (after 410, or a stream that cannot be read) is compared with the store, so that what
changed while nobody watched is told too: additions, updates, and deletions with the last known state.  A watch that ends
or breaks is resumed from the last resource version seen, which bookmarks keep fresh.

Invariant: after every list, and after every event of the watch, the store is what was told.  Never gives up: any failure
is followed by another try after 0.2 s to 5 s, or after as long as a busy server asks for, at most 60 s.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import aclosing
from typing import NamedTuple

from tenantry.api import Api, Listing
from tenantry.api.errors import ApiError, Expired, KindNotServed, NotConverted, TooManyRequests, TransientError
from tenantry.local.backlog import Verb
from tenantry.model.kinds import Kind, Object

FIRST_DELAY_S = 0.2
LONGEST_DELAY_S = 5.0
LONGEST_PATIENCE_S = 60.0
WATCH_S = 300.0
_SHORT_S = 1.0  # a watch that ends sooner, without a word, is waited after
_BREATH = 200  # objects of a list after which others may run


class Stored(NamedTuple):
    """What was announced of an object; ``obj`` only if objects are kept."""

    uid: str
    resource_version: str
    obj: Object | None


OnChange = Callable[[Verb, str, str, Object | None], None]
"""Called with verb, namespace, name and, if objects are kept, the newest (for delete: the last known) state."""
OnState = Callable[["Reflector", str, bool], None]
"""Called with a reason when the watch is lost, and with an empty one when it works; the flag: server unreachable."""


class Reflector:
    """The differences of one collection.  `run` never ends; `relist` compares once.

    ``reduce`` leaves of an object what is to be kept of it, also while a page of a list is read; doing it twice changes nothing.
    """

    def __init__(
        self,
        api: Api,
        kind: Kind,
        namespace: str = "",
        *,
        label_selector: str = "",
        keep_objects: bool = False,
        wanted: Callable[[Object], bool] | None = None,
        reduce: Callable[[Object], Object] | None = None,
        on_change: OnChange,
        on_state: OnState,
    ) -> None:
        self.kind = kind
        self.namespace = namespace
        self.synced = asyncio.Event()
        self.relists = 0
        self._api = api
        self._label_selector = label_selector
        self._keep_objects = keep_objects
        self._wanted = wanted
        self._reduce = reduce
        self._on_change = on_change
        self._on_state = on_state
        self._store: dict[tuple[str, str], Stored] = {}
        self._resource_version = ""

    def begin(self, listing: Listing) -> None:
        """Go on from a list that was read, and reduced, already, before `run`: only what differs from it is told."""
        for obj in listing.items:
            metadata = obj["metadata"]
            key = (metadata.get("namespace") or "", metadata["name"])
            self._store[key] = Stored(metadata["uid"], metadata["resourceVersion"], obj if self._keep_objects else None)
        self._resource_version = listing.resource_version
        self.synced.set()

    async def run(self) -> None:
        """List, watch, and go on for ever."""
        failures = 0
        while True:
            asked_s = 0.0
            try:
                if failures:
                    await self._probe()
                if not self._resource_version:
                    await self.relist()
                self._on_state(self, "", False)
                if await self._watch():
                    failures = 0
                    continue
            except Expired:
                self._resource_version = ""
                if not failures:
                    failures = 1
                    continue
            except KindNotServed:
                self._resource_version = ""
                self._on_state(self, f"the server does not serve {self.kind} yet", False)
                if failures:
                    self.synced.set()  # an optional kind: there is nothing that existed at start
            except NotConverted as error:
                self._on_state(self, f"cannot read {self.kind}: {error.message}", False)
                self.synced.set()  # whoever could convert them may have gone for good: all else does not wait for it
            except TransientError as error:
                self._on_state(self, error.message, True)
                asked_s = min(error.retry_after, LONGEST_PATIENCE_S) if isinstance(error, TooManyRequests) else 0.0
            except ApiError as error:
                self._on_state(self, f"cannot watch {self.kind}: {error.message}", False)
            except Exception as error:
                # A line that is no JSON, or one too long for the client: what it said comes with the list.  Anything
                # else too: a watch that ended silently would be the hole that this class must not have.
                self._resource_version = ""
                self._on_state(self, f"cannot read the watch of {self.kind}: {error!r}", False)
            failures += 1
            delay = min(LONGEST_DELAY_S, FIRST_DELAY_S * 2.0 ** min(failures - 1, 10))
            await asyncio.sleep(max(asked_s, delay * random.uniform(0.75, 1.0)))  # noqa: S311 (spreads load, guards nothing)

    async def relist(self) -> None:
        """List everything and tell the differences; raises the errors of `tenantry.api.errors`."""
        listing = await self._api.list(self.kind, self.namespace, label_selector=self._label_selector, keep=self._reduce)
        self.relists += 1
        gone = set(self._store)
        for count, obj in enumerate(listing.items, 1):
            gone.discard(self._tell(obj))
            if count % _BREATH == 0:
                await asyncio.sleep(0)
        for key in gone:
            known = self._store.pop(key)
            self._on_change("delete", *key, known.obj)
        self._resource_version = listing.resource_version
        self.synced.set()

    async def _probe(self) -> None:
        """Ask for one object: tells a server that is back, and one whose history is another, from one that is down."""
        listing = await self._api.list(self.kind, self.namespace, limit=1)
        if self._resource_version and int(listing.resource_version) < int(self._resource_version):
            self._resource_version = ""

    async def _watch(self) -> bool:
        """Watch until the server ends it; returns whether to go on at once."""
        clock = asyncio.get_running_loop().time
        started, said = clock(), False
        stream = self._api.watch(
            self.kind,
            self.namespace,
            resource_version=self._resource_version,
            label_selector=self._label_selector,
            timeout_s=WATCH_S,
        )
        async with aclosing(stream) as changes:  # type: ignore[type-var]  # an async generator behind its protocol
            async for verb, obj in changes:
                said = True
                if verb == "DELETED":
                    metadata = obj["metadata"]
                    key = (metadata.get("namespace") or "", metadata["name"])
                    if self._store.pop(key, None) is not None:
                        self._on_change("delete", *key, obj if self._keep_objects else None)
                elif verb != "BOOKMARK":
                    self._tell(obj)
                self._resource_version = obj["metadata"]["resourceVersion"]
        return said or clock() - started > _SHORT_S

    def _tell(self, obj: Object) -> tuple[str, str]:
        """Tell of an object that exists, unless this state of it was told; returns its key."""
        metadata = obj["metadata"]
        key = (metadata.get("namespace") or "", metadata["name"])
        known = self._store.get(key)
        if self._wanted is not None and not self._wanted(obj):
            self._store.pop(key, None)
            return key
        uid, resource_version = metadata["uid"], metadata["resourceVersion"]
        kept = obj if self._keep_objects else None
        if kept is not None and self._reduce is not None:
            kept = self._reduce(kept)
        if known is None or known.uid != uid:
            verb: Verb = "add"
        elif known.resource_version != resource_version:
            verb = "update"
        else:
            return key
        self._store[key] = Stored(uid, resource_version, kept)
        self._on_change(verb, *key, kept)
        return key
