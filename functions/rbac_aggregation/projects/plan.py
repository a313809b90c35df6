"""Plans and conditions for the RoleBindings of a release: pure functions from what was observed to writes.

Sources of the rules: spec section 5 with its [R] lines and hpo-58 to hpo-68.  A Role in a release namespace with the labels
of its release and of a level gets one RoleBinding with the Role's name, for the Users and Groups that bindings of the
registration namespace or of the cluster name for the level's ClusterRole.  Levels are independent of each other, and so
are Roles: what is wrong with one holds up no other.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace

from rbac_aggregation.projects.claims import configured_release
from rbac_aggregation.projects.descriptor import RELEASES
from rbac_aggregation.projects.levels import Level, Subjects, change_digest, level_roles, levels_of
from rbac_aggregation.projects.seen import (
    MANAGER,
    RBAC_GROUP,
    ObservedRights,
    is_made_by_us,
    is_ours,
    owner_text,
    release_of,
    role_ref,
)
from tenantry.model import limits
from tenantry.model.conditions import find_condition
from tenantry.model.config import Config
from tenantry.model.difference import owns
from tenantry.model.kinds import (
    PROJECT_HELM_CHART,
    ROLE_BINDING,
    Object,
    declared,
    is_terminating,
    labels_of,
    object_of,
)
from tenantry.model.names import (
    AGGREGATE_FROM,
    BINDING_OF,
    CLEANUP,
    LEVEL_TAKEN_FROM,
    OPERATED,
    PROJECT_CHART,
    PROJECT_ID,
    ROLE_OF,
    ROLES_BOUND_CONDITION,
    WITHDRAWAL_ACCEPTED,
)
from tenantry.model.plan import NOTHING, Apply, Delete, KubernetesEvent, Plan, Refusal, Write, plan_of
from tenantry.model.refusals import REASONS, fixes, message_of, text_of
from tenantry.model.releases import NO_TARGETS, chart_key, claimants
from tenantry.model.standing import standing_condition

# -- what is wanted ------------------------------------------------------------------------------------------


def wanted_of(seen: ObservedRights, config: Config) -> dict[str, tuple[str, Level]]:
    """For each Role that is to be bound: its level, and the people who have that."""
    if seen.claim is None or seen.claim.release != seen.release or _over(seen.claim.chart):
        return {}
    levels = {
        level: replace(found, people=found.people[: limits.PEOPLE])
        for level, found in levels_of(seen, config).items()
        if found.people
    }
    asked = {role["metadata"]["name"]: labels_of(role).get(AGGREGATE_FROM, "") for role in seen.roles}
    return {name: (level, levels[level]) for name, level in asked.items() if level in levels}


def _over(chart: Object) -> str:
    """Why the release of a ProjectHelmChart that has it is being taken away; empty when it is not (spec 3.4, 4.5)."""
    if CLEANUP in labels_of(chart):
        return "an uninstallation asks for clean-up"
    if (chart.get("status") or {}).get("status") == NO_TARGETS:
        return "its project has no namespace"
    return ""


def state_of_chart(chart: Object) -> Hashable:
    """What of a ProjectHelmChart rights rest on, and what tells that the namespace of its release is another's now."""
    status: Object = chart.get("status") or {}
    return declared(chart), status.get("releaseName"), status.get("status"), repr(find_condition(chart, ROLES_BOUND_CONDITION))


def intent(seen: ObservedRights, config: Config) -> Hashable:
    """Everything that decides who gets which right; while it is the same, the same is wanted."""
    chart = None if seen.claim is None else seen.claim.chart
    holder = chart and (chart_key(chart), chart["metadata"]["uid"], (chart.get("spec") or {}).get("helmApiVersion"))
    return holder, tuple(sorted(wanted_of(seen, config).items()))


# -- bindings ------------------------------------------------------------------------------------------------


def is_untouched(binding: Object) -> bool:
    """Whether nobody but us has written to a binding of ours: it is as we made it."""
    managers = {entry.get("manager") for entry in binding["metadata"].get("managedFields") or ()}
    labels = (OPERATED, PROJECT_ID, BINDING_OF)
    return (
        managers == {MANAGER}
        and owns(binding, MANAGER, "subjects")
        and all(owns(binding, MANAGER, "metadata", "annotations", key) for key in (PROJECT_CHART, LEVEL_TAKEN_FROM))
        and all(owns(binding, MANAGER, "metadata", "labels", label) for label in labels)
    )


