"""Reads for access locks: consumers in the versions that discovery names, the profile, the index, and labels of Namespaces."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from lock_enforcement.access.plan import plan_consumer
from lock_enforcement.access.report import refusal_name, warnings_of
from lock_enforcement.access.seen import (
    AccessContext,
    ConsumerSeen,
    Violation,
    ViolationsSeen,
    concerns_us,
    decided,
    forbidden_object,
    foreign,
    kept_consumer,
)
from tenantry.api import Keep
from tenantry.api.errors import Forbidden, KindNotServed
from tenantry.engine.flux import shared_profile
from tenantry.engine.reader import Reader
from tenantry.engine.reads import if_served
from tenantry.engine.recorder import now_micro
from tenantry.model.flux.access import AccessEntries
from tenantry.model.flux.consumers import CONSUMERS, Consumer
from tenantry.model.flux.names import ACCESS_INDEX, DEFAULT, TENANCY_PROFILE
from tenantry.model.flux.profile import Profile
from tenantry.model.kinds import EVENT, NAMESPACE, Kind, Object, is_terminating, labels_of, object_of
from tenantry.model.plan import NOTHING

log = logging.getLogger("tenantry")

_KEEPS: dict[Consumer, Keep] = {}


class ListedConsumers(NamedTuple):
    """Of a kind, the consumers about which there is something to decide."""

    row: Consumer
    kind: Kind
    items: list[Object]


def keep_of(row: Consumer) -> Keep:
    """What is kept of the consumers of a row; of one row always the same function, so that lists are shared."""
    if row not in _KEEPS:
        _KEEPS[row] = partial(kept_consumer, row=row)
    return _KEEPS[row]


def kept_labels(namespace: Object) -> Object:
    """Of a Namespace its labels."""
    metadata = namespace["metadata"]
    parts = ("name", "uid", "resourceVersion", "deletionTimestamp")
    kept = {part: metadata[part] for part in parts if part in metadata} | {"labels": dict(labels_of(namespace))}
    return object_of(NAMESPACE, kept)


async def index_object(reader: Reader) -> Object | None:
    """The AccessIndex."""
    return await if_served(ACCESS_INDEX, reader, reader.get_shared(ACCESS_INDEX, DEFAULT))


async def served_as(row: Consumer, reader: Reader, *, again: bool = False) -> Kind | None:
    """How the kind of a row is served; None: it is not."""
    return await reader.preferred(row.group, row.resource, again=again)


async def observe_consumer(
    row_name: str, namespace: str, name: str, reader: Reader, *, untold: bool = False
) -> ConsumerSeen | None:
    """Read a consumer, and what decides about it; None where there is none, or nothing that concerns us.

    ``untold``: its conditions may be there without its Warning.
    """
    profile = await shared_profile(reader)
    row = next((each for each in Profile.of(profile).all_consumers if each.name == row_name), None)
    kind = await served_as(row, reader) if row is not None else None
    if row is None or kind is None:
        return None
    try:
        live = await reader.get(kind, name, namespace)
    except KindNotServed:
        return None
    if live is None or not concerns_us(live, row):
        return None
    seen = await _seen(row, kind, live, profile, reader)
    return await _with_told(seen, reader, untold=untold)


async def _seen(row: Consumer, kind: Kind, live: Object, profile: Object | None, reader: Reader) -> ConsumerSeen:
    namespace = live["metadata"]["namespace"]
    entries, home, context = None, None, AccessContext(Profile.of(profile), None, {})
    if any(True for _ in foreign(live, row)) and context.profile.is_multi_tenant:
        index, home = await asyncio.gather(index_object(reader), reader.get(NAMESPACE, namespace))
        entries = AccessEntries.of(index) if index is not None else None
        context = AccessContext(context.profile, entries, {namespace: labels_of(home) if home is not None else None})
    decision = decided(live, row, context)
    return ConsumerSeen(
        row,
        kind,
        live,
        context,
        decision,
        has_status=await reader.has_status(kind),
        refused=await _refused(live, row, context.profile, reader),
        now=now_micro(),
        open=not is_terminating(home),
        certain=profile is not None,
    )


async def _refused(live: Object, row: Consumer, profile: Profile, reader: Reader) -> tuple[tuple[str, str], ...]:
    """The cluster-scoped object that the account may not write: whether a kind is, discovery says, and no text (2.4)."""
    found = forbidden_object(live, row)
    if found is None or not profile.is_multi_tenant or live["metadata"]["namespace"] in profile.exempt:
        return ()
    kind = await reader.preferred(found.group, found.plural)
    return ((kind.kind, found.name),) if kind is not None and not kind.namespaced else ()


async def _with_told(seen: ConsumerSeen, reader: Reader, *, untold: bool) -> ConsumerSeen:
    """With the Warnings that are there.  A sweep asks only where nothing else shows that it was told: they expire."""
    warnings = warnings_of(seen)
    names = [each.name for each in warnings]
    if reader.live and plan_consumer(seen) != NOTHING:
        names.append(refusal_name(seen))
    if not names:
        return seen
    if not reader.live and not untold and seen.conditions and not seen.refused and not seen.context.reports:
        return replace(seen, told=frozenset(names))
    namespace = seen.live["metadata"]["namespace"]
    home, *events = await asyncio.gather(
        reader.get(NAMESPACE, namespace), *(reader.get(EVENT, each, namespace) for each in names)
    )
    told = frozenset(each["metadata"]["name"] for each in events if each is not None)
    return replace(seen, told=told, open=home is not None and not is_terminating(home))


async def list_consumers(reader: Reader, profile: Profile, namespace: str = "") -> list[ListedConsumers]:
    """The consumers about which there is something to decide, of each kind that is served and may be read, in pages."""
    found = await asyncio.gather(*(_listed(each, reader, namespace) for each in profile.all_consumers))
    return [each for each in found if each is not None]


async def _listed(row: Consumer, reader: Reader, namespace: str) -> ListedConsumers | None:
    for again in (False, True):
        kind = await served_as(row, reader, again=again)
        if kind is None:
            return None
        try:
            items = await reader.list(kind, namespace, keep=keep_of(row))
        except KindNotServed:
            continue
        except Forbidden as error:
            if row in CONSUMERS:
                raise
            log.warning("consumers of %s are not looked at: %s; let a ClusterRole give the right", row.name, error.message)
            return None  # the others are looked at all the same (f-83)
        return ListedConsumers(row, kind, [each for each in items if "uid" in each["metadata"] and concerns_us(each, row)])
    return None


async def observe_violations(reader: Reader) -> ViolationsSeen:
    """Read the profile, and all consumers that are denied."""
    profile = await if_served(TENANCY_PROFILE, reader, reader.get(TENANCY_PROFILE, DEFAULT))
    asked = Profile.of(profile)
    if not asked.is_multi_tenant:
        return ViolationsSeen(profile)
    consumers, context = await _all(reader, asked)
    return ViolationsSeen(profile, tuple(sorted(_violations(consumers, context))))


async def observe_unlocked(reader: Reader) -> tuple[ConsumerSeen, ...]:
    """Read all consumers that are denied, are to be locked for it, and are not."""
    asked = Profile.of(await shared_profile(reader))
    if not asked.is_multi_tenant:
        return ()
    consumers, context = await _all(reader, asked)
    return tuple(_unlocked(consumers, context)) if context.locks else ()


async def _all(reader: Reader, asked: Profile) -> tuple[list[ListedConsumers], AccessContext]:
    index, namespaces, consumers = await asyncio.gather(
        index_object(reader), reader.list(NAMESPACE, keep=kept_labels), list_consumers(reader, asked)
    )
    labels: Mapping[str, Mapping[str, str]] = {each["metadata"]["name"]: labels_of(each) for each in namespaces}
    return consumers, AccessContext(asked, AccessEntries.of(index) if index is not None else None, labels)


def _unlocked(consumers: Iterable[ListedConsumers], context: AccessContext) -> Iterator[ConsumerSeen]:
    for row, kind, items in consumers:
        for each in items:
            seen = ConsumerSeen(row, kind, each, context, decided(each, row, context))
            if seen.is_denied and not seen.is_locked:
                yield seen


def _violations(consumers: Iterable[ListedConsumers], context: AccessContext) -> Iterator[Violation]:
    for row, kind, items in consumers:
        for each in items:
            found = decided(each, row, context)
            if found.decision == "deny" and not is_terminating(each):
                metadata = each["metadata"]
                yield Violation(kind.kind, metadata["namespace"], metadata["name"], kind.api_version, found.told)
