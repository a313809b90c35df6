"""The wiring of the rights of Paas: which kinds concern them, which owners an event leads to, and what a sweep reads.

Owners are ``paas/<name>`` and ``paas-part/<namespace>/<name>`` for what a Paas has in one namespace.  A part is enough when a
binding changes while the Paas says that all is well; only a run of the whole knows its conditions.  A PaasConfig concerns every
Paas.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from rbac_aggregation.paas.claims import other_of
from rbac_aggregation.paas.kept import kept_binding, kept_group, kept_name
from rbac_aggregation.paas.observe import every_paas, observe_paas, read_paas
from rbac_aggregation.paas.plan import doubtful, plan_paas
from rbac_aggregation.paas.report import report_paas
from rbac_aggregation.paas.seen import Seen, is_for_accounts, is_well, state_of
from tenantry.engine.last_runs import State
from tenantry.engine.paas import labelled_paas
from tenantry.engine.reader import Reader
from tenantry.engine.snapshot import Prefetch
from tenantry.engine.unit import EVERY, Handler, Owner, Stages, Unit, is_cluster_scoped, stage
from tenantry.model import limits
from tenantry.model.identifiers import is_dns_label, is_dns_subdomain
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    CONFIG_MAP,
    NAMESPACE,
    ROLE_BINDING,
    Key,
    Kind,
    Object,
    annotations_of,
    declared,
    labels_of,
)
from tenantry.model.paas.names import (
    ARGO_CD,
    ARGO_POLICY,
    GROUP,
    MANAGED_BY_PAAS,
    OUR_KINDS,
    PAAS,
    PAAS_CONFIG,
    PAAS_NS,
    PAAS_UID,
)
from tenantry.model.paas.ours import uid_of
from tenantry.serving import Settings

WHOLE, PART = "paas", "paas-part"
PAUSE_S = 0.1
"""A run's own writes come back as an event each."""
STALE_S = 0.5
"""The API server gives policies a PaasConfig that is some hundredths of a second old: what one of ours refuses is tried again."""


_OF_ONE = frozenset({NAMESPACE.kind, GROUP.kind})


