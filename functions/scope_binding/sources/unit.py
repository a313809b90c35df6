"""The wiring of grants: the one index first, then what is told of the namespace whose carriers changed."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from scope_binding.sources.memory import IndexMemory, decisive
from scope_binding.sources.observe import observe_access, observe_index, read_places, read_profile
from scope_binding.sources.plan import MANAGER, doubtful, is_nearly_full, plan_index, report_index, unserved
from scope_binding.sources.report import not_in_force_yet, plan_access, told_when_seen_twice
from scope_binding.sources.seen import AccessSeen, IndexLook, IndexSeen, kept_grant, kept_source, namespace_in
from tenantry.engine.flux import shared_profile
from tenantry.engine.reader import Reader
from tenantry.engine.reads import if_served
from tenantry.engine.snapshot import Prefetch
from tenantry.engine.unit import EVERY, Handler, Owner, Stages, Unit, stage
from tenantry.model.difference import is_sole_owner
from tenantry.model.flux.access import TENANT_KEYS, AccessEntries
from tenantry.model.flux.names import (
    ACCESS_FROM,
    ACCESS_INDEX,
    DEFAULT,
    SHARED_KINDS,
    SOURCE_GRANT,
    TENANCY_PROFILE,
    TENANT_LABEL,
)
from tenantry.model.flux.profile import Profile
from tenantry.model.identifiers import is_dns_label
from tenantry.model.kinds import NAMESPACE, Key, Object, annotations_of, labels_of
from tenantry.serving import Settings

INDEX = Owner("index", DEFAULT)
TOLD = "access"
UNSERVED_S = 1.0
"""The time between the two looks before the grants of kinds go that are not served: a server that starts has them by then."""
TOLD_AT_ONCE = 2
"""Conditions of hundreds of SourceGrants that change at once leave an API server the time to have consumers locked."""
WRITTEN_S = 1.0
"""The time between the two looks before it is told that the index was not written: a run for it may be under way."""


def _tenant_of(namespace: Object) -> Hashable:
    """What of a namespace decides."""
    return labels_of(namespace).get(TENANT_LABEL, "")


class SourceAccess(Unit):
    """The unit ``sources`` of scope-binding; ``most`` is how many grants the index may have."""

    name = "sources"
    kinds = frozenset({*SHARED_KINDS, SOURCE_GRANT, TENANCY_PROFILE, ACCESS_INDEX, NAMESPACE})
    ours = frozenset({SOURCE_GRANT, TENANCY_PROFILE, ACCESS_INDEX})
    states = {NAMESPACE: _tenant_of}  # noqa: RUF012 - a constant of the class

    def __init__(self, *, most: int) -> None:
        self._most = most
        self._memory = IndexMemory()
        self._look: IndexLook | None = None
        self._standing: Object | None = None
        """The index as it was read last, or found to be: what is written on it fails where it is another one now."""
        self._elsewhere: set[str] = set()
        """Namespaces without a part in what woke the run, whose sources have found or lost a place in the index: a hint."""
        self.handlers = {
            INDEX.type: Handler[IndexSeen](
                observe=self._observe_index,
                plan=plan_index,
                report=report_index,
                accepts=INDEX.__eq__,
                doubtful=doubtful,
                second_look_after_s=lambda seen: UNSERVED_S if unserved(seen) else 0.0,
                told_next=True,
                ended=self._index_ended,
            ),
            TOLD: Handler[AccessSeen](
                observe=lambda owner, reader: observe_access(owner.name, reader, most),
                plan=plan_access,
                accepts=lambda owner: not owner.namespace and is_dns_label(owner.name),
                doubtful=told_when_seen_twice,
                second_look_after_s=lambda seen: WRITTEN_S if not_in_force_yet(seen) else 0.0,
                writes_at_once=TOLD_AT_ONCE,
                ended=self._told_ended,
            ),
        }

    async def _observe_index(self, _: Owner, reader: Reader) -> IndexSeen:
        if not reader.live:
            return (await observe_index(reader, self._most)).seen
        standing = None if reader.attempt else self._standing  # a run that begins anew has found that it is another one
        look = self._look = await observe_index(reader, self._most, standing, again=self._look is not None)
        self._standing = look.seen.index
        return look.seen

    def _index_ended(self, _: Owner, well: bool) -> None:
        look, self._look = self._look, None
        if not well or look is None:
            self._memory.forget()
            self._standing = None
            return
        self._memory.looked(look.places, look.whole, look.profile, look.causes)
        seen = look.seen
        written = seen.index is None or seen.entries != seen.before
        if written and (self._standing is None or AccessEntries.of(self._standing) != seen.entries):
            self._standing = None  # its event tells
        self._memory.version = "" if written else seen.index["metadata"]["resourceVersion"] if seen.index else ""
        self._memory.planned = seen.entries
        if is_nearly_full(seen.before, self._most):
            self._elsewhere |= {namespace_in(name) for name in seen.entries.granted ^ seen.before.granted}

    def _told_ended(self, _: Owner, well: bool) -> None:
        if not well:  # the event comes again
            self._memory.forget()

    # -- the owners of an event ------------------------------------------------------------------------

    async def owners(self, key: Key, hint: Mapping[str, str], reader: Reader) -> Stages:
        """The index, then what is told of the namespace; nothing for what the last run has seen."""
        match key.kind:
            case ACCESS_INDEX.kind:
                return await self._index_owners(reader)
            case TENANCY_PROFILE.kind:
                known = self._memory.version and decisive(await read_profile(reader)) == self._memory.profile
                return [] if known else EVERY
            case NAMESPACE.kind:
                return await self._tenant_owners(key.name, hint, reader)
        if await self._is_known(key, reader):
            return []
        return [[INDEX], [Owner(TOLD, key.namespace)]]

    async def _tenant_owners(self, namespace: str, hint: Mapping[str, str], reader: Reader) -> Stages:
        """The index, where it says of which tenant a namespace is, or has to; it need not unless namespaces of a tenant share.

        Most are of none: where an event tells that, and the index stands as this process made it, no more is read.
        """
        if not Profile.of(await shared_profile(reader)).allows_intra_tenant:
            return []
        is_told = reader.told is not None and not hint.get(TENANT_LABEL)
        if is_told and await self._knows_no_tenant_of(namespace, reader):
            return []
        index = await if_served(ACCESS_INDEX, reader, reader.get(ACCESS_INDEX, DEFAULT))
        tenant = labels_of(await reader.get(NAMESPACE, namespace)).get(TENANT_LABEL, "")
        return [[INDEX]] if tenant or namespace in AccessEntries.of(index or {}).tenants else []

    async def _knows_no_tenant_of(self, namespace: str, reader: Reader) -> bool:
        """Whether the index that stands says nothing of a namespace."""
        planned = self._memory.planned
        return planned is not None and namespace not in planned.tenants and await self._stands(reader)

    async def _stands(self, reader: Reader) -> bool:
        """Whether the index is still as this process knows it."""
        return self._memory.version != "" and await reader.version(ACCESS_INDEX, DEFAULT) == self._memory.version

    async def _is_known(self, key: Key, reader: Reader) -> bool:
        """Whether the index that stands was made from this state of a source or SourceGrant."""
        if not self._memory.version:
            return False
        kind = next(each for each in self.kinds if (each.group, each.kind) == (key.api_version.rpartition("/")[0], key.kind))
        live = await if_served(kind, reader, reader.get(kind, key.name, key.namespace))
        if not self._memory.knew((key.kind, key.namespace, key.name), live):
            return False
        return await self._stands(reader)

    async def _index_owners(self, reader: Reader) -> Stages:
        """The index, unless it stands as this function has written it; then namespaces that have something new to be told."""
        live = self._standing = await if_served(ACCESS_INDEX, reader, reader.get(ACCESS_INDEX, DEFAULT))
        if live is None:
            return [[INDEX]]
        entries = AccessEntries.of(live)
        if entries == self._memory.planned:
            self._memory.version = live["metadata"]["resourceVersion"]
        elif not self._is_being_written(entries) and not self._is_ours(live):
            return [[INDEX]]
        elsewhere, self._elsewhere = self._elsewhere, set()
        return stage(Owner(TOLD, namespace) for namespace in sorted(elsewhere))

    def _is_being_written(self, entries: AccessEntries) -> bool:
        """Whether a run that is under way makes the index so: its event may come before the run has ended."""
        return self._look is not None and self._look.seen.entries == entries

    @staticmethod
    def _is_ours(index: Object) -> bool:
        """Whether all of it was written by this function, perhaps by another process; but for what people may shorten."""
        spec = index.get("spec") or {}
        ours = (name for name in spec if name != TENANT_KEYS)
        return AccessEntries.of(index).complete and all(is_sole_owner(index, MANAGER, "spec", name) for name in ours)

    # -- sweep -----------------------------------------------------------------------------------------

    def prefetch(self) -> Sequence[Prefetch]:
        """All sources, as far as they are served in the version that is watched, SourceGrants, the index, and the profile."""
        return [
            *(Prefetch(kind, optional=True, keep=kept_source) for kind in SHARED_KINDS),
            Prefetch(SOURCE_GRANT, optional=True, keep=kept_grant),
            Prefetch(ACCESS_INDEX, optional=True),
            Prefetch(TENANCY_PROFILE, optional=True),
        ]

    async def sweep(self, reader: Reader) -> Sequence[Owner]:
        """The index, and each namespace with carriers."""
        places = await read_places(reader)
        carriers = (*places.grants, *(each for each in places.sources if _says_something(each)))
        return [INDEX, *(Owner(TOLD, each) for each in sorted({each["metadata"]["namespace"] for each in carriers}))]


def _says_something(source: Object) -> bool:
    return ACCESS_FROM in annotations_of(source) or (source.get("spec") or {}).get("accessFrom") is not None


def made(settings: Settings) -> SourceAccess:
    """The unit of a process."""
    return SourceAccess(most=settings.config.flux.max_grants)
