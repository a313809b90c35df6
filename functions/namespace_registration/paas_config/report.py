"""Conditions of PaasConfigs (1.4): which one is in use, what is wrong with it, and what of it has no effect.

A shared quota that cannot be made has a condition of its own on the PaasConfig, of a field manager of its own, because the run
for a quota knows of no other; the run for the PaasConfig joins them into HasErrors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from namespace_registration import NAME
from namespace_registration.paas_config.descriptor import CONFIGS
from namespace_registration.paas_config.mistakes import mistakes_in
from namespace_registration.paas_config.seen import MANAGER, UPSTREAM_FINALIZER, ConfigSeen, QuotaSeen, quota_name
from tenantry.model.conditions import condition
from tenantry.model.difference import entries_of
from tenantry.model.kinds import Object, finalizers_of, is_terminating, name_metadata, object_of
from tenantry.model.limits import few
from tenantry.model.paas.config import PaasConfig, config_of
from tenantry.model.paas.names import ACTIVE, HAS_ERRORS, PAAS_CONFIG, WARNINGS
from tenantry.model.paas.status import GOOD, PaasProblem, changed_problem, first_reason, message_about
from tenantry.model.plan import NOTHING, Apply, Plan, Refusal, plan_of
from tenantry.model.refusals import REASONS, first_of, fixes, message_of, text_of
from tenantry.model.standing import warning, warning_name

NOT_IN_USE = "NotInUse"
FOREIGN_CRD = "ForeignCRD"
ERRORS = (NOT_IN_USE, "QuotaConflict", *REASONS.values())
"""Reasons of errors, in the order in which one of several is chosen."""
WARNING_REASONS = ("IgnoredField", "NoQuota", "ClusterwideQuotaPerNamespace", "ClusterRoleMissing", "UnknownElement")
"""Reasons of warnings, in the same way."""
IGNORED = (
    "decryptKeySecret",
    "decryptKeyPaths",
    "exclude_appset_name",
    "groupsynclist",
    "groupsynclist_key",
    "ldap",
    "argoenabled",
    "debug",
    "components_debug",
)
"""Fields of opr-paas that have no use here."""
PARTS_PREFIX = "tenantry.dev/"
"""Of conditions that tell one problem of a PaasConfig: they are joined into HasErrors and Warnings."""
QUOTA_CONDITION = f"{PARTS_PREFIX}SharedQuota."
"""Of the condition of one shared quota; the rest is the capability."""
FIXES = fixes(CONFIGS, invalid="correct the quotas of this capability in the PaasConfig and in the Paas that have it")


# -- a PaasConfig ----------------------------------------------------------------------------------------------------


def report_config(seen: ConfigSeen, refusals: Sequence[Refusal]) -> Plan:
    """Active, HasErrors and Warnings."""
    del refusals  # of the removal of a finalizer: it is tried again, and the object itself shows it
    live = seen.live
    if live is not None and seen.foreign:
        return _foreign(seen, live) if seen.in_use == seen.name else NOTHING
    if live is None or (is_terminating(live) and set(finalizers_of(live)) <= {UPSTREAM_FINALIZER}):
        return NOTHING
    conditions = _conditions(seen, live)
    event = changed_problem(live, conditions, about=(ACTIVE, HAS_ERRORS, WARNINGS))
    wanted = object_of(PAAS_CONFIG, name_metadata(live), status={"conditions": conditions})
    return plan_of(Apply(PAAS_CONFIG, wanted, live, subresource="status", event=event, manager=MANAGER))


def _foreign(seen: ConfigSeen, live: Object) -> Plan:
    """A Warning alone: the conditions are those of whoever the CRDs are of."""
    command = " ".join(["kubectl replace", *(f"-f knative/crds/{each}.yaml" for each in seen.foreign)])
    note = (
        f"{few(seen.foreign)}: these kinds are served by CRDs of another system, so nothing is done for Paas: stop that system, "
        f"then replace them with `{command}`; all objects stay"
    )
    by = (NAME, "paas_config", "Report")
    return plan_of(warning(live, foreign_event(live), FOREIGN_CRD, note, seen.event, seen.now, by=by))


def foreign_event(live: Object) -> str:
    """The name of the Event that says that the CRDs are another system's."""
    return warning_name(live, FOREIGN_CRD, "")


