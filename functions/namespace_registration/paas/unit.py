"""The wiring of Paas: which kinds concern them, which owners an event leads to, and what a sweep reads.

A namespace without a mark of ours concerns no Paas while it exists; one that is gone may be wanted by a Paas whose name begins
its own.  Where there is no Paas at all, namespaces cost no request.
"""

from __future__ import annotations

import json
import time
from collections.abc import Hashable, Iterable, Mapping, Sequence
from types import MappingProxyType

from namespace_registration.paas import observe, plan, report
from namespace_registration.paas.seen import OutsideSeen, PaasSeen, is_held, prefixes
from namespace_registration.paas.wanted import waits
from tenantry.api.errors import KindNotServed
from tenantry.engine.paas import labelled_paas, read_paas
from tenantry.engine.reader import Reader
from tenantry.engine.snapshot import Prefetch
from tenantry.engine.unit import EVERY, Handler, Owner, Stages, Unit, is_cluster_scoped, stage
from tenantry.model.config import Config
from tenantry.model.identifiers import is_dns_label, is_dns_subdomain
from tenantry.model.kinds import (
    NAMESPACE,
    RESOURCE_QUOTA,
    Key,
    Object,
    annotations_of,
    declared,
    finalizers_of,
    is_terminating,
    labels_of,
)
from tenantry.model.names import ADOPT
from tenantry.model.paas.names import (
    CLUSTER_RESOURCE_QUOTA,
    MANAGED_BY_PAAS,
    OUR_KINDS,
    PAAS,
    PAAS_CONFIG,
    PAAS_FINALIZER,
    PAAS_NS,
    PAAS_UID,
    QUOTA_NAME,
)
from tenantry.model.paas.ours import owner_reference_of, uid_of
from tenantry.model.paas.status import as_told
from tenantry.serving import Settings

PAAS_OWNER, PAAS_NS_OWNER = "paas", "paasns"
"""Types of owners: a Paas, and a PaasNS in a namespace that no Paas has."""
_OF_ONE = frozenset({NAMESPACE.kind, RESOURCE_QUOTA.kind, CLUSTER_RESOURCE_QUOTA.kind})
NONE_FOR_S = 5.0
"""So long a cluster that had no Paas is taken to have none; the event of the first one is a run of its own."""


def _state(live: Object) -> Hashable:
    """What of a namespace or a quota decisions rest on: not its status, which the use of a quota changes all the time."""
    spec = json.dumps(live.get("spec") or {}, sort_keys=True)
    return declared(live), spec, str(live["metadata"].get("ownerReferences"))


def _paas_state(live: Object) -> Hashable:
    """What of a Paas decisions rest on: not the finalizers that others put on while it lives, nor when a condition changed."""
    status = live.get("status") or {}
    types = tuple(each["type"] for each in status.get("conditions") or ())
    finalizers = finalizers_of(live)
    held = tuple(finalizers) if is_terminating(live) else PAAS_FINALIZER in finalizers
    return declared(live), held, tuple(status.get("namespaces") or ()), types, as_told(live, types)


