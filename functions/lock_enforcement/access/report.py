"""What is told: conditions and Warnings of consumers, objects that an account may not write, and the list of violations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lock_enforcement import NAME
from lock_enforcement.access.seen import OURS, READY, ConsumerSeen, Violation, ViolationsSeen, is_our_condition
from tenantry.model.conditions import condition, find_condition
from tenantry.model.difference import entries_of
from tenantry.model.flux.names import ACCESS_DENIED, TENANCY_PROFILE
from tenantry.model.flux.profile import Profile
from tenantry.model.kinds import Object, is_terminating, name_metadata, object_of
from tenantry.model.names import field_manager
from tenantry.model.plan import NOTHING, Apply, Edit, Plan, Refusal, plan_of
from tenantry.model.standing import warning, warning_name

CLUSTER_SCOPED = "ClusterScopedResourceDenied"
LOCK_REFUSED = "AccessLockRefused"
LISTED = 100
"""Violations that the TenancyProfile lists (1.5)."""
MESSAGE_CHARACTERS = 4096
"""Of the message of one of them, as the CRD has it."""
VIOLATIONS_MANAGER = field_manager(f"{NAME}-violations")
"""Owns the list in the status of the TenancyProfile, and nothing else of it."""
_FIX = "correct the reference, or ask the owner of the source for access"


class ConsumerWarning(NamedTuple):
    """A Warning about a consumer; it is the same one while ``same`` is."""

    about: Object
    reason: str
    note: str
    same: str
    action: str

    @property
    def name(self) -> str:
        """Of the Event."""
        return warning_name(self.about, self.reason, self.same)


def denial_told(seen: ConsumerSeen) -> str:
    """The denial and its fix."""
    return f"{seen.decision.told}; {_FIX}"


def warnings_of(seen: ConsumerSeen) -> list[ConsumerWarning]:
    """What stands of a consumer: that it is denied, for each generation and decision once, and what its account may not write."""
    found = []
    if seen.is_denied and (seen.context.reports or seen.is_locked):
        generation = seen.live["metadata"].get("generation")
        note = denial_told(seen)
        found.append(ConsumerWarning(seen.live, ACCESS_DENIED, note, f"{generation}\n{note}", "Lock"))
    for kind, name in seen.refused:
        note = (
            f"{kind} {name} is cluster-scoped, and a tenant's account writes only what is in its namespace: take it out of the "
            "source, or have the platform apply it"
        )
        found.append(ConsumerWarning(seen.live, CLUSTER_SCOPED, note, f"{kind}/{name}", "Report"))
    return found


def refusal_name(seen: ConsumerSeen) -> str:
    """The name of the Warning that a lock could not be put on or taken off: once for each generation."""
    return warning_name(seen.live, LOCK_REFUSED, str(seen.live["metadata"].get("generation")))


def report_consumer(seen: ConsumerSeen | None, refusals: Sequence[Refusal]) -> Plan:
    """Conditions, then Warnings that are not there (2.2); or why it could not be locked or freed."""
    if seen is None:
        return NOTHING
    conditions = tuple(_conditions(seen))
    if is_terminating(seen.live):
        return plan_of(*conditions)
    warnings = warnings_of(seen)
    if refusals:
        note = f"the access lock could not be put on or taken off: {refusals[0].message}"
        warnings.append(ConsumerWarning(seen.live, LOCK_REFUSED, note, str(seen.live["metadata"].get("generation")), "Lock"))
    new = [each for each in warnings if each.name not in seen.told] if seen.open else []
    events = [warning(each.about, each.name, each.reason, each.note, None, seen.now, by=_by(each)) for each in new]
    stages = (conditions, tuple(events))
    return Plan(tuple(each for each in stages if each))


def _by(found: ConsumerWarning) -> tuple[str, str, str]:
    return NAME, "access", found.action


def _conditions(seen: ConsumerSeen) -> Iterator[Edit]:
    """One write of ``status``, on the state that was read: conditions of Flux are a list without keys (1.3)."""
    if not seen.has_status:
        return
    live = seen.live
    before: list[Object] = list((live.get("status") or {}).get("conditions") or ())
    if seen.is_denied and seen.is_locked:
        wanted = [_wanted(seen, each) for each in seen.conditions]
        if all(_says(find_condition(live, each["type"]), each) for each in wanted):
            return
        types = {each["type"] for each in wanted}
        after = [each for each in before if each.get("type") not in types] + wanted
    else:
        after = [each for each in before if not is_our_condition(each)]
        undecided = seen.decision.decision == "unknown" and not is_terminating(live)
        if undecided or seen.is_locked or after == before:
            return
    steps: list[Object] = [] if "status" in live else [{"op": "add", "path": "/status", "value": {}}]
    steps.append({"op": "add", "path": "/status/conditions", "value": after})
    yield Edit(seen.kind, live, tuple(steps), subresource="status")


def _wanted(seen: ConsumerSeen, type_: str) -> Object:
    generation = seen.live["metadata"].get("generation")
    made = condition(type_, "False" if type_ == READY else "True", ACCESS_DENIED, OURS + denial_told(seen), generation)
    before = find_condition(seen.live, type_) or {}
    since = before.get("lastTransitionTime") if before.get("status") == made["status"] else None
    return {**made, "lastTransitionTime": since or f"{seen.now[:19]}Z"}


def _says(found: Object | None, wanted: Object) -> bool:
    return found is not None and all(found.get(part) == wanted[part] for part in wanted if part != "lastTransitionTime")


def plan_violations(seen: ViolationsSeen) -> Plan:
    """The list in the status of the TenancyProfile: the first of all, and their number."""
    live = seen.profile
    if live is None:
        return NOTHING
    body = object_of(TENANCY_PROFILE, name_metadata(live))
    if Profile.of(live).is_multi_tenant:
        body["status"] = {
            "violationCount": len(seen.violations),
            "violations": [_listed(each) for each in seen.violations[:LISTED]],
        }
    elif not entries_of(live, VIOLATIONS_MANAGER, "status"):
        return NOTHING
    return plan_of(Apply(TENANCY_PROFILE, body, live, subresource="status", manager=VIOLATIONS_MANAGER))


def _listed(found: Violation) -> Object:
    return {
        "apiVersion": found.api_version,
        "kind": found.kind,
        "namespace": found.namespace,
        "name": found.name,
        "message": found.message[:MESSAGE_CHARACTERS],
    }
