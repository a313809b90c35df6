"""Live reads of one run: each object is read at most once, and optimistic inputs are looked at again.

A `Reader` lives for one attempt.  What the run was woken by (`causes`) is known to it; objects that were read live a moment ago
to find the owner are handed on instead of being read twice.  With ``verify`` a unit marks a read whose change would make its
decision wrong; `Reader.unchanged` reads those again after the writes.

What does not depend on the owner (all ClusterRoleBindings) is read once for the runs that want it at the same
time: `Shared` gives nobody a read that began before he asked.

A `Snapshot` answers from whole lists instead, for the sweep: its answers only decide whether a live run
is needed, never a write.
"""

from __future__ import annotations

import asyncio
import builtins
from collections import defaultdict
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace

from tenantry.api import Api, Keep, Listing
from tenantry.api.review import reviewed
from tenantry.engine.decisions import Note
from tenantry.engine.heard import Heard
from tenantry.engine.items import fits, selector
from tenantry.engine.known import Known
from tenantry.engine.last_runs import ReadStates
from tenantry.engine.shared import Shared
from tenantry.model.comparison import Schema
from tenantry.model.kinds import NAMESPACE, Key, Kind, Object, key_in, labels_of
from tenantry.model.names import NAMESPACE_NAME

FEW = 50
"""So many objects of a kind are read at once rather than looked for one by one."""

Fingerprint = Callable[[Object | None], Hashable]
Compute = Callable[["Reader"], Awaitable[Hashable]]


