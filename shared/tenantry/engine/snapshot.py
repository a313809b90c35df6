"""Whole lists that answer in place of requests, for a sweep.

What they say only decides whether a live run is needed, never a write.
"""

from __future__ import annotations

import asyncio
import builtins
import math
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from weakref import WeakValueDictionary

from tenantry.api import Api, Keep, Listing
from tenantry.api.errors import KindNotServed
from tenantry.engine.copies import OneCopy
from tenantry.engine.items import fits, selector
from tenantry.engine.reader import FEW, Fingerprint, Reader
from tenantry.engine.tasks import started
from tenantry.model.kinds import Key, Kind, Object, key_in, labels_of
from tenantry.model.values import LeftOut


@dataclass(frozen=True, slots=True)
class Prefetch:
    """A list that a sweep reads once: the kind, narrowed by labels, a name or a namespace.

    It answers every question that it covers: what it would contain and does not, does not exist.
    With ``optional`` a kind that the server does not serve has no objects.
    """

    kind: Kind
    labels: tuple[tuple[str, str], ...] = ()
    name: str = ""
    namespace: str = ""
    optional: bool = False
    headers: bool = False
    """Only metadata; it answers `Reader.headers`, and nothing else."""
    keep: Keep | None = None
    """What of each object is kept (`Api.list`)."""

    @property
    def narrows(self) -> bool:
        """Whether it has not all objects of the kind."""
        return bool(self.labels or self.name or self.namespace)

    def covers(self, namespace: str, labels: Mapping[str, str], name: str) -> bool:
        """Whether every object that is asked for would be in this list."""
        if self.namespace not in ("", namespace) or self.name not in ("", name):
            return False
        return all(label in labels and value in ("", labels[label]) for label, value in self.labels)


def _label(label: str, item: Object) -> str | None:
    return labels_of(item).get(label)


class _Table:
    """The items of one prefetched list, indexed by namespace and by label as far as somebody asks."""

    def __init__(self, wanted: Prefetch, items: builtins.list[Object]) -> None:
        self.wanted = wanted
        self._items = items
        self._indexes: dict[str, dict[str, builtins.list[Object]]] = {}

    def find(self, namespace: str, labels: Mapping[str, str], name: str) -> builtins.list[Object]:
        """The items that match, in time that grows with the result only."""
        named = [self._by(f"label {label}", partial(_label, label)).get(value, []) for label, value in labels.items() if value]
        if namespace:
            named.append(self._by("namespace", lambda item: item["metadata"].get("namespace")).get(namespace, []))
        if name:
            named.append(self._by("name", lambda item: item["metadata"]["name"]).get(name, []))
        found = min(named, key=len, default=self._items)
        return [item for item in found if fits(item, namespace, labels, name)]

    def _by(self, index: str, value_of: Callable[[Object], str | None]) -> dict[str, builtins.list[Object]]:
        if index not in self._indexes:
            made: dict[str, builtins.list[Object]] = {}
            for item in self._items:
                value = value_of(item)
                if value is not None:
                    made.setdefault(value, []).append(item)
            self._indexes[index] = made
        return self._indexes[index]


Lists = WeakValueDictionary[Prefetch, "asyncio.Task[Listing]"]
"""Lists that are being read for several snapshots of one moment; they stay no longer than these need them."""


async def _read(api: Api, wanted: Prefetch, shared: Keep) -> Listing:
    def keep(item: Object) -> Object:
        kept = item if wanted.keep is None else wanted.keep(item)
        return shared(kept) if type(kept) is dict else kept  # a `LeftOut` says more than its contents

    try:
        return await api.list(
            wanted.kind,
            wanted.namespace,
            label_selector=selector(dict(wanted.labels)),
            field_selector=f"metadata.name={wanted.name}" if wanted.name else "",
            metadata_only=wanted.headers,
            keep=keep,
        )
    except KindNotServed:
        if not wanted.optional or await api.served(wanted.kind.api_version, wanted.kind.kind, again=True) is not None:
            raise
        return Listing([], "")


