"""What is told of the hand-over: the part HandOver of a Paas, and elements that no Paas has (1.4, 2.14)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from release_provisioning.paas.descriptor import PAAS_HAND_OVER
from release_provisioning.paas.seen import (
    MANAGER,
    GivenElement,
    HandOverSeen,
    SetSeen,
    elements_of,
    given_by,
    is_prepared,
    nobodys,
    told_type,
)
from tenantry.model import limits
from tenantry.model.conditions import condition, find_condition
from tenantry.model.difference import entries_of
from tenantry.model.identifiers import digest
from tenantry.model.kinds import name_metadata, object_of
from tenantry.model.paas.declared import Paas
from tenantry.model.paas.names import HAND_OVER_PART, PAAS, PAAS_CONFIG
from tenantry.model.paas.status import PaasProblem, part_given_up, part_report
from tenantry.model.plan import NOTHING, Apply, Plan, Refusal, plan_of
from tenantry.model.refusals import REASONS, fixes, message_of, text_of

FIXES = fixes(PAAS_HAND_OVER, invalid="have an administrator correct the custom fields of the capability in the PaasConfig")
DONE = "all capabilities are handed over"
UNKNOWN_ELEMENT = "UnknownElement"
_BETWEEN = "; "


def report_set(seen: SetSeen, refusals: Sequence[Refusal]) -> Plan:
    """A condition on the PaasConfig while the ApplicationSet has elements that no Paas has; refusals are told on each Paas.

    Who tells of a PaasConfig as a whole joins it into Warnings, with an Event.
    """
    del refusals
    on, type_ = seen.config_live, told_type(seen.namespace, seen.name)
    manager = f"{MANAGER}-{digest(seen.namespace, seen.name)}"
    if on is None:
        return NOTHING
    names = [repr(each) for each in nobodys(seen)]
    if not names and not entries_of(on, manager, "status"):
        return NOTHING
    text = f"ApplicationSet {seen.namespace}/{seen.name} has elements of {limits.few(names)}, and there is no such Paas"
    problem = (UNKNOWN_ELEMENT, f"{text}: take them out, or make that Paas")
    standing = find_condition(on, type_) or {}
    same = (standing.get("reason"), standing.get("message")) == problem
    # What is told does not follow from the PaasConfig: a change of that is no reason to write as many statuses as there are sets.
    generation = standing.get("observedGeneration", 0) if same else on["metadata"].get("generation", 0)
    told = [condition(type_, "True", *problem, generation)] if names else []
    body = object_of(PAAS_CONFIG, name_metadata(on), **({"status": {"conditions": told}} if told else {}))
    return plan_of(Apply(PAAS_CONFIG, body, on, subresource="status", manager=manager))


def is_missing(seen: HandOverSeen, given: GivenElement) -> bool:
    """Whether an element is not as it is to be, although its ApplicationSet is there."""
    live = (seen.sets or {}).get(given.application_set)
    return live is not None and given.element is not None and given.element not in elements_of(live)


def report_paas(seen: HandOverSeen, refusals: Sequence[Refusal]) -> Plan:
    """The condition of the part; the old one stays until the run of an ApplicationSet has been seen."""
    paas = seen.paas
    if paas is None:
        return NOTHING
    if paas.deleted:
        problems = [_refused(paas, each) for each in refusals]
        told = part_report(PAAS, paas.live, HAND_OVER_PART, problems, [], manager=MANAGER, done=DONE)
        return plan_of(told) if problems else NOTHING
    every = given_by(paas, seen.config)
    if seen.config is None and is_prepared(paas):
        text = "no PaasConfig is active, so elements of ApplicationSets stay as they are: have an administrator make one"
        problem = PaasProblem("NoPaasConfig", text)
        return plan_of(part_report(PAAS, paas.live, HAND_OVER_PART, [problem], [], manager=MANAGER, done=DONE))
    if not every and not seen.left and not refusals:
        given_up = part_given_up(paas.live, HAND_OVER_PART, manager=MANAGER)
        return plan_of(given_up) if given_up is not None else NOTHING
    if not refusals and any(is_missing(seen, each) and each.application_set not in seen.refused for each in every):
        return NOTHING
    problems = [*_problems(seen, paas, every), *(_refused(paas, each) for each in refusals)]
    warnings = list(_warnings(seen, every))
    return plan_of(part_report(PAAS, paas.live, HAND_OVER_PART, problems, warnings, manager=MANAGER, done=DONE))


def _problems(seen: HandOverSeen, paas: Paas, every: Sequence[GivenElement]) -> Iterator[PaasProblem]:
    assert seen.config is not None
    place = seen.config.argo_namespace
    for given in every:
        path = f"spec.capabilities[{given.capability}].custom_fields"
        for name in given.unknown:
            text = f"{path}[{name}]: the PaasConfig knows no such field, and it is left out: remove it"
            yield PaasProblem("UnknownCustomField", text)
        for name in given.missing:
            text = f"{path}[{name}]: the PaasConfig requires it, and an element that is there stays as it was: set it"
            yield PaasProblem("RequiredField", text)
        if seen.sets is None:
            continue
        if not place:
            text = f"capability {given.capability} has an applicationset, and the PaasConfig no clusterwide_argocd_namespace"
            yield PaasProblem("ApplicationSetMissing", f"{text}: have an administrator set it")
        elif seen.sets.get(given.application_set) is None:
            text = f"ApplicationSet {place}/{given.application_set} of capability {given.capability} is not there"
            yield PaasProblem("ApplicationSetMissing", f"{text}: have an administrator make it, or correct the PaasConfig")
        elif is_missing(seen, given) and given.application_set in seen.refused:
            yield _refused(paas, seen.refused[given.application_set])


def _refused(paas: Paas, refusal: Refusal) -> PaasProblem:
    standing = message_of(paas.live, HAND_OVER_PART, generation=paas.generation)
    return PaasProblem(REASONS[refusal.cause], text_of(refusal, FIXES, standing, separator=_BETWEEN))


def _warnings(seen: HandOverSeen, every: Sequence[GivenElement]) -> Iterator[PaasProblem]:
    if seen.sets is None:
        for given in every:
            text = f"capability {given.capability} is not handed over, since ApplicationSets are not served"
            yield PaasProblem("HandOverUnavailable", f"{text}: have an administrator install Argo CD")