def _conditions(seen: ConfigSeen, live: Object) -> list[Object]:
    generation = live["metadata"].get("generation", 0)
    unused = _unused(seen, live)
    errors = [unused] if unused is not None else [*mistakes_in(config_of(live)), *_told(live, "False")]
    warnings = [] if unused is not None else [*_warnings(seen, live), *_told(live, "True")]
    active = (
        condition(ACTIVE, "True", GOOD, "this PaasConfig is in use", generation)
        if unused is None
        else condition(ACTIVE, "False", unused.reason, unused.text, generation)
    )
    return [
        active,
        _condition(HAS_ERRORS, errors, ERRORS, "no errors", generation),
        _condition(WARNINGS, warnings, WARNING_REASONS, "every field is used as it is", generation),
    ]


def _condition(type_: str, problems: list[PaasProblem], order: Sequence[str], none: str, generation: int) -> Object:
    reason = first_reason(problems, order)
    return condition(type_, "True" if problems else "False", reason, message_about(problems) or none, generation)


def _unused(seen: ConfigSeen, live: Object) -> PaasProblem | None:
    """Why a PaasConfig is without effect."""
    if is_terminating(live):
        return PaasProblem(NOT_IN_USE, "this PaasConfig is being deleted, and has no effect any more")
    if seen.in_use != seen.name:
        return PaasProblem(
            NOT_IN_USE, f"PaasConfig {seen.in_use} is older and in use; this one has no effect: delete one of them"
        )
    return None


def _told(live: Object, status: str) -> Iterator[PaasProblem]:
    """What conditions of others on the object report: errors are False, and warnings True, which their types end with."""
    for each in (live.get("status") or {}).get("conditions") or ():
        warns = str(each.get("type")).endswith(WARNINGS)
        if str(each.get("type")).startswith(PARTS_PREFIX) and each.get("status") == status and warns == (status == "True"):
            yield PaasProblem(str(each.get("reason")), str(each.get("message")))


def _warnings(seen: ConfigSeen, live: Object) -> Iterator[PaasProblem]:
    spec, config = live.get("spec") or {}, config_of(live)
    if ignored := [f"spec.{name}" for name in IGNORED if spec.get(name) is not None]:
        yield PaasProblem("IgnoredField", f"{few(ignored)}: not used here, and may be removed")
    if unlimited := _unlimited(config):
        text = f"{few(unlimited)}: without defaults the namespaces have no quota, unless the Paas has one for the capability"
        yield PaasProblem("NoQuota", text)
    wide = [f"spec.capabilities[{name}]" for name, each in config.capabilities.items() if each.clusterwide and not each.external]
    if wide and not seen.quotas_served:
        text = (
            f"{few(wide)}: this cluster has no ClusterResourceQuota, so each namespace has the value of its Paas, "
            f"not above max; min and ratio are not used"
        )
        yield PaasProblem("ClusterwideQuotaPerNamespace", text)
    if seen.missing_roles:
        text = f"ClusterRole {few(seen.missing_roles)}: bound, but not there: make it, or correct the name in this PaasConfig"
        yield PaasProblem("ClusterRoleMissing", text)


def _unlimited(config: PaasConfig) -> list[str]:
    return [
        f"spec.capabilities[{name}].quotas" for name, each in config.capabilities.items() if not (each.defaults or each.external)
    ]


# -- a shared quota --------------------------------------------------------------------------------------------------


def report_quota(seen: QuotaSeen, refusals: Sequence[Refusal]) -> Plan:
    """The condition of a shared quota on the PaasConfig while it cannot be made; without one there is nobody to tell."""
    on = seen.config_live
    if on is None:
        return NOTHING
    type_, manager = f"{QUOTA_CONDITION}{seen.capability}", f"{MANAGER}-{quota_name(seen.capability)}"
    problem = _problem(seen, first_of(refusals), on, type_)
    if problem is None and not entries_of(on, manager, "status"):
        return NOTHING
    generation = on["metadata"].get("generation", 0)
    conditions = [condition(type_, "False", *problem, generation)] if problem is not None else []
    status = {"status": {"conditions": conditions}} if conditions else {}
    event = changed_problem(on, conditions, about=(type_,))
    wanted = object_of(PAAS_CONFIG, name_metadata(on), **status)
    return plan_of(Apply(PAAS_CONFIG, wanted, on, subresource="status", event=event, manager=manager))


def _problem(seen: QuotaSeen, refusal: Refusal | None, on: Object, type_: str) -> PaasProblem | None:
    if seen.live is not None and not seen.ours and seen.amounts:
        name = quota_name(seen.capability)
        text = (
            f"ClusterResourceQuota {name} exists and is not the shared quota of capability {seen.capability}, which is missing: "
            f"delete it, or name the capability otherwise"
        )
        return PaasProblem("QuotaConflict", text)
    if refusal is None:
        return None
    reason = REASONS[refusal.cause]
    return PaasProblem(reason, text_of(refusal, FIXES, message_of(on, type_, reason)))
