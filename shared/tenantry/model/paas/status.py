"""Conditions of Paas (1.4): one for each part, by the function that does it, and those that people wait for, from the parts.

Each function writes the condition of its part, and another one with ``Warnings`` appended while there are any; with its own field
manager, in one apply: what it leaves out goes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from tenantry.model import limits
from tenantry.model.conditions import condition, find_condition
from tenantry.model.difference import entries_of
from tenantry.model.kinds import Kind, Object, finalizers_of, name_metadata, object_of
from tenantry.model.paas.config import PaasConfig
from tenantry.model.paas.declared import Paas
from tenantry.model.paas.names import (
    ACCOUNTS_FINALIZER,
    ACCOUNTS_PART,
    HAND_OVER_FINALIZER,
    HAND_OVER_PART,
    HAS_ERRORS,
    NAMESPACES_PART,
    PAAS,
    PARTS,
    READY,
    RIGHTS_PART,
    WARNINGS,
)
from tenantry.model.plan import Apply, KubernetesEvent

GOOD = "Reconciling"
"""The reason of success; upstream's word."""
_BETWEEN = "; "


class PaasProblem(NamedTuple):
    """What is wrong: reason, and a text that names the object and the fix."""

    reason: str
    text: str


def as_told(live: Object, types: Iterable[str]) -> Hashable:
    """What conditions of these types say, without when that began: for states that decisions rest on."""
    found = ((find_condition(live, type_) or {}) for type_ in types)
    return tuple(tuple(each.get(part) for part in ("status", "reason", "message", "observedGeneration")) for each in found)


def first_reason(problems: Iterable[PaasProblem], order: Sequence[str]) -> str:
    """The reason of a condition about several problems: the first in the order of the specification."""
    reasons = {each.reason for each in problems}
    return next((reason for reason in order if reason in reasons), min(reasons, default=GOOD))


ERRORS = (
    "NoPaasConfig",
    "InvalidName",
    "InvalidLabelValue",
    "InvalidGroup",
    "NamespaceConflict",
    "QuotaConflict",
    "GroupConflict",
    "GroupRefused",
    "GroupUsersBlocked",
    "BindingConflict",
    "ClusterRoleBindingConflict",
    "ArgoPolicyConflict",
    "UnknownRole",
    "UnknownCapability",
    "UnknownGroup",
    "UnknownCustomField",
    "RequiredField",
    "ApplicationSetMissing",
    "QuotaExceeded",
    "AdmissionDenied",
    "RightMissing",
    "InvalidConfiguration",
)
"""Reasons of errors, in the order in which one of several is chosen."""
WARNING_REASONS = (
    "UnknownRole",
    "UnknownCapability",
    "QueryAndUsers",
    "GroupUsersDiscouraged",
    "GroupAPIMissing",
    "SecretsIgnored",
    "ProtectedLabel",
    "ExtraPermissionsNotConfigured",
    "ClusterRoleMissing",
    "NoQuota",
    "QuotaShareZero",
    "RequestsAboveLimits",
    "HandOverUnavailable",
    "Leftover",
)
"""Reasons of warnings, in the same way."""


def message_about(problems: Iterable[PaasProblem]) -> str:
    """Every problem, sorted, each once, as far as a condition has room."""
    texts = sorted({each.text for each in problems})
    shown = limits.few(texts, between=_BETWEEN, last=_BETWEEN)
    for most in range(len(texts) - 1, 0, -1):
        if len(shown) <= limits.MESSAGE_CHARACTERS:
            break
        shown = limits.few(texts, most, between=_BETWEEN, last=_BETWEEN)
    return shown


def part_conditions(
    part: str, errors: Sequence[PaasProblem], warnings: Sequence[PaasProblem], generation: int, *, done: str
) -> list[Object]:
    """The conditions of a part: complete or not, and its warnings while there are any; ``done`` is the message of success."""
    good = not errors
    reason = first_reason(errors, ERRORS)
    made = [condition(part, "True" if good else "False", reason, done if good else message_about(errors), generation)]
    if warnings:
        reason = first_reason(warnings, WARNING_REASONS)
        made.append(condition(f"{part}{WARNINGS}", "True", reason, message_about(warnings), generation))
    return made