class Snapshot(Reader):
    """A reader that answers from prefetched lists where they cover the question, and live where not."""

    live = False

    def __init__(self, api: Api) -> None:
        super().__init__(api)
        self.begun = time.monotonic()
        """When its lists were begun: what happened before, they show."""
        self._tables: dict[Kind, builtins.list[_Table]] = {}
        self._headers: dict[Kind, builtins.list[_Table]] = {}
        self._listed: dict[Hashable, asyncio.Task[builtins.list[Object]]] = {}
        self._asked: dict[Key, asyncio.Task[Object | None]] = {}
        self._left_out: set[Key] = set()
        self._dates: dict[Kind, builtins.list[str]] = {}
        """The resourceVersions of the prefetched lists, by kind."""

    @classmethod
    async def take(cls, api: Api, wanted: Iterable[Prefetch], lists: Lists | None = None) -> Snapshot:
        """Read all that is wanted, in parallel; what is in ``lists`` is not read again, and what is not is put there.

        Who shares lists is of one sweep: when that is given up, so are the reads.
        """
        snapshot, one_copy = cls(api), OneCopy()
        lists = WeakValueDictionary() if lists is None else lists
        every = tuple(wanted)
        of_kind = Counter(each.kind for each in every)
        reads = []
        for each in every:
            shared = one_copy.of_several_lists if of_kind[each.kind] > 1 else one_copy.with_shared_parts
            reads.append(lists.get(each) or lists.setdefault(each, started(_read(api, each, shared))))
        try:
            found = await asyncio.gather(*map(asyncio.shield, reads))
        except asyncio.CancelledError:
            for read in reads:
                read.cancel()
            raise
        for each, listing in zip(every, found, strict=True):
            snapshot._dates.setdefault(each.kind, []).append(listing.resource_version)
            snapshot._keep(each, listing.items)
        return snapshot

    @classmethod
    async def of(cls, reader: Reader, wanted: Iterable[Prefetch]) -> Snapshot:
        """These lists, read now; of a snapshot itself: what a sweep reads is of one moment."""
        return reader if isinstance(reader, cls) else await cls.take(reader._api, wanted)

    def _keep(self, wanted: Prefetch, items: builtins.list[Object]) -> None:
        if wanted.headers:
            self._headers.setdefault(wanted.kind, []).append(_Table(wanted, items))
            return
        for item in items:
            metadata = item["metadata"]
            key = key_in(wanted.kind, metadata["name"], metadata.get("namespace", ""))
            if isinstance(item, LeftOut):
                self._left_out.add(key)
            else:
                self.known[key] = item
        self._tables.setdefault(wanted.kind, []).append(_Table(wanted, items))

    def listed_after(self, kinds: Iterable[Kind]) -> float:
        """The resourceVersion that no list of these kinds is older than (KEP-5504); 0 where one of them has none.

        Lists of one snapshot are of moments that lie up to 0.1 s apart: what an object says may be newer than a list.
        """
        dates = [date for kind in kinds for date in self._dates.get(kind) or [self.known.versions.get(kind, "")]]
        return min((int(date) if date.isdecimal() else 0 for date in dates), default=math.inf)

    async def get(
        self, kind: Kind, name: str, namespace: str = "", *, verify: Fingerprint | None = None, again: bool = False
    ) -> Object | None:
        """The object as it was listed; what the list left out is read each time that it is asked for, and not kept."""
        if key_in(kind, name, namespace) in self._left_out:
            return await self.fetch(kind, name, namespace)
        return await super().get(kind, name, namespace, verify=verify, again=again)

    async def get_shared(self, kind: Kind, name: str) -> Object | None:
        """The same as `get`: a snapshot asks once."""
        return await self.get(kind, name)

    async def list_shared(
        self, kind: Kind, namespace: str = "", *, labels: Mapping[str, str] | None = None, keep: Keep | None = None
    ) -> builtins.list[Object]:
        """The same as `list`."""
        return await self.list(kind, namespace, labels=labels, keep=keep)

    async def named(self, kind: Kind, name: str, *, headers: bool = False) -> builtins.list[Object]:
        """The same as `list`."""
        del headers
        return await self.list(kind, name=name)

    async def all_shared(self, kind: Kind, most: int = FEW, *, keep: Keep | None = None) -> builtins.list[Object] | None:
        """The prefetched list, however long."""
        del most
        return await self.list(kind, keep=keep)

    def _table(self, kind: Kind, namespace: str, labels: Mapping[str, str], name: str) -> _Table | None:
        tables = self._tables.get(kind, ())
        return next((table for table in tables if table.wanted.covers(namespace, labels, name)), None)

    async def _fetch(self, kind: Kind, name: str, namespace: str) -> Object | None:
        if self._table(kind, namespace, {}, name) is not None:
            return None
        key = key_in(kind, name, namespace)
        if key not in self._asked:
            self._asked[key] = started(super()._fetch(kind, name, namespace))
        return await asyncio.shield(self._asked[key])

    async def list(
        self,
        kind: Kind,
        namespace: str = "",
        *,
        labels: Mapping[str, str] | None = None,
        name: str = "",
        fields: str = "",
        keep: Keep | None = None,
    ) -> builtins.list[Object]:
        """From a prefetched list that covers the question, else live, once for all who ask the same."""
        table = self._table(kind, namespace, labels or {}, name)
        if table is None or fields:
            asked = (kind, namespace, tuple(sorted((labels or {}).items())), name, fields, keep)
            if asked not in self._listed:
                self._listed[asked] = started(super().list(kind, namespace, labels=labels, name=name, fields=fields, keep=keep))
            return await asyncio.shield(self._listed[asked])
        return table.find(namespace, labels or {}, name)

    async def try_apply(self, kind: Kind, body: Object) -> Object | None:
        """None: a snapshot only tells whether a live run is needed."""
        del kind, body
        return None

    async def headers(
        self, kind: Kind, namespace: str = "", *, labels: Mapping[str, str], keep: Keep | None = None
    ) -> builtins.list[Object]:
        """From a prefetched list that covers the question, else live."""
        for table in self._headers.get(kind, ()):
            if table.wanted.covers(namespace, labels, ""):
                return table.find(namespace, labels, "")
        return await super().headers(kind, namespace, labels=labels, keep=keep)
