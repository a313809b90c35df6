"""What the TenancyProfile says of policies: which are there, and what to do about those that are not as they are to be (3.7)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from lock_enforcement import NAME
from lock_enforcement.policies.seen import PoliciesSeen, PolicyState, policy_states, unserved_rows
from tenantry.model import limits
from tenantry.model.conditions import condition
from tenantry.model.flux.names import TENANCY_PROFILE
from tenantry.model.kinds import EVENT, Object, name_metadata, object_of
from tenantry.model.names import field_manager
from tenantry.model.plan import NOTHING, Apply, Plan
from tenantry.model.standing import warning, warning_name

MANAGER = field_manager(f"{NAME}-policies")
"""Owns what the status says of policies, and nothing else of it."""
NOT_AS_WANTED = "PoliciesNotAsWanted"
NOT_SERVED = "ConsumerNotServed"
COMMAND = "tenantry profile apply --prune"
_WARNING_CHARACTERS = 1024
_SORTS: Sequence[tuple[str, Callable[[PolicyState], bool]]] = (
    ("missing", lambda each: each.wanted and not each.present),
    ("not bound", lambda each: each.wanted and each.present and not each.bound),
    ("edited, or of another release, profile or served version", lambda each: each.wanted and each.bound and _differs(each)),
    ("superfluous", lambda each: not each.wanted),
)


def _differs(state: PolicyState) -> bool:
    return state.present and not state.current


def problem_of(states: Sequence[PolicyState]) -> str:
    """What is not as it is to be, with the command that mends it; empty: nothing."""
    found = [(what, [each.name for each in states if holds(each)]) for what, holds in _SORTS]
    texts = [f"{what}: {limits.few(names, 5)}" for what, names in found if names]
    return f"{'; '.join(texts)}: run `{COMMAND}`" if texts else ""


def report_policies(seen: PoliciesSeen) -> Plan:
    """The status, and a Warning that is told once as long as it says the same."""
    live = seen.profile
    if live is None:
        return NOTHING
    states = policy_states(seen)
    problem = problem_of(states)
    body = object_of(TENANCY_PROFILE, name_metadata(live))
    body["status"] = {"conditions": _conditions(seen, states, problem), "policies": [_listed(each) for each in states]}
    if seen.asked.is_multi_tenant:
        mutates = seen.served.mutates
        body["status"] |= {
            "serviceAccountMode": seen.asked.account_mode(mutates=mutates),
            "onDenied": seen.asked.denial(mutates=mutates),
        }
    stages: list[tuple[Apply, ...]] = [(Apply(TENANCY_PROFILE, body, live, subresource="status", manager=MANAGER),)]
    if problem and policy_warning(seen) not in seen.told:
        by = (NAME, "policies", "Compare")
        stages.append((warning(live, policy_warning(seen), NOT_AS_WANTED, problem, None, seen.now, by=by),))
    return Plan(tuple(stages))


def not_told_yet(_: PoliciesSeen, plan: Plan) -> frozenset[Hashable]:
    """The Warning that would be new.  While policies are being applied each moment has another, and none is worth telling."""
    return frozenset(each.wanted["metadata"]["name"] for each in plan.writes() if isinstance(each, Apply) and each.kind == EVENT)


def policy_warning(seen: PoliciesSeen) -> str:
    """The name of the Warning; empty where there is nothing to warn of."""
    problem = problem_of(policy_states(seen))
    return warning_name(seen.profile, NOT_AS_WANTED, problem) if problem and seen.profile is not None else ""


def _conditions(seen: PoliciesSeen, states: Sequence[PolicyState], problem: str) -> list[Object]:
    generation = (seen.profile or {})["metadata"].get("generation")
    asked, rows = seen.asked, unserved_rows(seen)
    lacking = [each for each in states if each.wanted and not each.current]
    if not asked.is_multi_tenant:
        enforced = condition("Enforced", "False", "SingleTenant", "the profile enforces nothing", generation)
    elif asked.is_audit and not lacking:
        text = "what the profile denies is told, and nothing is refused"
        enforced = condition("Enforced", "False", "Audit", text, generation)
    elif lacking:
        enforced = condition("Enforced", "False", NOT_AS_WANTED, problem, generation)
    else:
        enforced = condition("Enforced", "True", "Enforced", "all policies of the profile count", generation)
    if problem:
        ready = condition("Ready", "False", NOT_AS_WANTED, problem, generation)
    elif rows:
        text = f"spec.consumers: not served: {limits.few(rows)}; install their CRDs, or take the rows away"
        ready = condition("Ready", "False", NOT_SERVED, text, generation)
    else:
        ready = condition("Ready", "True", "AsWanted", "the policies are those that the profile asks for", generation)
    return [enforced, ready]


def _listed(state: PolicyState) -> Object:
    found: Object = {"name": state.name, "present": state.present, "bound": state.bound, "current": state.current}
    if state.warnings:
        found["warnings"] = [each[:_WARNING_CHARACTERS] for each in state.warnings[: limits.PROBLEMS_SHOWN]]
    return found