def plan_release(seen: ObservedRights, config: Config) -> Plan:
    """One RoleBinding for each Role that has people; the rest of ours goes, where it is certain that it should."""
    if seen.namespace is None or is_terminating(seen.namespace):
        return NOTHING
    in_force = _in_force(seen, config)
    wanted = wanted_of(seen, config) if in_force else {}
    live = {binding["metadata"]["name"]: binding for binding in seen.bindings}
    writes: list[Write] = []
    for name, (level, found) in sorted(wanted.items()):
        writes += _bind(seen, name, level, found, live.get(name))
    for name, binding in sorted(live.items()):
        if name in wanted or not is_ours(binding) or is_terminating(binding):
            continue
        if release_of(binding, config) == seen.release.name and (in_force or _is_abandoned(seen, binding, config)):
            note = f"Role {name} is not bound any more: {_why(seen, name, config)}"
            writes.append(Delete(ROLE_BINDING, binding, KubernetesEvent(binding, "RoleUnbound", note, "Unbind")))
    return plan_of(*writes)


def _in_force(seen: ObservedRights, config: Config) -> bool:
    """Whether the set of bindings here is ours to decide: the release is here and the namespace is really its own."""
    claim, labels = seen.claim, labels_of(seen.namespace)
    if claim is None or claim.release != seen.release or seen.namespace is None:
        return False
    # Where releases have no namespaces of their own it is the registration namespace.
    return not config.dedicated or (OPERATED in labels and labels.get(PROJECT_ID) == claim.project)


def _is_abandoned(seen: ObservedRights, binding: Object, config: Config) -> bool:
    at_home = config.dedicated and seen.release.namespace == seen.release.name
    if not at_home and not is_made_by_us(binding):
        return False  # a copy of one of ours in another namespace is somebody's own
    owner = owner_text(binding)
    if owner:
        return owner in seen.given_up
    return not seen.charts and bool(claimants(seen.release.name, config))


def _why(seen: ObservedRights, name: str, config: Config) -> str:
    if not _in_force(seen, config):
        return f"release {seen.release.name} is not here any more"
    assert seen.claim is not None
    if over := _over(seen.claim.chart):
        return over
    role = next((found for found in seen.roles if found["metadata"]["name"] == name), None)
    if role is None:
        return "the Role is gone, or has lost its label"
    level = labels_of(role).get(AGGREGATE_FROM, "")
    return f"nobody has level {level}" if level in level_roles(config) else f"level {level!r} is off"


def _bind(seen: ObservedRights, name: str, level: str, found: Level, live: Object | None) -> Iterator[Write]:
    assert seen.claim is not None
    metadata = {
        "name": name,
        "namespace": seen.release.namespace,
        "labels": {OPERATED: "true", PROJECT_ID: seen.claim.project, BINDING_OF: seen.release.name},
        "annotations": {PROJECT_CHART: str(chart_key(seen.claim.chart)), LEVEL_TAKEN_FROM: f"{level}={found.cluster_role}"},
    }
    subjects = [{"apiGroup": RBAC_GROUP, "kind": kind, "name": subject} for kind, subject in found.people]
    wanted = object_of(ROLE_BINDING, metadata, roleRef=role_ref(name), subjects=subjects)
    if live is not None and not is_ours(live):
        return  # report_release reports it (hpo-67)
    if live is not None and live.get("roleRef") != wanted["roleRef"]:
        # A reference cannot be changed; the next run makes it anew.
        yield Delete(
            ROLE_BINDING, live, KubernetesEvent(live, "Restored", f"RoleBinding {name} referred to another Role", "Recreate")
        )
        return
    reason = "RoleBound" if live is None else "RoleBindingUpdated"
    event = KubernetesEvent(
        live or wanted, reason, f"Role {name} is bound to the people of level {level}: {_listed(found.people)}", "Bind"
    )
    yield Apply(ROLE_BINDING, wanted, live, create_only=True, event=event)


def _listed(people: Subjects) -> str:
    return limits.few([f"{kind} {name}" for kind, name in people], 8)


# -- the condition -------------------------------------------------------------------------------------------


RightProblem = tuple[str, str]
"""The reason of the condition, and a sentence with the fix for the project owner."""

_MORE = re.compile(r" \(and \d+ more\)$")
_REASONS = {**REASONS, "invalid": "InvalidRoleBinding"}
_FIXES = fixes(
    RELEASES,
    quota="raise the ResourceQuota of the release namespace or delete what is not needed",
    invalid="correct the Role or the subjects of the bindings in the registration namespace",
)


