"""Conditions of Paas and PaasNS: what is there, what is not and why, with the fix (1.4).

What a PaasNS asks for is told on the PaasNS, in the words of who may write it, and changes nothing of its Paas.  Ready, HasErrors
and Warnings of a Paas follow from the conditions of all parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from namespace_registration import NAME
from namespace_registration.paas.descriptor import MANAGER, PAAS_NAMESPACES
from namespace_registration.paas.labels import namespace_labels
from namespace_registration.paas.seen import OutsideSeen, PaasSeen, is_marked, left_namespaces
from namespace_registration.paas.wanted import Wanted, label_problem, name_problem, no_config, unknown_capability, wanted_of
from namespace_registration.quotas import requests_above_limits, zero_shares
from tenantry.model import limits
from tenantry.model.conditions import condition, find_condition
from tenantry.model.kinds import NAMESPACE, Object, finalizers_of, is_terminating, name_metadata, object_of
from tenantry.model.names import ADOPT
from tenantry.model.paas.declared import Paas, PaasNs
from tenantry.model.paas.names import (
    HAS_ERRORS,
    NAMESPACES_PART,
    OTHERS_FINALIZERS,
    PAAS,
    PAAS_FINALIZER,
    PAAS_NS,
    READY,
    RIGHTS_PART,
    WARNINGS,
    namespace_name,
)
from tenantry.model.paas.ours import is_ours
from tenantry.model.paas.status import (
    ERRORS,
    GOOD,
    WARNING_REASONS,
    PaasProblem,
    changed_problem,
    due_parts,
    first_reason,
    message_about,
    overall,
    part_conditions,
)
from tenantry.model.plan import NOTHING, Apply, Plan, Refusal, Write, plan_of
from tenantry.model.refusals import REASONS, fixes, message_of, text_of
from tenantry.model.standing import warning, warning_name

FIXES = fixes(
    PAAS_NAMESPACES,
    quota="raise the ResourceQuota, or delete what is not needed",
    invalid="correct what the Paas says for it",
)
_BETWEEN = "; "
_WARNED = f"{NAMESPACES_PART}{WARNINGS}"
_OVERALL = (READY, HAS_ERRORS, WARNINGS)
PAAS_GONE = "PaasGone"


def report_paas(seen: PaasSeen, refusals: Sequence[Refusal], project_label: str) -> Plan:
    """The status of a Paas and of its PaasNS; of a Paas that is gone, Warnings on the namespaces that it left."""
    if seen.paas is None:
        return plan_of(*_gone(seen))
    if seen.paas.deleted:
        return plan_of(*_finalizing(seen.paas, refusals))
    wanted = wanted_of(seen)
    errors, warnings = _problems(seen, seen.paas, wanted, refusals, project_label)
    writes: list[Write] = [_status(seen, seen.paas, wanted, errors, warnings, refusals)]
    writes += [_paas_ns_status(each, seen, seen.paas, wanted, refusals) for each in _reported(seen, seen.paas, wanted)]
    return plan_of(*writes, *_gone(seen))


# -- a Paas ------------------------------------------------------------------------------------------------


def _problems(
    seen: PaasSeen, paas: Paas, wanted: Wanted, refusals: Sequence[Refusal], project_label: str
) -> tuple[list[PaasProblem], list[PaasProblem]]:
    """Errors and warnings of a Paas; those of its PaasNS are not among them."""
    config, errors, warnings = seen.config, list[PaasProblem](), list[PaasProblem]()
    blocked = name_problem(paas, config)
    errors += [blocked] if blocked is not None else []
    errors += [no_config()] if config is None else []
    own = frozenset(name for name, place in wanted.places.items() if place.origin != "paasns")
    errors += [problem for name, problem in wanted.missing.items() if name in own]
    errors += wanted.conflicts.values()
    errors += [each for name in seen.counted if (each := label_problem(name, seen)) is not None]
    errors += [_refused(each, paas.live, NAMESPACES_PART) for each in refusals if _place_of(each) not in _asked_names(wanted)]
    if config is not None:
        labels = namespace_labels(paas, paas.name, config, project_label)
        errors += labels.errors
        warnings += labels.warnings
        warnings += _quota_warnings(paas, wanted, own if seen.quotas is None else frozenset())
        for name in paas.enabled:
            if name not in config.capabilities:
                told = errors if config.unknown_capability_policy == "Reject" else warnings
                told.append(unknown_capability(name))
    if paas.secrets:
        text = f"{limits.few(paas.secrets)}: encrypted texts are not used, and nothing is made of them: remove them"
        warnings.append(PaasProblem("SecretsIgnored", text))
    return errors, [*warnings, *_leftovers(seen, paas, wanted)]


def _asked_names(wanted: Wanted) -> frozenset[str]:
    return frozenset(name for name, place in wanted.places.items() if place.origin == "paasns")


def _place_of(refusal: Refusal) -> str:
    """The namespace that a refused write is of, or in; empty for other objects."""
    return refusal.key.name if refusal.key.kind == NAMESPACE.kind else refusal.key.namespace


def _refused(refusal: Refusal, on: Object, type_: str) -> PaasProblem:
    standing = message_of(on, type_, generation=on["metadata"].get("generation"))
    return PaasProblem(REASONS[refusal.cause], text_of(refusal, FIXES, standing, separator=_BETWEEN))


def _quota_warnings(paas: Paas, wanted: Wanted, divided: frozenset[str]) -> Iterator[PaasProblem]:
    """What is questionable about the quotas of a Paas; ``divided`` are the namespaces that have a share."""
    counted = sorted(name for name in wanted.stands if wanted.quota_of[name] == paas.name)
    if counted and not paas.quota:
        yield PaasProblem("NoQuota", f"namespaces {limits.few(counted)} have no quota: write spec.quota")
    for name in sorted(divided & set(counted)):
        for resource in zero_shares(wanted.hard.get(name, {})):
            text = f"namespace {name} has nothing of {resource}: raise spec.quota, or have fewer namespaces"
            if not zero_shares({resource: paas.quota[resource]}):  # what is written as 0 needs no telling
                yield PaasProblem("QuotaShareZero", text)
    asked = {"spec.quota": paas.quota, **{f"spec.capabilities[{name}].quota": each.quota for name, each in paas.enabled.items()}}
    for field, quota in asked.items():
        for resource in requests_above_limits(quota):
            yield PaasProblem(
                "RequestsAboveLimits", f"{field}: {resource} is above the limit of the same resource: raise the limit"
            )


def _leftovers(seen: PaasSeen, paas: Paas, wanted: Wanted) -> Iterator[PaasProblem]:
    """Namespaces that another system made for the Paas, and that it does not want: nobody deletes them (2.1, p-188)."""
    for name, live in sorted(seen.namespaces.items()):
        if name in wanted.places or is_terminating(live) or is_marked(live, paas) or not is_ours(live, paas.name, paas.uid):
            continue
        fix = "delete it" if name == paas.name else "delete it, or add it to spec.namespaces"
        yield PaasProblem("Leftover", f"{_leftover(name)}: {fix}")


def _leftover(name: str) -> str:
    return f"namespace {name} was made for this Paas by another system"


def told_leftover(paas: Paas, name: str) -> bool:
    """Whether a Paas was told of a namespace that another system made for it."""
    return _leftover(name) in ((find_condition(paas.live, _WARNED) or {}).get("message") or "")


def _status(
    seen: PaasSeen,
    paas: Paas,
    wanted: Wanted,
    errors: list[PaasProblem],
    warnings: list[PaasProblem],
    refusals: Sequence[Refusal],
) -> Apply:
    own = part_conditions(NAMESPACES_PART, errors, warnings, paas.generation, done="all namespaces and quotas are there")
    others = [each for each in _conditions(paas.live) if each["type"] not in (NAMESPACES_PART, _WARNED, *_OVERALL)]
    made = overall(paas, [*others, *own], due_parts(paas, seen.config))
    conditions = [*own, *(_kept(paas.live) if made is None else made)]
    refused = {_place_of(each) for each in refusals}
    status = {"conditions": conditions, "namespaces": sorted(wanted.stands - refused)}
    body = object_of(PAAS, name_metadata(paas.live), status=status)
    event = changed_problem(paas.live, own, about=(NAMESPACES_PART, _WARNED))
    return Apply(PAAS, body, paas.live, subresource="status", event=event, manager=MANAGER)


def _conditions(live: Object) -> list[Object]:
    found: list[Object] = (live.get("status") or {}).get("conditions") or []
    return found


def _kept(live: Object, types: Sequence[str] = _OVERALL) -> list[Object]:
    """Conditions as they stand: what an apply leaves out it gives up."""
    found = (find_condition(live, type_) for type_ in types)
    return [{name: value for name, value in each.items() if name != "lastTransitionTime"} for each in found if each is not None]


def _finalizing(paas: Paas, refusals: Sequence[Refusal]) -> Iterator[Write]:
    """What the deletion of a Paas waits for (1.4)."""
    finalizers = finalizers_of(paas.live)
    if PAAS_FINALIZER not in finalizers:
        return
    waits = [each for each in OTHERS_FINALIZERS if each in finalizers]
    texts = [f"waits for finalizer {each} to be removed by {each.rpartition('/')[2]}" for each in waits]
    texts += [_refused(each, paas.live, READY).text for each in refusals]
    if not texts:
        return
    ready = condition(READY, "False", "Finalizing", _BETWEEN.join(texts), paas.generation)
    conditions = [ready, *_kept(paas.live, (NAMESPACES_PART, _WARNED, HAS_ERRORS, WARNINGS))]
    status = {"conditions": conditions, **_standing(paas.live)}
    body = object_of(PAAS, name_metadata(paas.live), status=status)
    yield Apply(PAAS, body, paas.live, subresource="status", manager=MANAGER)


def _standing(live: Object) -> Object:
    status = live.get("status") or {}
    return {"namespaces": status["namespaces"]} if "namespaces" in status else {}


def _gone(seen: PaasSeen) -> Iterator[Write]:
    """Warnings on namespaces whose Paas exists no more: they stay until somebody decides (2.12)."""
    for live in left_namespaces(seen):
        name = gone_event(live)
        note = (
            f"the Paas that namespace {live['metadata']['name']} was made for exists no more, and the namespace stays: delete "
            f"it, or hand it to a Paas with the annotation {ADOPT}=<paas>"
        )
        yield warning(live, name, PAAS_GONE, note, seen.events.get(name), seen.now, by=(NAME, "paas", "Report"))


def gone_event(namespace: Object) -> str:
    """The name of the Event that says that the Paas of a namespace is gone."""
    return warning_name(namespace, PAAS_GONE, "")


# -- PaasNS ------------------------------------------------------------------------------------------------


def _reported(seen: PaasSeen, paas: Paas, wanted: Wanted) -> Iterator[PaasNs]:
    """The PaasNS that are told about: those in namespaces that stay."""
    staying = wanted.had | {name for name, live in seen.namespaces.items() if not is_marked(live, paas)}
    return (each for each in seen.asked if each.namespace in staying and not is_terminating(each.live))


def _paas_ns_status(each: PaasNs, seen: PaasSeen, paas: Paas, wanted: Wanted, refusals: Sequence[Refusal]) -> Apply:
    name = namespace_name(paas.name, each.name)
    errors, warnings = list(_paas_ns_errors(each, name, paas, wanted)), list[PaasProblem]()
    if each.key not in wanted.refused:
        errors += [_refused(refusal, each.live, READY) for refusal in refusals if _place_of(refusal) == name]
        if seen.quotas is None and seen.config is not None and (empty := zero_shares(wanted.hard.get(name, {}))):
            text = f"namespace {name} has nothing of {limits.few(empty)}: raise the quota of Paas {paas.name}"
            warnings.append(PaasProblem("QuotaShareZero", text))
    if each.secrets:
        text = f"{limits.few(each.secrets)}: encrypted texts are not used, and nothing is made of them: remove them"
        warnings.append(PaasProblem("SecretsIgnored", text))
    return _of_paas_ns(each, errors, warnings, name if not errors else "")


def _paas_ns_errors(each: PaasNs, name: str, paas: Paas, wanted: Wanted) -> Iterator[PaasProblem]:
    if each.key not in wanted.refused:
        place = wanted.places.get(name)
        if place is not None and (problem := wanted.missing.get(name)) is not None:
            yield problem
        return
    if each.paas not in ("", paas.name):
        text = f"spec.paas is {each.paas}, and namespace {each.namespace} is of Paas {paas.name}: make it anew with that"
        yield PaasProblem("NamespaceConflict", text)
        return
    place = wanted.places.get(name)
    if place is None:
        text = f"namespace {each.namespace} is not wanted by Paas {paas.name}: make the PaasNS in another of its namespaces"
    elif place.origin == "paasns":
        text = f"namespace {name} is that of PaasNS {place.asked_by}: choose another name"
    else:
        text = f"namespace {name} is in the spec of Paas {paas.name}: choose another name, or remove this PaasNS"
    yield PaasProblem("NamespaceConflict", text)


def _of_paas_ns(each: PaasNs, errors: Sequence[PaasProblem], warnings: Sequence[PaasProblem], namespace: str) -> Apply:
    """The status of a PaasNS; its rights in the namespace, which another function tells, are part of it."""
    conditions = _ready_of(each, errors) or _kept(each.live, (READY, HAS_ERRORS))
    told = find_condition(each.live, f"{RIGHTS_PART}{WARNINGS}")
    texts = [message_about(warnings)] if warnings else []
    texts += [told["message"]] if told is not None else []
    if texts:
        reason = first_reason(warnings, WARNING_REASONS) if warnings else told["reason"] if told is not None else GOOD
        conditions.append(condition(WARNINGS, "True", reason, _BETWEEN.join(texts), each.generation))
    else:
        conditions.append(condition(WARNINGS, "False", GOOD, "nothing was ignored or replaced", each.generation))
    status: Object = {"conditions": conditions, **({"namespace": namespace} if namespace else {})}
    body = object_of(PAAS_NS, name_metadata(each.live), status=status)
    event = changed_problem(each.live, conditions, about=(READY, WARNINGS))
    return Apply(PAAS_NS, body, each.live, subresource="status", event=event, manager=MANAGER)


def _ready_of(each: PaasNs, errors: Sequence[PaasProblem]) -> list[Object]:
    """Ready and HasErrors of a PaasNS; none while what stands is to be left as it is."""
    rights = find_condition(each.live, RIGHTS_PART)
    if errors:
        reason, text = first_reason(errors, ERRORS), message_about(errors)
    elif rights is None or rights.get("observedGeneration") != each.generation:
        if rights is not None and find_condition(each.live, READY) is not None:
            return []  # until it has spoken of this generation, too
        return [condition(type_, "Unknown", GOOD, "waits for Rights", each.generation) for type_ in (READY, HAS_ERRORS)]
    elif rights["status"] == "False":
        reason, text = rights["reason"], rights["message"]
    else:
        return [
            condition(READY, "True", GOOD, "everything that is declared is there", each.generation),
            condition(HAS_ERRORS, "False", GOOD, "no errors", each.generation),
        ]
    return [
        condition(READY, "False", reason, text, each.generation),
        condition(HAS_ERRORS, "True", reason, text, each.generation),
    ]


def report_outside(seen: OutsideSeen) -> Plan:
    """The status of a PaasNS in a namespace that no Paas has (p-42, p-110)."""
    each = seen.paas_ns
    if each is None:
        return NOTHING
    text = f"namespace {each.namespace} is not part of a Paas: make the PaasNS in a namespace of the Paas"
    return plan_of(_of_paas_ns(each, [PaasProblem("NamespaceConflict", text)], [], ""))
