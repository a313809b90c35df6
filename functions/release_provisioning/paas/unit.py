"""The wiring of the hand-over: which owners an event leads to, and what a sweep reads.

Owners are ``appset/<namespace>/<name>`` for the elements of an ApplicationSet, which one run writes for all Paas, and
``paas/<name>`` for the finalizer of a Paas and for what it is told.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

from release_provisioning.paas.observe import (
    active_config,
    application_set,
    every_paas,
    has_element,
    live_config,
    observe_paas,
    observe_set,
    with_elements,
)
from release_provisioning.paas.plan import doubtful, plan_paas, plan_set
from release_provisioning.paas.report import report_paas, report_set
from release_provisioning.paas.seen import (
    GivenElement,
    HandOverSeen,
    SetSeen,
    elements_of,
    given_by,
    gives_nothing,
    is_configured,
    is_marked,
    is_prepared,
    owner_of,
    told_sets,
)
from tenantry.engine.hints import Hints
from tenantry.engine.paas import read_paas
from tenantry.engine.reader import Reader
from tenantry.engine.snapshot import Prefetch
from tenantry.engine.unit import EVERY, Handler, Owner, Stages, Unit
from tenantry.model.conditions import find_condition
from tenantry.model.identifiers import is_dns_label, is_dns_subdomain
from tenantry.model.kinds import Key, Object, annotations_of, declared, finalizers_of, is_terminating
from tenantry.model.paas.config import PaasConfig, config_of
from tenantry.model.paas.declared import Paas
from tenantry.model.paas.names import APPLICATION_SET, HAND_OVER_FINALIZER, HAND_OVER_PART, OUR_KINDS, PAAS, PAAS_CONFIG, WARNINGS
from tenantry.model.paas.status import as_told
from tenantry.serving import Settings

SET, OF_PAAS = "appset", "paas"
SET_PAUSE_S = 0.25
"""Many Paas come and change at the same time, and each is a change of the same list."""


def _state(paas: Object) -> Hashable:
    """What of a Paas decides: its declaration, finalizers, and what we tell."""
    told = as_told(paas, (HAND_OVER_PART, f"{HAND_OVER_PART}{WARNINGS}"))
    return declared(paas), HAND_OVER_FINALIZER in finalizers_of(paas), told


def _set_state(found: Object) -> Hashable:
    """What of an ApplicationSet decides: its generators and our mark; its controller writes its status all the time."""
    metadata = found["metadata"]
    return metadata["uid"], repr(found.get("spec")), is_terminating(found), tuple(sorted(annotations_of(found).items()))


class HandOver(Unit):
    """The unit ``paas`` of release-provisioning."""

    name = "paas"
    kinds = readable = frozenset({PAAS, PAAS_CONFIG, APPLICATION_SET})
    ours = OUR_KINDS
    states = {PAAS: _state, APPLICATION_SET: _set_state}  # noqa: RUF012 - a constant of the class

    def __init__(self) -> None:
        self._give_nothing = Hints()
        """Paas that gave nothing when they were last looked at: a hint that spares looks for echoes."""
        self.handlers = {
            SET: Handler[SetSeen](
                observe=lambda owner, reader: observe_set(owner.namespace, owner.name, reader),
                plan=plan_set,
                report=report_set,
                accepts=lambda owner: is_dns_label(owner.namespace) and is_dns_subdomain(owner.name),
                doubtful=doubtful,
                pause_s=SET_PAUSE_S,
                gathers=True,
                rests_on_reads=True,
            ),
            OF_PAAS: Handler[HandOverSeen](
                observe=self._observe_paas,
                plan=plan_paas,
                report=report_paas,
                rests_on_reads=True,
            ),
        }

    async def _observe_paas(self, owner: Owner, reader: Reader) -> HandOverSeen:
        seen = await observe_paas(owner.name, reader)
        if reader.live:
            paas = seen.paas
            nothing = paas is not None and not given_by(paas, seen.config) and not is_prepared(paas)
            self._give_nothing.note(owner.name, holds=nothing)
        return seen

    # -- the owners of an event ------------------------------------------------------------------------

    async def owners(self, key: Key, hint: Mapping[str, str], reader: Reader) -> Stages:
        """The ApplicationSets and the Paas that a key concerns."""
        del hint
        if key.kind == PAAS_CONFIG.kind:
            return EVERY
        if key.kind == PAAS.kind:
            return await self._paas_owners(key.name, reader)
        return await self._set_owners(key.namespace, key.name, reader)

    async def _paas_owners(self, name: str, reader: Reader) -> Stages:
        """The ApplicationSets in which a Paas has not what it gives, then itself."""
        if name in self._give_nothing and reader.tells_nothing_new(Owner(OF_PAAS, name)):
            return []
        paas = await read_paas(name, reader)
        if paas is None or (paas.deleted and not is_prepared(paas)):
            return []
        config, own = await active_config(reader), [Owner(OF_PAAS, name)]
        every = given_by(paas, config)
        if not is_prepared(paas):  # the finalizer comes first, and is an event of its own
            return [own]  # of one that gives nothing it remembers that
        return [each for each in (await _due(paas, every, config, reader), own) if each]

    async def _set_owners(self, namespace: str, name: str, reader: Reader) -> Stages:
        """An ApplicationSet of ours, then the Paas that are told of it, or are to be, or wait for it to let them go."""
        live, config = await application_set(namespace, name, reader), await active_config(reader)
        configured = is_configured(namespace, name, config)
        if not configured and live is not None and not is_marked(live):
            return []
        told: list[Owner] = []
        for paas in await every_paas(reader):
            concerned = configured and any(given.application_set == name for given in given_by(paas, config))
            if (is_prepared(paas) and gives_nothing(paas, config)) or (concerned and (live is None or not _is_settled(paas))):
                told.append(Owner(OF_PAAS, paas.name))
        return [each for each in ([Owner(SET, name, namespace)], told) if each]

    # -- sweep -----------------------------------------------------------------------------------------

    def prefetch(self) -> Sequence[Prefetch]:
        """All declarations and all ApplicationSets, where they are served."""
        return [Prefetch(kind, optional=True) for kind in (PAAS, PAAS_CONFIG, APPLICATION_SET)]

    async def sweep(self, reader: Reader) -> Sequence[Owner]:
        """The ApplicationSets that are configured, have our mark or are told of, and every Paas that gives or has something."""
        live = await live_config(reader)
        config = config_of(live) if live is not None else None
        concerned = (
            paas
            for paas in await every_paas(reader)
            if given_by(paas, config) or is_prepared(paas) or find_condition(paas.live, HAND_OVER_PART) is not None
        )
        told = (Owner(SET, name, namespace) for namespace, name in told_sets(live))
        sets = dict.fromkeys([*_sets(await with_elements(config, reader)), *told])
        return [*sets, *(Owner(OF_PAAS, paas.name) for paas in concerned)]


def _sets(found: Iterable[Object]) -> list[Owner]:
    return [Owner(SET, each["metadata"]["name"], each["metadata"]["namespace"]) for each in found]


def _is_settled(paas: Paas) -> bool:
    """Whether a Paas was told that all of its current declaration is handed over."""
    told = find_condition(paas.live, HAND_OVER_PART) or {}
    return told.get("status") == "True" and told.get("observedGeneration") == paas.generation


async def _due(paas: Paas, every: Sequence[GivenElement], config: PaasConfig | None, reader: Reader) -> list[Owner]:
    """The ApplicationSets in which a Paas has not what it gives, or still has what it gives no more."""
    wanted: dict[str, list[GivenElement]] = {}
    for given in every:
        wanted.setdefault(given.application_set, []).append(given)

    def differs(found: Object) -> bool:
        here = found["metadata"]["namespace"] == (config.argo_namespace if config is not None else "")
        given = wanted.get(found["metadata"]["name"], []) if here else []
        if any(each.element is None for each in given):
            return not _is_settled(paas)
        there = [each for each in elements_of(found) if owner_of(each) == paas.name]
        return there != [each.element for each in given]

    if paas.deleted or not _is_settled(paas):
        found = await with_elements(config, reader)
        return _sets(each for each in found if differs(each) and (not paas.deleted or has_element(each, paas.name)))
    if config is None or not config.argo_namespace:
        return []
    read = [await application_set(config.argo_namespace, name, reader) for name in sorted(wanted)]
    return _sets(each for each in read if each is not None and differs(each))


def made(_: Settings) -> HandOver:
    """The unit of a process."""
    return HandOver()