def changed_problem(live: Object, conditions: Iterable[Object], *, about: Iterable[str]) -> KubernetesEvent | None:
    """The Event about conditions to be written: a Warning when a problem begins or changes, ``Healed`` when the last one ends.

    Args:
        live: the object as observed.
        conditions: all that will stand of the types in ``about``.
        about: types of conditions that report problems: a part, and the same with ``Warnings`` appended.
    """
    wanted = {each["type"]: each for each in conditions}

    def problem(found: Mapping[str, object] | None, type_: str) -> tuple[object, object] | None:
        bad = "True" if type_.endswith((WARNINGS, HAS_ERRORS)) else "False"
        return (found["reason"], found["message"]) if found is not None and found.get("status") == bad else None

    before = {type_: problem(find_condition(live, type_), type_) for type_ in about}
    now = {type_: problem(wanted.get(type_), type_) for type_ in before}
    for type_, found in now.items():
        if found is not None and found != before[type_]:
            return KubernetesEvent(live, str(found[0]), str(found[1]), "Report", "Warning")
    if any(before.values()) and not any(now.values()):
        return KubernetesEvent(live, "Healed", "the problem that was reported here is gone", "Report")
    return None


def part_report(
    kind: Kind,
    live: Object,
    part: str,
    errors: Sequence[PaasProblem],
    warnings: Sequence[PaasProblem],
    *,
    manager: str,
    done: str,
    more: Mapping[str, object] | None = None,
) -> Apply:
    """The status of one part on a Paas or a PaasNS, with its Event; ``more`` are further fields that the manager owns."""
    conditions = part_conditions(part, errors, warnings, live["metadata"].get("generation", 0), done=done)
    wanted = object_of(kind, name_metadata(live), status={"conditions": conditions, **(more or {})})
    event = changed_problem(live, conditions, about=(part, f"{part}{WARNINGS}"))
    return Apply(kind, wanted, live, subresource="status", event=event, manager=manager)


def part_given_up(live: Object, part: str, *, manager: str) -> Apply | None:
    """The end of what a part tells on a Paas that it has nothing to do with any more; None where it tells nothing."""
    types = (part, f"{part}{WARNINGS}")
    if all(find_condition(live, each) is None for each in types) or not entries_of(live, manager, "status"):
        return None
    event = changed_problem(live, (), about=types)
    return Apply(PAAS, object_of(PAAS, name_metadata(live)), live, subresource="status", event=event, manager=manager)


def due_parts(paas: Paas, config: PaasConfig | None) -> tuple[str, ...]:
    """The parts that Ready waits for (1.4)."""
    due = {NAMESPACES_PART, RIGHTS_PART}
    finalizers = finalizers_of(paas.live)
    known = [config.capabilities[name] for name in paas.enabled if name in config.capabilities] if config is not None else []
    given = [config.permissions(name, extra=each.extra_permissions) for name, each in paas.enabled.items()] if config else []
    if ACCOUNTS_FINALIZER in finalizers or any(roles for each in given for roles in each.values()):
        due.add(ACCOUNTS_PART)
    if HAND_OVER_FINALIZER in finalizers or any(each.application_set for each in known):
        due.add(HAND_OVER_PART)
    return tuple(part for part in PARTS if part in due)


def overall(paas: Paas, parts: Sequence[Object], due: Sequence[str]) -> list[Object] | None:
    """Ready, HasErrors and Warnings from the conditions of the parts; None while what stands is to be left as it is.

    ``parts`` are the conditions of all parts as they will be.  While a part has not seen the generation, the old value stays.
    Unknown is a Paas that never had one, and one whose error has ended before each part has spoken once.
    """
    found = {each["type"]: each for each in parts}
    errors = [found[part] for part in due if found.get(part, {}).get("status") == "False"]
    seen = all(found.get(part, {}).get("observedGeneration") == paas.generation for part in due)
    if not seen:
        waits = [part for part in due if part not in found]
        standing = find_condition(paas.live, READY)
        if standing is not None and (standing["status"] == "True" or not waits or errors):
            return None
        if waits and not errors:
            text = f"waits for {limits.few([part.rpartition('/')[2] for part in waits])}"
            return [condition(type_, "Unknown", GOOD, text, paas.generation) for type_ in (READY, HAS_ERRORS)]
    warned = [found[name] for part in PARTS if (name := f"{part}{WARNINGS}") in found]
    good, text = not errors, _joined(errors)
    reason = errors[0]["reason"] if errors else GOOD
    made = [
        condition(READY, "True" if good else "False", reason, text or "everything that is declared is there", paas.generation),
        condition(HAS_ERRORS, "False" if good else "True", reason, text or "no errors", paas.generation),
    ]
    if warned:
        made.append(condition(WARNINGS, "True", warned[0]["reason"], _joined(warned), paas.generation))
    else:
        made.append(condition(WARNINGS, "False", GOOD, "nothing was ignored or replaced", paas.generation))
    return made


def _joined(conditions: Iterable[Object]) -> str:
    """The messages of several conditions as one, cut where a condition ends."""
    return _BETWEEN.join(each["message"] for each in conditions)[: limits.MESSAGE_CHARACTERS]
