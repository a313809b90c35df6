"""The wiring of access locks: a consumer's own events concern it alone, labels those in their namespace, all else everybody."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import chain

from lock_enforcement.access.observe import (
    ListedConsumers,
    index_object,
    keep_of,
    kept_labels,
    list_consumers,
    observe_consumer,
    observe_unlocked,
    observe_violations,
    served_as,
)
from lock_enforcement.access.plan import plan_consumer, plan_locks, unlocked_in_doubt
from lock_enforcement.access.report import plan_violations, report_consumer
from lock_enforcement.access.seen import ConsumerSeen, ViolationsSeen
from lock_enforcement.access.together import LocksTogether
from tenantry.engine.flux import shared_profile
from tenantry.engine.reader import Reader
from tenantry.engine.snapshot import Prefetch, Snapshot
from tenantry.engine.unit import ANY_KIND, EVERY, Handler, OutdatedError, Owner, Stages, Unit, stage
from tenantry.model import limits
from tenantry.model.flux.access import AccessEntries, ChangedEntries, references_of
from tenantry.model.flux.consumers import CONSUMER_KINDS, CONSUMERS, Consumer
from tenantry.model.flux.names import ACCESS_INDEX, DEFAULT, TENANCY_PROFILE
from tenantry.model.flux.profile import Profile
from tenantry.model.identifiers import is_dns_label, is_dns_subdomain
from tenantry.model.kinds import NAMESPACE, Key, Object, key_of, labels_of
from tenantry.serving import Settings

CONSUMER = "consumer"
VIOLATIONS = Owner("violations", DEFAULT)
LOCKS = Owner("locks", DEFAULT)
"""All locks at once, where many are to be put on: first of a sweep, and without a word to anybody."""
PAUSE_S = 0.1
"""The echoes of a lock's two writes share one run."""
LISTED_PAUSE_S = 0.5
"""Consumers that are denied at once are listed by few writes."""
UNSERVED_S = 1.0
"""The time between the two looks before locks go for want of a profile: a server that starts serves it by then."""


def owner_of(row: Consumer, namespace: str, name: str) -> Owner:
    """The owner of a consumer: names of objects have no colon."""
    return Owner(CONSUMER, f"{row.name}:{name}", namespace)


def _owner(row: Consumer, consumer: Object) -> Owner:
    return owner_of(row, consumer["metadata"]["namespace"], consumer["metadata"]["name"])


def _hash(labels: Mapping[str, str]) -> int:
    return hash(frozenset(labels.items()))


def _accepts(owner: Owner) -> bool:
    row, _, name = owner.name.partition(":")
    return is_dns_subdomain(row) and is_dns_subdomain(name) and is_dns_label(owner.namespace)