def problems_of(seen: ObservedRights, refusals: Sequence[Refusal], config: Config) -> list[RightProblem]:
    """Everything that keeps a Role of the release from its people, in a fixed order."""
    found: list[RightProblem] = []
    live = {binding["metadata"]["name"]: binding for binding in seen.bindings}
    where, named = seen.release.namespace, level_roles(config)
    for name in wanted_of(seen, config):
        if name in live and not is_ours(live[name]):
            text = (
                f"RoleBinding {where}/{name} exists and was not made by Tenantry, so Role {name} is not bound: delete that "
                "RoleBinding, or give the Role another name"
            )
            found.append(("RoleBindingConflict", text))
    for level, level_found in sorted(levels_of(seen, config).items()):
        if level_found.waiting:
            found.append(("WithdrawalWaits", _withdrawal(level, level_found, seen, config)))
        elif named[level] in seen.missing:
            fix = f"create it, or correct {_line(level)}"
            text = f"ClusterRole {named[level]} does not exist, so nobody is given level {level}: {fix}"
            found.append(("ClusterRoleMissing", text))
        if len(level_found.people) > limits.PEOPLE:
            text = (
                f"more than {limits.PEOPLE:,} people have level {level}: the Roles in {where} are bound to the first "
                f"{limits.PEOPLE:,} by kind and name; bind groups in place of users in the registration namespace"
            )
            found.append(("TooManyPeople", text))
    for role in seen.roles:
        asked = labels_of(role).get(AGGREGATE_FROM)
        if asked not in ("admin", "edit", "view"):
            text = (
                f"Role {where}/{role['metadata']['name']} has {'no label' if asked is None else f'the value {asked!r} of label'} "
                f"{AGGREGATE_FROM}, so it is not bound: use admin, edit or view, or remove the label {ROLE_OF}"
            )
            found.append(("UnknownLevel", text))
    for refusal in refusals:
        if refusal.key.kind == ROLE_BINDING.kind:
            reason = _REASONS[refusal.cause]
            standing = message_of(seen.claim.chart, ROLES_BOUND_CONDITION, reason) if seen.claim is not None else ""
            found.append((reason, text_of(refusal, _FIXES, _MORE.sub("", standing))))
    return sorted(set(found))


def _line(level: str) -> str:
    return f"helmProjectOperator.releaseRoleBindings.clusterRoleRefs.{level}"


def _withdrawal(level: str, found: Level, seen: ObservedRights, config: Config) -> str:
    """What another ClusterRole in the configuration would take, and what to do."""
    assert seen.claim is not None
    chart = seen.claim.chart
    why = "which does not exist" if found.waiting in seen.missing else "which nobody has here"
    return (
        f"level {level} would be taken from {len(found.people)} people: {_line(level)} is {found.waiting} now, {why}. They "
        f"keep it by ClusterRole {found.cluster_role}: {_listed(found.people)}. Correct that line, bind somebody to "
        f"{found.waiting} in namespace {chart['metadata']['namespace']}, or accept it: annotate this object with "
        f"{WITHDRAWAL_ACCEPTED}={change_digest(chart, config)}"
    )


def report_release(seen: ObservedRights, refusals: Sequence[Refusal], config: Config) -> Plan:
    """The condition on the ProjectHelmChart that has the release; one of ours on any that has not is taken off."""
    writes: list[Write] = []
    if seen.claim is not None and seen.claim.release == seen.release:
        in_force = _in_force(seen, config) and CLEANUP not in labels_of(seen.claim.chart)
        writes += _condition(seen.claim.chart, problems_of(seen, refusals, config) if in_force else [])
    for chart in seen.charts:
        holder = seen.claim is not None and chart_key(chart) == chart_key(seen.claim.chart)
        if not holder and configured_release(chart, config) in (None, seen.release):
            writes += _condition(chart, [])
    return plan_of(*writes)


def _condition(chart: Object, problems: Sequence[RightProblem]) -> list[Apply]:
    """The condition with the first problem, or the removal of ours."""
    problem = problems[0] if problems else None
    if len(problems) > 1:
        problem = (problems[0][0], f"{problems[0][1]} (and {len(problems) - 1} more)")
    over = ("RolesBound", "the problem with RoleBindings that was reported here is gone")
    return standing_condition(chart, PROJECT_HELM_CHART, ROLES_BOUND_CONDITION, problem, manager=MANAGER, over=over)