class PaasUnit(Unit):
    """The unit ``paas`` of namespace-registration."""

    name = "paas"
    kinds = frozenset({PAAS, PAAS_NS, PAAS_CONFIG, NAMESPACE, RESOURCE_QUOTA, CLUSTER_RESOURCE_QUOTA})
    ours = OUR_KINDS
    readable = frozenset({PAAS, PAAS_NS, NAMESPACE, CLUSTER_RESOURCE_QUOTA})
    states = MappingProxyType({PAAS: _paas_state, **dict.fromkeys((NAMESPACE, RESOURCE_QUOTA, CLUSTER_RESOURCE_QUOTA), _state)})

    def __init__(self, config: Config) -> None:
        self._none_until = 0.0  # a hint that saves reads: there was no Paas a moment ago
        self.handlers = {
            PAAS_OWNER: Handler[PaasSeen](
                observe=lambda owner, reader: observe.observe_paas(owner.name, reader),
                plan=lambda seen: plan.plan_paas(seen, config.project_label),
                report=lambda seen, refusals: report.report_paas(seen, refusals, config.project_label),
                accepts=is_cluster_scoped,
                pause_s=0.1,  # its own writes come back as half a dozen events
                refused_again_after_s=0.3,
                waits=waits,
                rests_on_reads=True,
            ),
            PAAS_NS_OWNER: Handler[OutsideSeen](
                observe=lambda owner, reader: observe.observe_outside(owner.namespace, owner.name, reader),
                plan=plan.plan_outside,
                report=lambda seen, _: report.report_outside(seen),
                accepts=lambda owner: is_dns_label(owner.namespace) and is_dns_subdomain(owner.name),
                rests_on_reads=True,
            ),
        }

    def hinted(self, key: Key, hint: Mapping[str, str]) -> Owner | None:
        """The Paas of a label: a namespace or a quota that it has as its run read it concerns no other."""
        return labelled_paas(PAAS_OWNER, hint) if key.kind in _OF_ONE else None

    async def owners(self, key: Key, hint: Mapping[str, str], reader: Reader) -> Stages:
        """The Paas that a key concerns; a PaasConfig concerns every one."""
        match key.kind:
            case PAAS_CONFIG.kind:
                return EVERY
            case PAAS.kind:
                self._none_until = 0.0
                return [[Owner(PAAS_OWNER, key.name)]]
            case PAAS_NS.kind:
                return await self._of_paas_ns(key, reader)
            case CLUSTER_RESOURCE_QUOTA.kind:
                return stage(await self._named(key.name, hint, reader))
            case RESOURCE_QUOTA.kind if key.name != QUOTA_NAME:
                return []
        return stage(await self._of_namespace(key.namespace or key.name, hint, reader))

    async def _of_paas_ns(self, key: Key, reader: Reader) -> Stages:
        own = [Owner(PAAS_NS_OWNER, key.name, key.namespace)]
        paas = await observe.keeper(await reader.get(NAMESPACE, key.namespace), reader)
        if paas is None:
            return [own]
        held = is_held(await observe.read_paas_ns(key.namespace, key.name, reader))
        return [*([own] if held else []), [Owner(PAAS_OWNER, paas.name)]]

    async def _of_namespace(self, name: str, hint: Mapping[str, str], reader: Reader) -> list[Owner]:
        """The Paas that has a namespace, and those that its marks name; of one that is gone those that could want it."""
        if MANAGED_BY_PAAS not in hint and await self._there_is_none(reader):
            return []
        live = await reader.get(NAMESPACE, name)
        if live is None:
            return await self._named(name, hint, reader)
        named = _named_by(live)
        if not named and not uid_of(live):
            return []
        found = await observe.keeper(live, reader)
        adopting = annotations_of(live).get(ADOPT, "")
        if found is not None:
            return [Owner(PAAS_OWNER, each) for each in (found.name, adopting) if each and each != "true"]
        return [Owner(PAAS_OWNER, each) for each in named]

    async def _named(self, name: str, hint: Mapping[str, str], reader: Reader) -> list[Owner]:
        """The Paas that exist and could want a name, and the one that the label named."""
        named = hint.get(MANAGED_BY_PAAS, "")
        there = [each for each in (*prefixes(name), name) if await read_paas(each, reader) is not None]
        return [Owner(PAAS_OWNER, each) for each in dict.fromkeys([named, *there]) if each]

    async def _there_is_none(self, reader: Reader) -> bool:
        """Whether there is no Paas at all, asked once in a while: then nothing of a namespace concerns one."""
        if time.monotonic() < self._none_until:
            return True
        try:
            none = await reader.all_shared(PAAS, 1) == []  # of many it says nothing
        except KindNotServed:
            none = True
        self._none_until = time.monotonic() + NONE_FOR_S if none else 0.0
        return none

    # -- sweep -----------------------------------------------------------------------------------------

    def prefetch(self) -> Sequence[Prefetch]:
        """All declarations and namespaces, and the quotas of ours."""
        ours = ((MANAGED_BY_PAAS, ""),)
        declared = (Prefetch(kind, optional=True) for kind in (PAAS, PAAS_NS, PAAS_CONFIG, CLUSTER_RESOURCE_QUOTA))
        return [*declared, Prefetch(NAMESPACE), Prefetch(RESOURCE_QUOTA, ours)]

    async def sweep(self, reader: Reader) -> Sequence[Owner]:
        """Every Paas, those that are gone and left something, and PaasNS in namespaces that none has, or that cannot go."""
        declared = {each["metadata"]["name"]: each["metadata"]["uid"] for each in await reader.list(PAAS)}
        owners = [Owner(PAAS_OWNER, name) for name in sorted(declared)]
        uids, held = frozenset(declared.values()), set[str]()
        marked: list[Object] = []
        for namespace in await reader.list(NAMESPACE):
            if uid_of(namespace) in uids:
                held.add(namespace["metadata"]["name"])
            marked.append(namespace)
        for kind in (CLUSTER_RESOURCE_QUOTA, RESOURCE_QUOTA):
            marked += await reader.list(kind, labels={MANAGED_BY_PAAS: ""})
        owners += _left(marked, uids)
        asked = await reader.list(PAAS_NS)
        outside = (each["metadata"] for each in asked if each["metadata"]["namespace"] not in held or is_held(each))
        owners += [Owner(PAAS_NS_OWNER, each["name"], each["namespace"]) for each in outside]
        return list(dict.fromkeys(owners))


def _named_by(namespace: Object) -> list[str]:
    """The Paas that the marks of a namespace name, whether they prove anything or not."""
    reference = owner_reference_of(namespace) or {}
    adopting = annotations_of(namespace).get(ADOPT, "")
    names = (
        labels_of(namespace).get(MANAGED_BY_PAAS, ""),
        str(reference.get("name") or ""),
        "" if adopting == "true" else adopting,
    )
    return [each for each in dict.fromkeys(names) if each]


def _left(marked: Iterable[Object], uids: frozenset[str]) -> list[Owner]:
    """The names of Paas that exist no more, by the labels of what was made for them."""
    gone = (each for each in marked if annotations_of(each).get(PAAS_UID, "") not in ("", *uids))
    return [Owner(PAAS_OWNER, name) for each in gone if (name := labels_of(each).get(MANAGED_BY_PAAS))]


def made(settings: Settings) -> PaasUnit:
    """The unit of a process."""
    return PaasUnit(settings.config)