class _Running:
    """The Paas that are run here now, or pause after a run: hints that spare runs for echoes of bindings."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}

    def begin(self, name: str) -> None:
        """A Paas is run."""
        if len(self._until) > limits.REMEMBERED:
            self._until.clear()
        self._until[name] = math.inf

    def end(self, owner: Owner, _: bool) -> None:
        """Its run has ended, and it pauses."""
        self._until[owner.name] = time.monotonic() + PAUSE_S

    def has(self, name: str) -> bool:
        """Whether a Paas is run, or pauses."""
        return time.monotonic() < self._until.get(name, 0.0)


class Rights(Unit):
    """The unit ``paas`` of rbac-aggregation."""

    name = "paas"
    kinds = frozenset({PAAS, PAAS_NS, PAAS_CONFIG, NAMESPACE, ROLE_BINDING, GROUP, CONFIG_MAP, ARGO_CD})
    ours = OUR_KINDS
    states: Mapping[Kind, State] = MappingProxyType({PAAS: state_of, PAAS_NS: state_of, NAMESPACE: declared})
    readable = frozenset({PAAS, PAAS_NS, NAMESPACE, ROLE_BINDING, GROUP})

    def __init__(self) -> None:
        self._running = _Running()
        self._waiting: dict[str, None] = {}
        """Paas that want a name which somebody has: a hint, so that they are looked at when another Paas changes."""
        self._odd: dict[str, frozenset[str]] = {}
        """By Paas the namespaces in which a sweep saw what is not found by label: its runs look there whole."""
        part = Handler[Seen](
            observe=lambda owner, reader: observe_paas(owner.name, owner.namespace, reader),
            plan=plan_paas,
            report=report_paas,
            accepts=lambda owner: is_dns_label(owner.namespace) and is_dns_subdomain(owner.name),
            doubtful=doubtful,
            rests_on_reads=True,
            refused_again_after_s=STALE_S,
            pause_s=PAUSE_S,
        )
        whole = replace(part, observe=self._observe_whole, accepts=is_cluster_scoped, ended=self._running.end)
        self.handlers = {WHOLE: whole, PART: part}

    async def _observe_whole(self, owner: Owner, reader: Reader) -> Seen:
        if reader.live:  # observing for a sweep is no run
            self._running.begin(owner.name)
        seen = await observe_paas(owner.name, "", reader, self._odd.get(owner.name, frozenset()))
        if not reader.live or owner.name in self._odd:
            self._note(owner.name, seen)
        self._waiting.pop(owner.name, None)
        conflicts = [each for each in seen.claims.values() if each.problem is not None and each.problem.reason == "GroupConflict"]
        if conflicts and len(self._waiting) < limits.REMEMBERED:
            self._waiting[owner.name] = None
        return seen

    def _note(self, name: str, seen: Seen) -> None:
        self._odd.pop(name, None)
        if seen.odd and len(self._odd) < limits.REMEMBERED:
            self._odd[name] = seen.odd

    # -- the owners of an event ------------------------------------------------------------------------

    def hinted(self, key: Key, hint: Mapping[str, str]) -> Owner | None:
        """The Paas of a label: a namespace or a Group that it has as its run read it concerns no other."""
        return labelled_paas(WHOLE, hint) if key.kind in _OF_ONE else None

    async def owners(self, key: Key, hint: Mapping[str, str], reader: Reader) -> Stages:
        """The Paas that a key concerns; of one that gives up a name those that wait for one, afterwards."""
        match key.kind:
            case PAAS_CONFIG.kind:
                return EVERY
            case PAAS.kind:
                others = [*self._waiting, *await _giving_way(key.name, reader)]
                return [[_whole(key.name)], *stage(_whole(name) for name in others if name != key.name)]
            case GROUP.kind:
                return await self._group_owners(key, hint, reader)
            case NAMESPACE.kind:
                live = await reader.get(NAMESPACE, key.name)
                return stage(map(_whole, await _concerned(hint, live, reader)))
            case ROLE_BINDING.kind:
                return await self._binding_owners(key, hint, reader)
            case _:
                live = await reader.get(NAMESPACE, key.namespace)
                return stage(map(_whole, await _concerned({}, live, reader)))

    async def _group_owners(self, key: Key, hint: Mapping[str, str], reader: Reader) -> Stages:
        """The Paas whose the Group is; all that call a group so when it is gone, and its name is free."""
        live = await reader.get(GROUP, key.name)
        owners = list(map(_whole, await _concerned(hint, live, reader)))
        if live is None:
            for each in await every_paas(reader):
                other = other_of(each)
                if key.name in other.generates | other.queries:
                    owners.append(_whole(other.name))
        return stage(owners)

    async def _binding_owners(self, key: Key, hint: Mapping[str, str], reader: Reader) -> Stages:
        """What the Paas has in the binding's namespace; the whole of it while it is run, so that echoes share its next run.

        One that the Paas of its label has as the last run read it concerns no other, nor does what that run itself has written.
        """
        name = hint.get(MANAGED_BY_PAAS, "")
        if name and reader.tells_nothing_new(_whole(name)):
            return []
        if name and (self._running.has(name) or reader.tells_echo(_whole(name))):
            return [[_whole(name)]]
        namespace = await reader.get(NAMESPACE, key.namespace)
        owners: list[Owner] = []
        for each in await _concerned(hint, namespace, reader):
            if reader.tells_known_end(_whole(each)):
                owners.append(_whole(each))  # which then needs no run
                continue
            paas = await read_paas(each, reader)
            owners.append(Owner(PART, each, key.namespace) if paas is not None and is_well(paas) else _whole(each))
        return stage(owners)

    # -- sweep -----------------------------------------------------------------------------------------

    def prefetch(self) -> Sequence[Prefetch]:
        """All declarations, and everything of a Paas, also without its label."""
        return [
            *(Prefetch(kind, optional=True) for kind in (PAAS, PAAS_NS, PAAS_CONFIG)),
            Prefetch(NAMESPACE, ((MANAGED_BY_PAAS, ""),)),
            Prefetch(ROLE_BINDING, keep=kept_binding),
            Prefetch(CLUSTER_ROLE, keep=kept_name),
            Prefetch(GROUP, optional=True, keep=kept_group),
            Prefetch(CONFIG_MAP, name=ARGO_POLICY),
            Prefetch(ARGO_CD, optional=True),
        ]

    async def sweep(self, reader: Reader) -> Sequence[Owner]:
        """Every Paas there is, and those that are gone and left something."""
        owners = [_whole(each["metadata"]["name"]) for each in await reader.list(PAAS)]
        for kind in (ROLE_BINDING, GROUP):
            made = await reader.list(kind, labels={MANAGED_BY_PAAS: ""})
            marked = (each for each in made if PAAS_UID in annotations_of(each) and not is_for_accounts(each))
            owners += [_whole(labels_of(each)[MANAGED_BY_PAAS]) for each in marked]
        return [each for each in dict.fromkeys(owners) if self.accepts(each)]


async def _giving_way(name: str, reader: Reader) -> list[str]:
    """Where there are no Groups, the Paas that generate a name which this one has in a query: theirs begin with their own."""
    if await reader.served(GROUP.api_version, GROUP.kind) is not None:
        return []
    live = await read_paas(name, reader)
    queries = other_of(live).queries if live is not None else ()
    begins = {query[:at] for query in queries for at, character in enumerate(query) if character == "-"}
    return [each for each in sorted(begins) if is_dns_label(each) and await read_paas(each, reader) is not None]


def _whole(name: str) -> Owner:
    return Owner(WHOLE, name)


def _named(hint: Mapping[str, str], live: Object | None) -> list[str]:
    """The Paas that the labels of an object name, and those that the event had."""
    found = (labels_of(live).get(MANAGED_BY_PAAS, "") if live is not None else "", hint.get(MANAGED_BY_PAAS, ""))
    return [name for name in dict.fromkeys(found) if is_dns_subdomain(name)]


async def _concerned(hint: Mapping[str, str], live: Object | None, reader: Reader) -> list[str]:
    """The same, and the Paas that an object is marked for, where its label was changed to another name."""
    named, uid = _named(hint, live), uid_of(live) if live is not None else ""
    found = [await read_paas(each, reader) for each in named] if uid else []
    if not uid or any(each is not None and each["metadata"]["uid"] == uid for each in found):
        return named
    return [*named, *(each["metadata"]["name"] for each in await every_paas(reader) if each["metadata"]["uid"] == uid)]


def made(_: Settings) -> Rights:
    """The unit of a process."""
    return Rights()
