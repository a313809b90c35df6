"""Reading Helm's records: which revisions there are, and what the ones that matter say.

Only the storage that the release uses is read: whoever may write ConfigMaps may not be able to write Secrets.
Lists bring metadata only.  Contents are read for the newest record, and for older ones as long as no deployed one was
found; what was read is remembered by uid and resource version, of which each has one content for ever.
"""

from __future__ import annotations

import asyncio
import datetime
from collections import OrderedDict
from dataclasses import dataclass, replace

from pydantic_core import from_json, to_json

from lock_enforcement.helm import RECORD_LABELS, BadRecord, LargeRecord, Mark, Record, read_record, revision_of
from tenantry.engine.items import versions_in
from tenantry.engine.reader import Reader
from tenantry.model import limits
from tenantry.model.kinds import Key, Kind, Object, key_of, labels_of
from tenantry.model.manifests import read_manifest
from tenantry.model.plan import Precondition


@dataclass(frozen=True, slots=True)
class RecordedObject:
    """One object of a manifest: what it is called there, and its JSON."""

    named: Key
    json: bytes

    def key(self, kind: Kind | None, release: Mark) -> Key:
        """What it is called in the cluster: an object without namespace lives in that of the release."""
        namespaced = kind is None or kind.namespaced
        return replace(self.named, namespace=(self.named.namespace or release.namespace) if namespaced else "")

    def load(self) -> Object:
        """The object."""
        loaded: Object = from_json(self.json)
        return loaded


@dataclass(frozen=True, slots=True)
class Content:
    """What a record says: the record without its manifest, the manifest's objects, and what is no object in it."""

    record: Record
    parts: tuple[RecordedObject, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class History:
    """The records of one release.

    ``newest`` is the newest readable one, ``deployed`` the newest that Helm calls deployed, ``changed_at`` when the newest was
    written (seconds since the epoch).  ``precondition`` holds as long as no record of the release changes.
    """

    newest: Content | None = None
    deployed: Content | None = None
    unreadable: tuple[str, ...] = ()
    changed_at: float = 0.0
    precondition: Precondition | None = None


class TooLarge(str):
    """Why a record is over a budget: nothing is kept then, since it may be the one that counts."""

    __slots__ = ()


class Records:
    """Contents of records, remembered up to a number of bytes; one is unpacked and parsed at a time, in a thread."""

    def __init__(self) -> None:
        self._gate = asyncio.Semaphore(1)
        self._known: OrderedDict[tuple[str, str], Content | str] = OrderedDict()
        self._bytes = 0

    @staticmethod
    async def headers(release: Mark, storage: Kind, reader: Reader) -> list[Object]:
        """The metadata of the records of a release."""
        return await reader.headers(storage, release.namespace, labels={**RECORD_LABELS, "name": release.name})

    async def history(self, release: Mark, storage: Kind, reader: Reader) -> History:
        """Read the records of a release."""
        headers = await self.headers(release, storage, reader)
        named = [(revision, each) for each in headers if (revision := revision_of(each, release.name)) is not None]
        remaining = sorted(named, key=lambda each: -each[0])
        labels = (*sorted(RECORD_LABELS.items()), ("name", release.name))
        newest: Content | None = None
        unreadable: list[str] = []
        changed_at, precondition = 0.0, None
        looked = 0
        while remaining and looked < limits.OLDER_RECORDS:
            revision, header = remaining.pop(0)
            content = await self._content(storage, header, release.name, reader)
            if content is None:
                continue  # gone since the list
            looked += 1
            if isinstance(content, TooLarge):
                return History(unreadable=(*unreadable, f"revision {revision}: {content}"))
            if isinstance(content, str):
                unreadable.append(f"revision {revision}: {content}")
                continue
            if newest is None:
                newest, changed_at = content, _changed_at(header, content.record)
                precondition = Precondition(storage, release.namespace, labels, versions_in(headers))
                # Helm's own label says where to look; what the record says decides.
                remaining.sort(key=lambda each: (labels_of(each[1]).get("status") != "deployed", -each[0]))
            if content.record.status == "deployed":
                return History(newest, content, tuple(unreadable), changed_at, precondition)
        return History(newest, None, tuple(unreadable), changed_at, precondition)

    async def _content(self, kind: Kind, header: Object, release: str, reader: Reader) -> Content | str | None:
        metadata = header["metadata"]
        known = metadata["uid"], metadata["resourceVersion"]
        if known in self._known:
            self._known.move_to_end(known)
            return self._known[known]
        stored = await reader.fetch(kind, metadata["name"], metadata["namespace"])
        if stored is None:
            return None
        async with self._gate:
            content = await asyncio.to_thread(_read, stored, release)
        self._remember((stored["metadata"]["uid"], stored["metadata"]["resourceVersion"]), content)
        return content

    def _remember(self, key: tuple[str, str], content: Content | str) -> None:
        if key in self._known:
            self._bytes -= _size(self._known.pop(key))  # two have read it at the same time
        self._known[key] = content
        self._bytes += _size(content)
        while self._bytes > limits.RECORDS_REMEMBERED_BYTES and len(self._known) > 1:
            _, dropped = self._known.popitem(last=False)
            self._bytes -= _size(dropped)


def _read(stored: Object, release: str) -> Content | str:
    """What a record says, or why it cannot be read."""
    try:
        record = read_record(stored, release)
    except LargeRecord as error:
        return TooLarge(error)
    except BadRecord as error:
        return str(error)
    manifest, record = record.manifest, replace(record, manifest="")
    if record.status != "deployed":
        return Content(record)
    read = read_manifest(manifest)
    parts = tuple(RecordedObject(key_of(found), to_json(found)) for found in read.objects)
    return Content(record, parts, tuple(map(str, read.problems)))


def _size(content: Content | str) -> int:
    """Bytes, roughly."""
    if isinstance(content, str):
        return 200
    return 1000 + len(content.record.notes) + sum(len(part.json) + 300 for part in content.parts)


def _changed_at(header: Object, record: Record) -> float:
    """When a record was written last: Helm's labels, its own time, and the object's, whichever is latest."""
    labels = labels_of(header)
    times = [float(labels[name]) for name in ("createdAt", "modifiedAt") if labels.get(name, "").isdigit()]
    for text in (record.since, header["metadata"].get("creationTimestamp") or ""):
        try:
            times.append(datetime.datetime.fromisoformat(text).timestamp())
        except ValueError:
            continue
    return max(times, default=0.0)