class AccessLocks(Unit):
    """The unit ``access`` of lock-enforcement."""

    name = "access"
    kinds = frozenset({*CONSUMER_KINDS, TENANCY_PROFILE, ACCESS_INDEX, NAMESPACE, ANY_KIND})
    ours = frozenset({TENANCY_PROFILE, ACCESS_INDEX})
    leading = (LOCKS,)

    def __init__(self) -> None:
        self._swept: dict[str, int] = {}
        """The generations of profile and index, by uid, that all consumers were looked at with: a hint."""
        self._entries: AccessEntries | None = None
        """The index that all consumers were looked at with, but for those that are due: a hint."""
        self._apart: dict[Owner, tuple[str, int]] = {}
        """Consumers whose last run saw another index than that: its uid and generation.  What came and went between two of them
        is in no difference of these."""
        self._labels: dict[str, int] | None = None
        """Of the labels of each Namespace that all consumers in it were looked at with, a hash: a hint."""
        self._due: dict[str, set[Owner]] = {}
        """By Namespace, what sweeps have named and was not yet looked at: till then its labels are no hint."""
        self._denied: set[str] | None = None
        """The consumers that this process has listed as denied, as owners: a hint."""
        self._listing: set[str] = set()
        self._stuck: set[Owner] = set()
        """Owners whose last run did not end well, and that no sweep has found at rest since: till then nothing is known, and a
        sweep looks at what consumers among them were told, too."""
        self._together = LocksTogether()
        self.handlers = {
            LOCKS.type: Handler[tuple[ConsumerSeen, ...]](
                observe=self._observe_locks,
                plan=plan_locks,
                accepts=LOCKS.__eq__,
                ended=self._locked,
                at_rest=lambda owner, _: self._looked_at(owner),
            ),
            CONSUMER: Handler[ConsumerSeen | None](
                observe=self._observe_consumer,
                plan=plan_consumer,
                report=report_consumer,
                accepts=_accepts,
                pause_s=PAUSE_S,
                doubtful=unlocked_in_doubt,
                second_look_after_s=lambda _: UNSERVED_S,
                step_by_step=True,
                ended=self._ended,
                at_rest=lambda owner, _: self._looked_at(owner),
            ),
            VIOLATIONS.type: Handler[ViolationsSeen](
                observe=self._observe_violations,
                plan=plan_violations,
                accepts=VIOLATIONS.__eq__,
                pause_s=LISTED_PAUSE_S,
                ended=self._listed,
                at_rest=lambda owner, _: self._looked_at(owner),
            ),
        }

    async def _observe_locks(self, _: Owner, reader: Reader) -> tuple[ConsumerSeen, ...]:
        if not reader.live:
            found = await observe_unlocked(reader)
            self._together.found(await _rules_of(reader), found)
            return found
        self._together.begin()
        taken = self._together.take_found(await _rules_of(reader))
        found = await observe_unlocked(reader) if taken is None else taken
        self._together.is_of(_owner(each.row, each.live) for each in found)
        return found

    def _locked(self, owner: Owner, well: bool) -> None:
        self._together.end()
        self._ended(owner, well)

    async def _observe_consumer(self, owner: Owner, reader: Reader) -> ConsumerSeen | None:
        if reader.live:
            await self._together.wait(owner)
        row, _, name = owner.name.partition(":")
        seen = await observe_consumer(row, owner.namespace, name, reader, untold=owner in self._stuck)
        if reader.live:
            self._apart.pop(owner, None)
            if seen is not None:
                await self._note_index(owner, seen, reader)
                await self._note_labels(owner.namespace, seen.context.labels.get(owner.namespace), reader)
        return seen

    async def _note_index(self, owner: Owner, seen: ConsumerSeen, reader: Reader) -> None:
        """A consumer was looked at, and perhaps with an index that says something else of its references than the remembered one.

        Raises:
            OutdatedError: meanwhile all were looked at with a newer one.
        """
        index = await index_object(reader) if seen.context.entries is not None else None  # which the look has read
        if index is None or self._is_swept(index) or self._says_the_same(seen):
            return
        uid, generation = index["metadata"]["uid"], index["metadata"]["generation"]
        if self._swept.get(uid, 0) > generation:
            raise OutdatedError("the AccessIndex has changed since it was read: the consumer is looked at again")
        if len(self._apart) < limits.REMEMBERED:
            self._apart[owner] = uid, generation
        else:
            self._entries = None  # then all are looked at

    def _says_the_same(self, seen: ConsumerSeen) -> bool:
        """Whether the index that a consumer was looked at with says of its references what the remembered one does."""
        before, after = self._entries, seen.context.entries
        if before is None or after is None or before.complete != after.complete:
            return False
        return all(before.about(named) == after.about(named) for _, named in references_of(seen.live, seen.row))

    async def _note_labels(self, namespace: str, labels: Mapping[str, str] | None, reader: Reader) -> None:
        """A consumer was looked at with these labels of its Namespace, or its references ask for none.

        Raises:
            OutdatedError: they were others for a moment, and all is as it was: no event tells that any more.
        """
        if labels is None or self._labels is None or self._labels.get(namespace, _hash(labels)) == _hash(labels):
            return
        del self._labels[namespace]  # the others were not looked at with these
        if labels_of(await reader.get(NAMESPACE, namespace, again=True)) != labels:
            raise OutdatedError(
                f"the labels of Namespace {namespace} have changed since they were read: the consumer is looked at again"
            )

    async def _observe_violations(self, _: Owner, reader: Reader) -> ViolationsSeen:
        seen = await observe_violations(reader)
        if reader.live:
            self._listing = {f"{each.kind}/{each.namespace}/{each.name}" for each in seen.violations}
        return seen

    def _looked_at(self, owner: Owner) -> None:
        self._stuck.discard(owner)
        self._together.untold.discard(owner)
        left = self._due.get(owner.namespace)
        if left is not None:
            left.discard(owner)
            if not left:
                del self._due[owner.namespace]

    def _ended(self, owner: Owner, well: bool) -> None:
        if well:
            self._looked_at(owner)
            return
        self._together.untold.discard(owner)
        self._swept, self._entries, self._labels = {}, None, None
        if len(self._stuck) < limits.REMEMBERED:
            self._stuck.add(owner)

    def _listed(self, owner: Owner, well: bool) -> None:
        self._denied = self._listing if well else None
        self._ended(owner, well)

    # -- the owners of an event ------------------------------------------------------------------------

    async def owners(self, key: Key, hint: Mapping[str, str], reader: Reader) -> Stages:
        """The consumer itself, those of the namespace, or all of them."""
        del hint
        match key.api_version, key.kind:
            case (TENANCY_PROFILE.api_version, TENANCY_PROFILE.kind):
                return self._unless_known(await shared_profile(reader))
            case (ACCESS_INDEX.api_version, ACCESS_INDEX.kind):
                return self._unless_known(await index_object(reader))
            case (NAMESPACE.api_version, NAMESPACE.kind):
                return await self._in_namespace(key.name, reader)
        profile = Profile.of(await shared_profile(reader))
        for row in profile.all_consumers:
            if row.group == key.api_version.rpartition("/")[0]:
                kind = await served_as(row, reader)
                if kind is not None and kind.kind == key.kind:
                    return await self._consumer(row, key, profile, reader)
        return []

    def _unless_known(self, live: Object | None) -> Stages:
        """All consumers, for a profile or an index that they were not looked at with."""
        if self._knows(live):
            return []
        self._together.asked_again()
        return EVERY

    def _knows(self, live: Object | None) -> bool:
        """Whether all were looked at with this one: the sweep in which one of them failed looks at lists again, and knows."""
        return live is not None and not self._stuck and self._is_swept(live)

    def _is_swept(self, live: Object) -> bool:
        return bool(self._swept.get(live["metadata"]["uid"]) == live["metadata"]["generation"])

    async def _consumer(self, row: Consumer, key: Key, profile: Profile, reader: Reader) -> Stages:
        """The consumer, and the list of all that are denied where it has to change."""
        await self._together.wait(owner_of(row, key.namespace, key.name))
        seen = await observe_consumer(row.name, key.namespace, key.name, reader)
        is_denied = seen is not None and seen.is_denied
        is_listed = self._denied is None or f"{key.kind}/{key.namespace}/{key.name}" in self._denied
        owners = [owner_of(row, key.namespace, key.name)] if seen is not None else []
        stages = stage(owners)
        if profile.is_multi_tenant and is_denied != is_listed:
            stages.append([VIOLATIONS])
        return stages

    async def _in_namespace(self, namespace: str, reader: Reader) -> Stages:
        """The consumers whose grants may rest on the namespace's labels."""
        profile = Profile.of(await shared_profile(reader))
        if not profile.is_multi_tenant or not profile.enforces_source_acl or namespace in profile.exempt:
            return []
        live = await reader.get(NAMESPACE, namespace)
        if live is None:
            return []
        if self._labels is None:  # a process that starts hears of all namespaces
            return EVERY
        if self._labels.get(namespace) == _hash(labels_of(live)) and namespace not in self._due:
            return []
        self._labels.pop(namespace, None)
        found = [_owner(each.row, item) for each in await list_consumers(reader, profile, namespace) for item in each.items]
        return [found, [VIOLATIONS]] if found else []

    # -- sweep -----------------------------------------------------------------------------------------

    def prefetch(self) -> Sequence[Prefetch]:
        """All consumers, as far as they are served in the version that is watched; labels, the profile, and the index."""
        keeps = {row.resource: keep_of(row) for row in CONSUMERS}
        return [
            *(Prefetch(kind, optional=True, keep=keeps[kind.plural]) for kind in CONSUMER_KINDS),
            Prefetch(NAMESPACE, keep=kept_labels),
            Prefetch(TENANCY_PROFILE, optional=True),
            Prefetch(ACCESS_INDEX, optional=True),
        ]

    async def sweep(self, reader: Reader) -> Sequence[Owner]:
        """Each consumer about which there is something to decide, and the list of all that are denied."""
        profile, index = await shared_profile(reader), await index_object(reader)
        listed = await self._consumers(profile, reader)
        owners = [_owner(each.row, item) for each in listed for item in each.items]
        namespaces, since = await reader.list(NAMESPACE, keep=kept_labels), _listed_after(listed, reader)
        before, self._labels = self._labels or {}, {}
        for each in namespaces:
            name, labels = each["metadata"]["name"], _hash(labels_of(each))
            if _is_from_before(each, since) or before.get(name) == labels:
                self._labels[name] = labels
        self._note_due(owners, profile, index, since)
        if index is not None and self._entries is not None:  # what is left of an index that was deleted
            self._apart = {owner: seen for owner, seen in self._apart.items() if seen[0] == index["metadata"]["uid"]}
        named = [LOCKS, *owners, VIOLATIONS] if profile is not None else owners
        for hints in (self._stuck, self._together.untold):
            hints.intersection_update(named)
        return named

    async def concerned(self, reader: Reader) -> Sequence[Owner]:
        """Where only the index has changed, the consumers that name what it says something else of, and those that are due."""
        profile, index = await shared_profile(reader), await index_object(reader)
        before, after = self._entries, AccessEntries.of(index) if index is not None else None
        if before is None or after is None or before.complete != after.complete or not self._knows(profile):
            return await self.sweep(reader)
        changed = ChangedEntries.between(before, after)
        listed = await self._consumers(profile, reader)
        due = self._together.untold.union(self._apart, *self._due.values())
        owners = [
            owner
            for each in listed
            for item in each.items
            if (owner := _owner(each.row, item)) in due
            or any(changed.concern(named) for _, named in references_of(item, each.row))
        ]
        self._note_due(owners, profile, index, _listed_after(listed, reader))
        if self._entries is None:
            self._entries = before
        return [LOCKS, *owners, VIOLATIONS] if owners else []

    async def _consumers(self, profile: Object | None, reader: Reader) -> list[ListedConsumers]:
        found = await list_consumers(reader, Profile.of(profile))
        if isinstance(reader, Snapshot):
            for item in chain.from_iterable(each.items for each in found):
                reader.known.setdefault(key_of(item), item)  # of rows, which are not prefetched
        return found

    def _note_due(self, owners: Sequence[Owner], profile: Object | None, index: Object | None, since: float) -> None:
        """These are due; all others were looked at with this profile and this index, as far as those are no newer than the lists.

        One that was made after its kind was listed, and before the index that was read changed, is not in the list, and its own
        event found the index as it was.
        """
        self._due = {}
        for owner in owners:
            self._due.setdefault(owner.namespace, set()).add(owner)
        known = [
            each["metadata"]
            for each in (profile, index)
            if each is not None and (self._is_swept(each) or _is_from_before(each, since))
        ]
        self._swept = {each["uid"]: each["generation"] for each in known}
        self._entries = AccessEntries.of(index) if index is not None and self._is_swept(index) else None
        self._apart = {each: (uid, seen) for each, (uid, seen) in self._apart.items() if seen > self._swept.get(uid, 0)}


async def _rules_of(reader: Reader) -> Hashable:
    """In which generation the profile and the index are."""
    read = await asyncio.gather(shared_profile(reader), index_object(reader))
    return tuple((each["metadata"]["uid"], each["metadata"]["generation"]) for each in read if each is not None)


def _listed_after(listed: Iterable[ListedConsumers], reader: Reader) -> float:
    """The resourceVersion that these lists are no older than; 0 where nobody knows."""
    return reader.listed_after(each.kind for each in listed) if isinstance(reader, Snapshot) else 0


def _is_from_before(live: Object, version: float) -> bool:
    """Whether an object was last written before, or in, a resourceVersion."""
    written = str(live["metadata"]["resourceVersion"])
    return written.isdecimal() and int(written) <= version


def made(settings: Settings) -> AccessLocks:
    """The unit of a process."""
    del settings
    return AccessLocks()
