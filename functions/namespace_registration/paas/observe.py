"""Reads for Paas: the Paas and its configuration, its namespaces with their PaasNS, its quotas, and others that want their names.

Other Paas are only read for names that this one has not: by name, since a Paas can want only what its own name begins.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from namespace_registration.paas.labels import namespace_labels
from namespace_registration.paas.report import gone_event, told_leftover
from namespace_registration.paas.seen import (
    OtherPaas,
    OutsideSeen,
    PaasSeen,
    is_held,
    left_namespaces,
    places_of,
    prefixes,
    selector_of,
)
from namespace_registration.paas.wanted import shared_quota, values_of
from tenantry.engine.paas import active_config, read_paas
from tenantry.engine.reader import Reader
from tenantry.engine.reads import by_name, if_served
from tenantry.engine.recorder import now_micro
from tenantry.model.conditions import find_condition
from tenantry.model.identifiers import is_dns_label, is_label_key
from tenantry.model.kinds import (
    EVENT,
    NAMESPACE,
    RESOURCE_QUOTA,
    Object,
    annotations_of,
    declared,
    finalizers_of,
    is_terminating,
    labels_of,
)
from tenantry.model.names import ADOPT
from tenantry.model.paas.config import PaasConfig
from tenantry.model.paas.declared import Paas, PaasNs, paas_ns_of, paas_of
from tenantry.model.paas.names import (
    CLUSTER_RESOURCE_QUOTA,
    MANAGED_BY_PAAS,
    NAMESPACES_PART,
    PAAS,
    PAAS_FINALIZER,
    PAAS_NS,
    QUOTA_NAME,
)
from tenantry.model.paas.ours import is_ours, owner_reference_of, uid_of
from tenantry.model.paas.places import held_by
from tenantry.model.standing import event_namespace

FEW_PAAS_NS = 200
"""So many PaasNS in the whole cluster are read at once, rather than those of each namespace."""


async def read_paas_ns(namespace: str, name: str, reader: Reader) -> Object | None:
    """A PaasNS."""
    return await if_served(PAAS_NS, reader, reader.get(PAAS_NS, name, namespace))


@dataclass(slots=True)
class _Namespaces:
    """Namespaces of a Paas as far as they were read: those with its label, and each that it wants."""

    found: dict[str, Object] = field(default_factory=dict)
    looked_at: set[str] = field(default_factory=set)
    asked: dict[str, list[PaasNs]] = field(default_factory=dict)
    """PaasNS by the namespace that they live in."""
    lists: bool = True
    """Whether all PaasNS may be listed at once."""

    @classmethod
    async def labelled(cls, name: str, reader: Reader) -> _Namespaces:
        listed = await reader.list(NAMESPACE, labels={MANAGED_BY_PAAS: name})
        found = {each["metadata"]["name"]: each for each in listed}
        return cls(found, set(found))

    async def look_at(self, names: Iterable[str], reader: Reader) -> bool:
        """Read those that were not; whether there were any."""
        missing = [name for name in names if name not in self.looked_at and is_dns_label(name)]
        self.looked_at |= set(missing)
        read = await by_name(NAMESPACE, missing, reader)
        self.found |= {name: each for name, each in read.items() if each is not None}
        return bool(missing)

    async def look_at_bare(self, paas: Paas, reader: Reader) -> None:
        """Read the namespace called like the Paas itself, which opr-paas made up to v1.11 without the label.

        It is looked for once, by the first run for a Paas that has the finalizer already, and as long as it is told: nobody makes
        such a one any more.
        """
        is_taken_over = PAAS_FINALIZER in finalizers_of(paas.live) and find_condition(paas.live, NAMESPACES_PART) is None
        if is_taken_over or told_leftover(paas, paas.name):
            found = await reader.get(NAMESPACE, paas.name)
            self.found |= {paas.name: found} if found is not None and is_ours(found, paas.name, paas.uid) else {}

    async def complete(self, paas: Paas, config: PaasConfig | None, reader: Reader) -> None:
        """Read what the spec and the PaasNS ask for, until nothing more follows from what was read."""
        if self.lists:
            await if_served(PAAS_NS, reader, reader.all_shared(PAAS_NS, FEW_PAAS_NS))
        while True:
            held = [name for name, each in self.found.items() if held_by(paas, each) and name not in self.asked]
            lists = await asyncio.gather(*(if_served(PAAS_NS, reader, reader.list(PAAS_NS, name)) for name in held))
            self.asked |= {name: [paas_ns_of(each) for each in found or ()] for name, found in zip(held, lists, strict=True)}
            places, _ = places_of(paas, config, self.all_asked, self.found.values())
            if not await self.look_at(places, reader):
                return

    @property
    def all_asked(self) -> tuple[PaasNs, ...]:
        return tuple(each for _, found in sorted(self.asked.items()) for each in found)


def _declared(live: Object | None) -> Hashable:
    return declared(live) if live is not None else None


async def observe_paas(name: str, reader: Reader) -> PaasSeen:
    """Read a Paas, or what one of this name has left."""
    live = await if_served(PAAS, reader, reader.get(PAAS, name, verify=_declared))
    paas = paas_of(live) if live is not None else None
    if paas is not None and _is_new(paas, reader):
        config, quotas = await asyncio.gather(active_config(reader), _quotas(name, reader, lists=False))
        namespaces = _Namespaces(lists=False)
        reader.knows_only_part(PAAS, name)  # what its lists would have shown is looked at for the event of the finalizer
    else:
        config, namespaces, quotas = await asyncio.gather(
            active_config(reader), _Namespaces.labelled(name, reader), _quotas(name, reader)
        )
    await namespaces.look_at((cause.name for cause in reader.causes if cause.kind == NAMESPACE.kind), reader)
    if paas is not None:
        await namespaces.look_at_bare(paas, reader)
        await namespaces.complete(paas, config, reader)
    shares = await _shares(name, reader, served=quotas is not None, ends=paas is None or paas.deleted)
    seen = PaasSeen(name, paas, config, namespaces.found, namespaces.all_asked, quotas, shares)
    if paas is not None and quotas is not None:  # of one that is being deleted too: what lacks the label goes all the same
        wanted = [each for each in values_of(paas, config) if each not in quotas]
        read = await if_served(CLUSTER_RESOURCE_QUOTA, reader, by_name(CLUSTER_RESOURCE_QUOTA, wanted, reader)) or {}
        seen = replace(seen, quotas={**quotas, **{each: found for each, found in read.items() if found is not None}})
    seen = replace(seen, others=await _others(seen, namespaces, reader))
    seen = replace(seen, counted=await _counted(seen, reader), selected=await _selected(seen, reader))
    _of_others_too(seen, reader)
    if left := left_namespaces(seen):
        events = [(gone_event(each), event_namespace(each)) for each in left]
        found = await asyncio.gather(*(reader.get(EVENT, *event) for event in events))
        seen = replace(seen, events={event: each for (event, _), each in zip(events, found, strict=True)}, now=now_micro())
    return seen


def _of_others_too(seen: PaasSeen, reader: Reader) -> None:
    """What was read and is not of this Paas alone: its events are looked at, whatever this run knows of it."""
    name, uid = seen.name, seen.paas.uid if seen.paas is not None else ""
    for kind, found in ((NAMESPACE, seen.namespaces), (CLUSTER_RESOURCE_QUOTA, seen.quotas or {})):
        for each, live in found.items():
            if not is_ours(live, name, uid) or ADOPT in annotations_of(live):
                reader.knows_only_part(kind, each)
    for namespace, live in seen.shares.items():
        if not is_ours(live, name, uid):
            reader.knows_only_part(RESOURCE_QUOTA, QUOTA_NAME, namespace)


def _is_new(paas: Paas, reader: Reader) -> bool:
    """Whether nothing was made for a Paas yet; a sweep looks all the same, and so does a run that lost a race.

    Each thing is then read by its name: a list of a kind at rest waits for up to 100 ms.
    """
    first = reader.live and bool(reader.causes) and not reader.attempt
    told = find_condition(paas.live, NAMESPACES_PART) is not None
    return first and not told and not paas.deleted and PAAS_FINALIZER not in finalizers_of(paas.live)


# -- quotas ------------------------------------------------------------------------------------------------


async def _quotas(name: str, reader: Reader, *, lists: bool = True) -> Mapping[str, Object] | None:
    """The ClusterResourceQuotas with the label of a Paas, by name; None where the kind is not served.  Without ``lists`` none."""
    kind = CLUSTER_RESOURCE_QUOTA
    if await reader.served(kind.api_version, kind.kind) is None:
        return None
    if not lists:
        return {}
    found = await if_served(kind, reader, reader.list(kind, labels={MANAGED_BY_PAAS: name}))
    return {each["metadata"]["name"]: each for each in found} if found is not None else None


async def _shares(name: str, reader: Reader, *, served: bool, ends: bool) -> Mapping[str, Object]:
    """The ResourceQuotas of ours, by namespace.

    Where ClusterResourceQuotas are served there are some only right after that began: the sweep, which has no cause, looks.
    """
    if served and not ends and reader.causes and all(each.kind != RESOURCE_QUOTA.kind for each in reader.causes):
        return {}
    found = await reader.list(RESOURCE_QUOTA, labels={MANAGED_BY_PAAS: name})
    return {each["metadata"]["namespace"]: each for each in found if each["metadata"]["name"] == QUOTA_NAME}


# -- others that want the same -----------------------------------------------------------------------------


async def _others(seen: PaasSeen, namespaces: _Namespaces, reader: Reader) -> dict[str, OtherPaas]:
    """The other Paas whose names begin what this one has not, each with the namespaces that it asks for if it is older."""
    lacking, quotas = _lacking(seen, namespaces), _lacking_quotas(seen)
    names = {each for name in (*lacking, *quotas) for each in prefixes(name)} | set(quotas)
    read = await asyncio.gather(*(read_paas(name, reader) for name in sorted(names - {seen.name})))
    others = {each.name: OtherPaas(each) for each in read if each is not None}
    paas = seen.paas
    if paas is None or paas.deleted:
        return others
    absent = [name for name in lacking if name not in seen.namespaces]
    for name, other in others.items():
        concerned = any(each.startswith(f"{name}-") for each in absent)
        if concerned and not other.paas.deleted and other.paas.age < paas.age:
            asks = await _asks(other.paas, seen.config, reader)
            others[name] = replace(other, namespaces=asks)
    return others


def _lacking(seen: PaasSeen, namespaces: _Namespaces) -> list[str]:
    """Namespaces that the Paas wants, or is said to have, and has not."""
    uid = seen.paas.uid if seen.paas is not None else ""
    names = sorted(namespaces.looked_at | set(seen.namespaces))
    lacking = [name for name in names if not is_ours(seen.namespaces.get(name), seen.name, uid)]
    return lacking + [name for name, each in sorted(seen.shares.items()) if not is_ours(each, seen.name, uid)]


def _lacking_quotas(seen: PaasSeen) -> list[str]:
    """The same of ClusterResourceQuotas, by name; each could be that of a Paas of this name."""
    paas, quotas = seen.paas, seen.quotas or {}
    wanted = values_of(paas, seen.config) | {paas.name} if paas is not None and not paas.deleted else frozenset[str]()
    uid = paas.uid if paas is not None else ""
    return [name for name in sorted(wanted | set(quotas)) if not is_ours(quotas.get(name), seen.name, uid)]


async def _counted(seen: PaasSeen, reader: Reader) -> dict[str, tuple[Paas, ...]]:
    """By quota the Paas whose namespaces have its label: of one that another Paas could have too, or that gets another label."""
    paas, config = seen.paas, seen.config
    if paas is None or paas.deleted or config is None or not is_label_key(config.quota_label):
        return {}
    others = [each.paas for each in seen.others.values() if not each.paas.deleted]
    names = []
    for name in sorted(values_of(paas, config)):
        if (live := (seen.quotas or {}).get(name)) is not None:
            looked_up = config.quota_label not in selector_of(live)
        else:
            looked_up = any(name in values_of(each, config) for each in others)
        names += [name] if looked_up else []
    lists = await asyncio.gather(*(reader.list(NAMESPACE, labels={config.quota_label: name}) for name in names))
    counted: dict[str, tuple[Paas, ...]] = {}
    for name, found in zip(names, lists, strict=True):
        keepers = [await keeper(each, reader) for each in found if uid_of(each) not in ("", paas.uid)]
        if there := {each.name: each for each in keepers if each is not None}:
            counted[name] = tuple(there.values())
    return counted


async def _selected(seen: PaasSeen, reader: Reader) -> frozenset[tuple[str, str]]:
    """Labels that the namespaces are to have and by which quotas of other Paas select.

    Only one that said until now to which quota of ours a namespace counts can be one of these: nobody else may write it.
    """
    paas, config = seen.paas, seen.config
    if paas is None or paas.deleted or config is None or seen.quotas is None:
        return frozenset()
    own = values_of(paas, config)
    former = own | {shared_quota(each) for each in paas.enabled}
    held = [labels_of(each) for each in seen.namespaces.values() if held_by(paas, each)]
    wanted = namespace_labels(paas, paas.name, config, "").written.items() - {(config.quota_label, paas.name)}
    pairs = {(key, value) for key, value in wanted if any(labels.get(key) in former - {value} for labels in held)}
    others = sorted({value for _, value in pairs} - own)
    quotas = await if_served(CLUSTER_RESOURCE_QUOTA, reader, by_name(CLUSTER_RESOURCE_QUOTA, others, reader)) or {}
    return frozenset((key, value) for key, value in pairs if key in selector_of(quotas.get(value) or {}))


async def _asks(paas: Paas, config: PaasConfig | None, reader: Reader) -> frozenset[str]:
    """The namespaces that another Paas asks for."""
    namespaces = await _Namespaces.labelled(paas.name, reader)
    await namespaces.complete(paas, config, reader)
    places, _ = places_of(paas, config, namespaces.all_asked, namespaces.found.values())
    return frozenset(places)


# -- PaasNS outside of every Paas --------------------------------------------------------------------------


async def keeper(namespace: Object | None, reader: Reader) -> Paas | None:
    """The Paas that has a namespace."""
    if namespace is None:
        return None
    reference = owner_reference_of(namespace) or {}
    names = dict.fromkeys([labels_of(namespace).get(MANAGED_BY_PAAS, ""), str(reference.get("name") or "")])
    for name in (*names, *(each for each in prefixes(namespace["metadata"]["name"]) if each not in names)):
        found = await read_paas(name, reader) if name else None
        if found is not None and is_ours(namespace, found.name, found.uid):
            return found
    return None


async def observe_outside(namespace: str, name: str, reader: Reader) -> OutsideSeen:
    """Read a PaasNS that no Paas may have; there is nothing to say where one has its namespace, or where that goes."""
    live, home = await asyncio.gather(read_paas_ns(namespace, name, reader), reader.get(NAMESPACE, namespace))
    if is_held(live):
        return OutsideSeen(held=live)
    if live is None or is_terminating(live) or is_terminating(home) or await keeper(home, reader) is not None:
        return OutsideSeen()
    return OutsideSeen(paas_ns_of(live))
