"""Reads for the index and for what is told: sources in the versions that discovery names, SourceGrants, the profile.

The index is read before what it is made from.  Whoever writes it on the state that was read knows nothing older than who wrote it
before.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import NamedTuple

from scope_binding.sources.memory import decisive, place_of, state_of
from scope_binding.sources.plan import index_seen, is_nearly_full
from scope_binding.sources.report import tells, warnings_of
from scope_binding.sources.seen import (
    AccessSeen,
    IndexLook,
    Places,
    kept_grant,
    kept_source,
    kind_in,
    name_in,
    namespace_in,
)
from tenantry.api.errors import KindNotServed
from tenantry.engine.reader import Reader
from tenantry.engine.reads import by_name, if_served
from tenantry.engine.recorder import now_micro
from tenantry.engine.unit import OutdatedError
from tenantry.model.flux.access import AccessEntries
from tenantry.model.flux.carriers import tenants_may_set
from tenantry.model.flux.names import (
    ACCESS_INDEX,
    DEFAULT,
    SHARED_KINDS,
    SOURCE_GRANT,
    TENANCY_PROFILE,
    TENANT_LABEL,
)
from tenantry.model.flux.profile import Profile
from tenantry.model.kinds import EVENT, NAMESPACE, Kind, Object, is_terminating, key_in, labels_of

_IN_A_NAMESPACE = frozenset((each.group, each.kind) for each in (*SHARED_KINDS, SOURCE_GRANT))
FEW_SOURCES = 16
"""So many sources, and as many SourceGrants, of a namespace, at most, are read by name."""
FEW_NAMESPACES = 8
"""Of so many, at most, sources are listed apart; of more all of them at once."""


class _MadeFrom(NamedTuple):
    """What the index is made from: of some namespaces, of ``whole`` of them all that there is; or, where that is None, of all."""

    profile: Profile
    places: Places
    whole: frozenset[str] | None
    tenants: Mapping[str, str] | None

    @property
    def state(self) -> Hashable:
        """What of it decides."""
        found = frozenset((place_of(each), state_of(each)) for each in (*self.places.sources, *self.places.grants))
        tenants = None if self.tenants is None else frozenset(self.tenants.items())
        return decisive(self.profile), self.places.served, found, tenants


async def read_profile(reader: Reader) -> Profile:
    """What is enforced; without a profile nothing is."""
    return Profile.of(await if_served(TENANCY_PROFILE, reader, reader.get(TENANCY_PROFILE, DEFAULT)))


async def observe_index(reader: Reader, most: int, standing: Object | None = None, *, again: bool = False) -> IndexLook:
    """Read the index and what it is made from: all, or the namespaces that woke the run where the rest stays as it is.

    That is read again after the write: another process that saw a change had nothing to write while the index was as it was.

    Args:
        standing: the index as it was read before, in place of one that is read now.  It is written on that state or not at all.
        again: it was there in that state a moment ago; else its version is asked for.

    Raises:
        OutdatedError: the index is not as it was read before.
    """
    if standing is None:
        index = await if_served(ACCESS_INDEX, reader, reader.get(ACCESS_INDEX, DEFAULT, again=True))
    else:
        reader.known[key_in(ACCESS_INDEX, DEFAULT, "")] = standing
        index = await reader.get(ACCESS_INDEX, DEFAULT)
    namespaces = _concerned(reader, index, most)
    made_from, stands = await asyncio.gather(
        _made_from(reader, index, namespaces, consistent=False), _stands(reader, None if again else standing)
    )
    if not stands:
        raise OutdatedError("the AccessIndex has changed since it was read: it is read again")

    async def state_now(fresh: Reader) -> Hashable:
        return (await _made_from(fresh, index, namespaces, consistent=True)).state

    if reader.live:  # a snapshot writes nothing, and of all sources a state is much to work out
        reader.depends_on(state_now, made_from.state)
    profile, places, whole, tenants = made_from
    causes = (
        frozenset((each.kind, each.namespace, each.name) for each in reader.causes) if namespaces is not None else frozenset()
    )
    seen = index_seen(index, profile, places, most, namespaces, tenants)
    return IndexLook(seen, places, whole, profile, causes)


async def _stands(reader: Reader, index: Object | None) -> bool:
    """Whether the index is still as it was read; of None that is not asked."""
    if index is None:
        return True
    version = await if_served(ACCESS_INDEX, reader, reader.version(ACCESS_INDEX, DEFAULT))
    return bool(version == index["metadata"]["resourceVersion"])


async def _made_from(reader: Reader, index: Object | None, namespaces: frozenset[str] | None, *, consistent: bool) -> _MadeFrom:
    """Read the profile, and the places and tenants of these namespaces; None: of all."""
    if namespaces is None:
        profile = await read_profile(reader)
        places, tenants = await asyncio.gather(read_places(reader), _tenants(reader, profile))
        return _MadeFrom(profile, places, None, tenants)
    looks = asyncio.gather(*(_look(reader, index, each, consistent=consistent) for each in sorted(namespaces)))
    profile, found = await asyncio.gather(read_profile(reader), looks)
    served = found[0][0].served.intersection(*(each.served for each, _ in found))
    sources = tuple(source for each, _ in found for source in each.sources)
    places = Places(served, sources, tuple(grant for each, _ in found for grant in each.grants))
    whole = frozenset(each for each, (_, is_whole) in zip(sorted(namespaces), found, strict=True) if is_whole)
    return _MadeFrom(profile, places, whole, None)


async def _look(reader: Reader, index: Object | None, namespace: str, *, consistent: bool = True) -> tuple[Places, bool]:
    """The sources of a namespace that have carriers, with its SourceGrants; else all of them.  The latter is True.

    ``consistent``: what is listed is as it is now, and not only as new as the index; of kinds at rest that waits
    (`tenantry.api.Api.list`), as reads by name never do.
    """
    try:
        found = await _shared_places(reader, index, namespace, consistent=consistent)
    except KindNotServed:
        found = None
    return (found, False) if found is not None else (await read_places(reader, namespace), True)


async def _shared_places(reader: Reader, index: Object | None, namespace: str, *, consistent: bool) -> Places | None:
    """Those that the index has, that SourceGrants name and that woke the run: few by name, and else all of their kinds.

    What woke the run is as it is now, the rest as new as what the index was made from: of what happened to it later there are
    events.  None where that is not so: without an index, and when a SourceGrant is gone, which nobody tells again; and for kinds
    that are not served.
    """
    if index is None:
        return None
    kinds = await asyncio.gather(*(reader.preferred(each.group, each.kind) for each in SHARED_KINDS))
    served = {each.kind: each for each in kinds if each is not None}
    since = index["metadata"]["resourceVersion"]
    causes = [each for each in reader.causes if each.namespace == namespace]
    woken = {(each.kind, each.name) for each in causes if each.kind != SOURCE_GRANT.kind}
    known = {(kind_in(each), name_in(each)) for each in AccessEntries.of(index).granted if namespace_in(each) == namespace}
    found: dict[tuple[str, str], Object | None] = {}

    async def listed(kinds: Iterable[str]) -> list[list[Object]]:
        if consistent:
            return await asyncio.gather(*(reader.list(served[each], namespace, keep=kept_source) for each in sorted(kinds)))
        return await asyncio.gather(
            *(reader.list_since(served[each], namespace, since, keep=kept_source) for each in sorted(kinds))
        )

    async def read(names: Iterable[tuple[str, str]]) -> list[tuple[tuple[str, str], Object | None]]:
        """Read now: what led to the owner may have been read before the index."""
        wanted = sorted(names)
        gets = (reader.get(served[kind], name, namespace, again=True) for kind, name in wanted)
        return list(zip(wanted, await asyncio.gather(*gets), strict=True))

    if not served.keys() >= _kinds_of(woken | known):
        return None
    many = _kinds_of(known) if len(known | woken) > FEW_SOURCES else frozenset()
    changed = [each.name for each in causes if each.kind == SOURCE_GRANT.kind]
    live, lists, now = await asyncio.gather(
        _grants(reader, namespace, since, changed), listed(many), read(woken if many else woken | known)
    )
    if not live.keys() >= set(changed):
        return None
    specs = [each["spec"] for each in live.values()]
    named = {(each["sourceRef"]["kind"], each["sourceRef"]["name"]) for each in specs if "sourceRef" in each}
    selected = {each["sourceSelector"]["kind"] for each in specs if "sourceRef" not in each}
    if not served.keys() >= _kinds_of(named) | selected:
        return None
    left = {each for each in named - woken - (frozenset() if many else known) if each[0] not in many | selected}
    more = selected | (_kinds_of(left) if len(left | woken | known) > FEW_SOURCES else frozenset())
    lists_left, now_left = await asyncio.gather(listed(more - many), read(each for each in left if each[0] not in more))
    found |= {
        (each["kind"], each["metadata"]["name"]): each for each in (item for some in (*lists, *lists_left) for item in some)
    }
    found |= dict((*now, *now_left))
    return Places(
        frozenset(served), tuple(kept_source(each) for each in found.values() if each is not None), tuple(live.values())
    )


async def _grants(reader: Reader, namespace: str, since: str, changed: Collection[str]) -> dict[str, Object]:
    """The SourceGrants of a namespace by name: as new as a resourceVersion, and those that changed as they are now."""
    if len(changed) > FEW_SOURCES:
        return {each["metadata"]["name"]: each for each in await reader.list(SOURCE_GRANT, namespace, keep=kept_grant)}
    listed, now = await asyncio.gather(
        reader.list_since(SOURCE_GRANT, namespace, since, keep=kept_grant), by_name(SOURCE_GRANT, changed, reader, namespace)
    )
    found = {each["metadata"]["name"]: each for each in listed if each["metadata"]["name"] not in now}
    return found | {name: kept_grant(live) for name, live in now.items() if live is not None}


def _kinds_of(names: Iterable[tuple[str, str]]) -> frozenset[str]:
    return frozenset(kind for kind, _ in names)


def _concerned(reader: Reader, index: Object | None, most: int) -> frozenset[str] | None:
    """The namespaces whose carriers may have changed; None: any, or what changed elsewhere may find a place now."""
    entries = AccessEntries.of(index or {})
    if not _woken_by_carriers(reader) or not entries.complete or is_nearly_full(entries, most):
        return None
    found = frozenset(each.namespace for each in reader.causes)
    return found if len(found) <= FEW_NAMESPACES else None


def _woken_by_carriers(reader: Reader) -> bool:
    """Whether sources and SourceGrants woke the run, and nothing else."""
    causes = ((each.api_version.rpartition("/")[0], each.kind) for each in reader.causes)
    return reader.live and bool(reader.causes) and _IN_A_NAMESPACE.issuperset(causes)


async def read_places(reader: Reader, namespace: str = "") -> Places:
    """The sources and SourceGrants of a namespace, or of all."""
    grants, *sources = await asyncio.gather(
        if_served(SOURCE_GRANT, reader, reader.list(SOURCE_GRANT, namespace, keep=kept_grant)),
        *(_sources(kind, namespace, reader) for kind in SHARED_KINDS),
    )
    served = frozenset(kind.kind for kind, found in zip(SHARED_KINDS, sources, strict=True) if found is not None)
    return Places(served, tuple(each for found in sources for each in found or ()), tuple(grants or ()))


async def _sources(kind: Kind, namespace: str, reader: Reader) -> list[Object] | None:
    """The sources of a kind; None where discovery says that it is not served.

    That a kind is missing, or is served in a version, may be known from a moment ago: what woke the run may say otherwise.

    Raises:
        KindNotServed: discovery, asked now, names the kind, and the list is not found: no grant goes for that.
    """
    woken = reader.live and bool(reader.causes)
    for again in (False, True):
        found = await reader.preferred(kind.group, kind.kind, again=again)
        if found is None and (again or not woken):
            return None
        if found is None:
            continue
        try:
            return await reader.list(found, namespace, keep=kept_source)
        except KindNotServed:
            if again:
                raise
    return None


async def _tenants(reader: Reader, profile: Profile) -> Mapping[str, str]:
    """The tenant of each namespace whose tenant has two or more, where that counts and tenants cannot set it themselves."""
    if not profile.allows_intra_tenant or tenants_may_set(TENANT_LABEL, profile.tenant_label_keys):
        return {}
    listed = await reader.list(NAMESPACE, labels={TENANT_LABEL: ""})
    tenants = {each["metadata"]["name"]: tenant for each in listed if (tenant := labels_of(each)[TENANT_LABEL])}
    number = Counter(tenants.values())
    return {namespace: tenant for namespace, tenant in tenants.items() if number[tenant] > 1}


async def observe_access(namespace: str, reader: Reader, most: int) -> AccessSeen:
    """Read what is told of a namespace's carriers, and what was told already; of its sources those that may be concerned."""
    index, profile = await asyncio.gather(
        if_served(ACCESS_INDEX, reader, reader.get(ACCESS_INDEX, DEFAULT)), read_profile(reader)
    )
    if _woken_by_carriers(reader):
        places, _ = await _look(reader, index, namespace)
    else:
        places = await read_places(reader, namespace)
    seen = AccessSeen(profile, places, index, most)
    if not tells(seen):
        return seen
    warnings = warnings_of(seen)
    live, *events = await asyncio.gather(
        reader.get(NAMESPACE, namespace), *(reader.get(EVENT, each.name, namespace) for each in warnings)
    )
    warned = frozenset(each["metadata"]["name"] for each in events if each is not None)
    is_open = live is not None and not is_terminating(live)
    return AccessSeen(profile, places, index, most, warned, now_micro(), is_open)