class Reader(Heard):
    """Memoised live reads of one attempt of one run."""

    live = True
    """Whether it reads the server now, for a run; a snapshot, which only says for whom a run is needed, does not."""

    def __init__(
        self,
        api: Api,
        causes: Iterable[Key] = (),
        known: Mapping[Key, Object | None] | None = None,
        shared: Shared | None = None,
        noted: ReadStates | None = None,
    ) -> None:
        super().__init__()
        self.causes = frozenset(causes)
        self.attempt = 0
        """How often the run has begun anew."""
        self.raced = False
        """Whether a write of it has lost a race or was refused: what it did not look for may be there."""
        self._api = api
        self._shared = shared or Shared()
        self.known = Known(known)
        self.noted = noted
        """The states of what was read, for a run whose next one may not be needed."""
        self.note: Note | None = None
        """Where it is noted what was read, for who listens to decisions."""
        self._inputs: builtins.list[tuple[Compute, Hashable]] = []

    async def get(
        self, kind: Kind, name: str, namespace: str = "", *, verify: Fingerprint | None = None, again: bool = False
    ) -> Object | None:
        """The live object or None; with ``verify`` its fingerprint is an input of the decision.

        With ``again`` it is read now, whatever was read before: what is concluded from two objects depends on the order of
        their reads.
        """
        key = key_in(kind, name, namespace)
        whole = self.known.whole.get(kind)
        if (again and self.live) or (key not in self.known and whole is None):
            self.known[key] = await self._fetch(kind, name, namespace)
        elif key not in self.known:
            self.known[key] = next((item for item in whole or () if fits(item, namespace, {}, name)), None)
        found = self.known[key]
        self._got(key, found)
        if verify is not None:
            fingerprint = verify

            async def compute(reader: Reader) -> Hashable:
                return fingerprint(await reader.get(kind, name, namespace))

            self._inputs.append((compute, fingerprint(found)))
        return found

    async def _fetch(self, kind: Kind, name: str, namespace: str) -> Object | None:
        if kind != NAMESPACE or kind not in self._shared.listed:
            return await self._api.get(kind, name, namespace)

        async def many(names: Sequence[str]) -> Mapping[str, Object | None]:
            listing = await self._api.list(kind, label_selector=f"{NAMESPACE_NAME} in ({','.join(names)})")
            found = {each["metadata"]["name"]: each for each in listing.items}
            return {each: found.get(each) for each in names}

        found: Object | None = await self._shared.together.read(kind, name, lambda: self._api.get(kind, name), many)
        return found

    async def version(self, kind: Kind, name: str, namespace: str = "") -> str:
        """The resourceVersion that an object has now, read without contents, with all who want it; empty when there is none."""
        asked = (kind, name, namespace)
        return str(await self._shared.read(("version", *asked), lambda: self._api.version(*asked)))

    async def fetch(self, kind: Kind, name: str, namespace: str) -> Object | None:
        """The whole live object or None, read now and not kept: for what is large and read once."""
        found = await self._api.get(kind, name, namespace, whole=True)
        self._got(key_in(kind, name, namespace), found)
        return found

    async def fetch_list(
        self, kind: Kind, namespace: str, *, labels: Mapping[str, str], keep: Keep | None = None
    ) -> builtins.list[Object]:
        """All objects with these labels in a namespace, read now and not kept, also by a snapshot."""
        listing = await self._api.list(kind, namespace, label_selector=selector(labels), keep=keep)
        return self._noted(kind, listing.items)

    async def served(self, api_version: str, kind: str) -> Kind | None:
        """How the API server serves a kind, or None when it does not."""
        return await self._api.served(api_version, kind)

    async def preferred(self, group: str, kind: str, *, again: bool = False) -> Kind | None:
        """How the API server serves a kind, by its name or its plural, in the version that it prefers.

        ``again``: what was known before does not count.
        """
        return await self._api.preferred(group, kind, again=again)

    async def groups(self) -> Object:
        """What the API server serves, read now: `tenantry.api.Api.groups`."""
        return await self._api.groups()

    async def has_status(self, kind: Kind) -> bool:
        """Whether the status of a kind is written by itself."""
        return await self._api.has_status(kind)

    async def is_foreign(self, kind: Kind) -> bool:
        """Whether a kind that we have a CRD for is served by one of another system."""
        return await self._api.is_foreign(kind)

    async def schema(self, kind: Kind) -> Schema:
        """How the API server merges and compares the fields of a kind."""
        return await self._api.schema(kind)

    async def serves(self, kind: Kind) -> bool:
        """Whether the API server's discovery, asked now, knows a kind.

        To be asked where a request said that the kind is not served: one answer may come from a server that has just started,
        and what was made for objects of that kind must not be taken away for it.
        """
        return await self._api.served(kind.api_version, kind.kind, again=True) is not None

    async def try_apply(self, kind: Kind, body: Object) -> Object | None:
        """The object as an apply of ``body`` would make it, which nothing becomes of; None when nobody may ask (a sweep)."""
        return await self._api.apply(kind, body, dry_run=True)

    async def try_create(self, kind: Kind, body: Object, *, manager: str = "") -> None:
        """Ask whether an object could be made, without making it, by our field manager or another one of ours.

        Raises:
            AlreadyExists: it could, but for one that is there.
            RefusedError: it could not.
        """
        await self._api.create(kind, body, dry_run=True, manager=manager)

    async def headers(
        self, kind: Kind, namespace: str = "", *, labels: Mapping[str, str], keep: Keep | None = None
    ) -> builtins.list[Object]:
        """The metadata of all objects with these labels, without their contents; ``keep`` says what of it is kept."""
        listing = await self._api.list(kind, namespace, label_selector=selector(labels), metadata_only=True, keep=keep)
        return self._noted(kind, listing.items)

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
        """All objects with these labels, and with this name if one is given, as of now or of the run's first list of the kind.

        So what woke the run is always seen, and a further list of a kind costs no wait (`Api.list`).
        ``fields`` is a field selector, such as ``type!=helm.sh/release.v1`` for Secrets.  ``keep`` says what of each item is kept
        (`Api.list`); what is known already comes as it is.
        """
        if kind in self.known.whole and not fields:
            found = [item for item in self.known.whole[kind] if fits(item, namespace, labels or {}, name)]
            return self._noted(kind, found)
        field = ",".join(part for part in (f"metadata.name={name}" if name else "", fields) if part)
        if len(labels or {}) == 1 and not field and self.live:
            return self._dated(kind, await self._by_label(kind, namespace, *next(iter((labels or {}).items())), keep))
        listing = await self._api.list(
            kind,
            namespace,
            label_selector=selector(labels or {}),
            field_selector=field,
            not_older_than=self.known.versions.get(kind, ""),
            keep=keep,
        )
        return self._dated(kind, listing)

    async def _by_label(self, kind: Kind, namespace: str, label: str, value: str, keep: Keep | None) -> Listing:
        """The objects with a label's value: one list for all runs that want other values of it at the same time."""
        before = self.known.versions.get(kind, "")

        def one() -> Awaitable[Listing]:
            return self._api.list(kind, namespace, label_selector=selector({label: value}), not_older_than=before, keep=keep)

        async def many(values: Sequence[str]) -> Mapping[str, Listing]:
            found = await self._api.list(kind, namespace, label_selector=f"{label} in ({','.join(values)})", keep=keep)
            apart: dict[str, builtins.list[Object]] = {each: [] for each in values}
            for item in found.items:
                apart[labels_of(item)[label]].append(item)
            return {each: replace(found, items=items) for each, items in apart.items()}

        if not value:  # any value
            return await one()
        listing: Listing = await self._shared.together.read((kind, namespace, label, keep), value, one, many)
        return listing

    async def named(self, kind: Kind, name: str, *, headers: bool = False) -> builtins.list[Object]:
        """All objects of a kind with a name, in whatever namespace; with ``headers`` only their metadata.

        An API server looks at all objects of the kind for it, so runs that want other names at the same time share one list of
        metadata, and read what is found by name.
        """
        if kind in self.known.whole:
            return await self.list(kind, name=name)
        before = self.known.versions.get(kind, "")

        def one() -> Awaitable[Listing]:
            return self._api.list(kind, field_selector=f"metadata.name={name}", not_older_than=before, metadata_only=headers)

        async def many(names: Sequence[str]) -> Mapping[str, Listing]:
            wanted, found = frozenset(names), defaultdict[str, builtins.list[Object]](list)

            def sort(item: Object) -> Object:
                if item["metadata"]["name"] in wanted:
                    found[item["metadata"]["name"]].append(item)
                return {}

            every = replace(await self._api.list(kind, metadata_only=True, keep=sort), items=[])
            read = await asyncio.gather(*(whole(each, found[each]) for each in names))
            return {each: replace(every, items=items) for each, items in zip(names, read, strict=True)}

        async def whole(name: str, found: builtins.list[Object]) -> builtins.list[Object]:
            if headers:
                return found
            if len(found) > FEW:
                return (await self._api.list(kind, field_selector=f"metadata.name={name}")).items
            at = ((each["metadata"]["name"], each["metadata"]["namespace"]) for each in found)
            return [each for each in await asyncio.gather(*(self._api.get(kind, *where) for where in at)) if each is not None]

        listing: Listing = await self._shared.together.read((kind, "named", headers), name, one, many)
        return self._dated(kind, listing)

    def _dated(self, kind: Kind, listing: Listing) -> builtins.list[Object]:
        self.known.versions.setdefault(kind, listing.resource_version)
        return self._noted(kind, listing.items)

    def _got(self, key: Key, found: Object | None) -> None:
        if self.noted is not None:
            self.noted.add(key, found)
        if self.note is not None:
            self.note.read(key, found)

    def _noted(self, kind: Kind, items: builtins.list[Object]) -> builtins.list[Object]:
        if self.noted is not None:
            self.noted.listed(kind, items)
        if self.note is not None:
            self.note.listed(kind, items)
        return items

    async def get_shared(self, kind: Kind, name: str) -> Object | None:
        """The live object or None, read together with the other runs that want it now."""
        key = key_in(kind, name, "")
        if key not in self.known:
            self.known[key] = await self._shared.read(key, lambda: self._fetch(kind, name, ""))
        self._got(key, self.known[key])
        return self.known[key]

    async def chosen_shared(self, kind: Kind, choose: Callable[[Iterable[Object]], Object | None]) -> Object | None:
        """The one of a cluster-scoped kind's objects that counts, read together with the other runs that want it now.

        ``choose`` must go on choosing an object, whatever others come, until that is gone or not chosen by itself: then it is
        read by its name, since a list of a kind at rest waits for up to 100 ms.
        """
        known = self._shared.chosen(kind) if self.live else None
        if known is not None:
            found = await self.get_shared(kind, known[0])
            if found is not None and found["metadata"]["uid"] == known[1] and choose((found,)) is not None:
                return found
        chosen = choose(await self.list_shared(kind))
        if self.live:
            self._shared.note_chosen(kind, chosen)
        return chosen

    async def list_shared(
        self, kind: Kind, namespace: str = "", *, labels: Mapping[str, str] | None = None, keep: Keep | None = None
    ) -> builtins.list[Object]:
        """The same as `list`, read together with the other runs that want it now; not to be changed."""
        if kind in self.known.whole:
            return await self.list(kind, namespace, labels=labels)
        wanted, before = selector(labels or {}), self.known.versions.get(kind, "")
        found: Listing = await self._shared.read(
            (kind, namespace, wanted, keep, before),
            lambda: self._api.list(kind, namespace, label_selector=wanted, not_older_than=before, keep=keep),
        )
        return self._dated(kind, found)

    async def all_shared(self, kind: Kind, most: int = FEW, *, keep: Keep | None = None) -> builtins.list[Object] | None:
        """All objects of a kind when there are no more than ``most`` in a page, else None; read together with the other runs.

        What is known whole answers every later `list` of the kind, in the run that is woken too: one request in place of
        several, and an API server lets consistent lists of an idle kind wait, all but the first, for up to 100 ms.  Where there
        were more, or large ones (a-14), None is the answer for a while without a request: it only means that objects are asked
        for one by one.
        """
        if kind not in self.known.whole:
            if self._shared.has_many(kind, most) or self._api.has_large(kind):
                return None
            found: Listing = await self._shared.read(
                (kind, most, keep), lambda: self._api.list(kind, limit=most, keep=keep, one_page=True)
            )
            items = self._dated(kind, found)
            if not found.complete:
                self._shared.found_many(kind, most)
                return None
            self.known.whole[kind] = items
        return self.known.whole[kind]

    async def named_shared(self, kind: Kind, name: str, most: int = FEW) -> builtins.list[Object] | None:
        """The metadata of all objects of a kind with a name, in whatever namespace; None where they are more than ``most``.

        Read together with the other runs that want it now: where few have what each of many is asked for, one request says so.
        None, too, where few ask: a list of a kind at rest waits for up to 100 ms, and lets other lists of the kind wait.
        """
        asked = (kind, "named", name, most)
        if not self._shared.is_often(asked) or self._shared.has_many(kind, most):
            return None
        found: Listing = await self._shared.read(
            asked,
            lambda: self._api.list(kind, field_selector=f"metadata.name={name}", limit=most, metadata_only=True),
        )
        if not found.complete:
            self._shared.found_many(kind, most)
            return None
        return self._noted(kind, found.items)

    async def allows(self, namespace: str, account: str, attributes: Mapping[str, str]) -> bool:
        """Whether the API server lets a ServiceAccount do something (a SubjectAccessReview): verb, group, resource and so on."""
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
        spec = {"user": f"system:serviceaccount:{namespace}:{account}", "groups": groups, "resourceAttributes": dict(attributes)}
        return await reviewed(self._api, spec)

    async def list_since(self, kind: Kind, namespace: str, version: str, *, keep: Keep | None = None) -> builtins.list[Object]:
        """All objects of a kind in a namespace, no older than a resourceVersion, which costs no wait.

        What happened later must be an event of its own, and nothing is known by it: later lists are as new as ever.
        """
        listing = await self._api.list(kind, namespace, not_older_than=version, keep=keep)
        return self._noted(kind, listing.items)

    def knows_only_part(self, kind: Kind, name: str, namespace: str = "") -> None:
        """Not all was looked at that an event of this object may ask for: it needs a run of its own.

        Nor does it concern this owner alone, as `tells_nothing_new` says of what a run knows.
        """
        if self.noted is not None:
            self.noted.pop(key_in(kind, name, namespace), None)

    def depends_on(self, compute: Compute, value: Hashable) -> None:
        """Declare a computed input: ``await compute(fresh_reader)`` must still equal ``value`` after the writes."""
        self._inputs.append((compute, value))

    def anew(self, attempt: int = 0, *, raced: bool = False) -> Reader:
        """A reader for the same run that knows nothing yet."""
        noted = ReadStates(self.noted.states) if self.noted is not None else None
        made = Reader(self._api, self.causes, shared=self._shared, noted=noted)
        made.attempt, made.raced, made.note = attempt or self.attempt, raced or self.raced, self.note
        return made

    async def unchanged(self) -> bool:
        """Read the optimistic inputs again; False when one of them is not what it was."""
        if not self._inputs:
            return True
        fresh = self.anew()
        fresh.note = None  # nothing is decided by it
        now = await asyncio.gather(*(compute(fresh) for compute, _ in self._inputs))
        return all(value == before for value, (_, before) in zip(now, self._inputs, strict=True))
