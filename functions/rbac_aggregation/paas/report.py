"""What people have to know of the rights of a Paas: ``tenantry.dev/Rights`` on it, and on each PaasNS about its namespace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rbac_aggregation.paas.argo import conflicting_fields, policy_name, unfit_names
from rbac_aggregation.paas.descriptor import RIGHTS
from rbac_aggregation.paas.plan import bad_labels, plan_rest
from rbac_aggregation.paas.seen import (
    MANAGER,
    Seen,
    by_users,
    is_left,
    is_pending,
    rights_of,
    unknown_keys,
    user_problem,
    waits,
)
from tenantry.model import limits
from tenantry.model.kinds import ROLE_BINDING, Object, name_metadata, object_of
from tenantry.model.paas.config import PaasConfig
from tenantry.model.paas.declared import Paas, PaasNs
from tenantry.model.paas.groups import unknown_roles
from tenantry.model.paas.names import GROUP, PAAS, PAAS_NS, RIGHTS_PART
from tenantry.model.paas.status import PaasProblem, part_report
from tenantry.model.plan import NOTHING, Apply, Plan, Refusal
from tenantry.model.refusals import REASONS, fixes, message_of, text_of

DONE = "all groups are there and bound"
FIXES = fixes(RIGHTS, admission="change the admission policy", invalid="rename the group")
_BETWEEN = "; "


def report_paas(seen: Seen, refusals: Sequence[Refusal]) -> Plan:
    """What is left to withdraw after refusals, and the conditions; nothing while the run goes on, or namespaces are to come."""
    paas = seen.paas
    if paas is None:
        return NOTHING
    rest = plan_rest(seen, refusals)
    conditions = [] if seen.part else _conditions(seen, paas, refusals)
    # A plan within, so that what is refused there does not keep back what is told.
    return Plan((tuple([Plan((tuple(rest),)), *conditions] if rest else conditions),)) if rest or conditions else NOTHING


def _conditions(seen: Seen, paas: Paas, refusals: Sequence[Refusal]) -> list[Apply]:
    if paas.deleted:
        errors = [_refused(each, paas.live) for each in refusals]
        return [part_report(PAAS, paas.live, RIGHTS_PART, errors, (), manager=MANAGER, done=DONE)] if errors else []
    if not refusals and is_pending(seen) and seen.config is not None:
        return []
    told = [_of_paas_ns(seen, paas, each, refusals) for each in seen.asked.values()]
    found = [each for each in told if each is not None]
    if waits(seen):
        return found
    groups = [
        {"key": claim.key, "name": claim.name, "managed": claim.wants_object and claim.bound}
        for _, claim in sorted(seen.claims.items())
        if claim.name and (claim.problem is None or claim.problem.reason != "InvalidGroup")  # such a text may be no YAML
    ]
    errors, warnings = list(_errors(seen, paas, refusals)), list(_warnings(seen, paas))
    more = {"groups": groups} if groups else {}
    found.append(part_report(PAAS, paas.live, RIGHTS_PART, errors, warnings, manager=MANAGER, done=DONE, more=more))
    return found


# -- errors of a Paas --------------------------------------------------------------------------------------


def _errors(seen: Seen, paas: Paas, refusals: Sequence[Refusal]) -> Iterator[PaasProblem]:
    own = {place.name for place in seen.places.values() if place.origin != "paasns"}
    yield from (claim.problem for claim in seen.claims.values() if claim.problem is not None)
    yield from _users(seen, paas)
    if seen.config is None:
        yield PaasProblem("NoPaasConfig", "there is no PaasConfig: an administrator has to make one")
    else:
        yield from _labels(seen.config, paas)
        if seen.config.unknown_role_policy != "UseDefault":
            yield from _roles(seen.config, paas, "gives nothing")
        yield from _argo(seen, paas)
    for place in seen.wanted.values():
        if place.origin == "spec":
            yield from _unknown(place.groups, paas, f"spec.namespaces: {place.name}")
    yield from _foreign(seen, own)
    made = {claim.name: claim.key for claim in seen.claims.values()}
    for each in refusals:
        if each.key.kind == GROUP.kind and each.cause != "rights":
            text = text_of(each, FIXES, message_of(paas.live, RIGHTS_PART), separator=_BETWEEN)
            yield PaasProblem("GroupRefused", text if each.key.name not in made else f"group {made[each.key.name]!r}: {text}")
        elif each.key.kind != ROLE_BINDING.kind or each.key.namespace in own or each.key.namespace not in seen.places:
            yield _refused(each, paas.live)


def _refused(refusal: Refusal, on: Object) -> PaasProblem:
    return PaasProblem(REASONS[refusal.cause], text_of(refusal, FIXES, message_of(on, RIGHTS_PART), separator=_BETWEEN))


def _users(seen: Seen, paas: Paas) -> Iterator[PaasProblem]:
    for key, group in paas.groups.items():
        claim = seen.claims.get(key)
        if claim is None or not claim.generated:
            continue
        bad = [text for user in group.users if (text := user_problem(user, bound=by_users(seen)))]
        if bad:
            yield PaasProblem("InvalidGroup", f"group {key!r}: users are left out: {limits.few(sorted(set(bad)))}")


def _labels(config: PaasConfig, paas: Paas) -> Iterator[PaasProblem]:
    for where, templates in (("groupLabels", config.group_labels), ("roleBindingLabels", config.binding_labels)):
        for key, value in sorted(bad_labels(templates, paas).items()):
            text = f"{value[:80]!r} is no value for the label {key}: change what it is taken from (templating.{where})"
            yield PaasProblem("InvalidLabelValue", text)


def _roles(config: PaasConfig, paas: Paas, follows: str) -> Iterator[PaasProblem]:
    for key, group in paas.groups.items():
        for role in unknown_roles(group, config):
            text = f"group {key!r}: role {role!r} is not known and {follows}: use a role that administrators have mapped"
            yield PaasProblem("UnknownRole", text)


def _unknown(groups: Iterable[str] | None, paas: Paas, where: str) -> Iterator[PaasProblem]:
    for key in unknown_keys(groups, paas):
        yield PaasProblem("UnknownGroup", f"{where}: the Paas has no group {key!r}: add it there, or remove it here")


def _foreign(seen: Seen, places: Iterable[str]) -> Iterator[PaasProblem]:
    rights = rights_of(seen)
    for key in sorted(seen.foreign):
        if key.namespace in places and key in rights:
            text = f"{key} was not made for this Paas: delete it or give it another name"
            yield PaasProblem("BindingConflict", text)


def _argo(seen: Seen, paas: Paas) -> Iterator[PaasProblem]:
    if seen.policy is None:
        return
    for name in conflicting_fields(seen, paas):
        kind = "ArgoCD" if seen.policy.operated else "ConfigMap"
        text = f"{kind} {seen.policy.namespace}/{policy_name(seen)}: others have set {name}: remove it there"
        yield PaasProblem("ArgoPolicyConflict", text)
    if seen.config is not None and seen.config.argo_permissions is not None:
        for name in unfit_names(seen):
            text = f"group {name!r} is left out of the policy of Argo CD, where its name would add columns or lines: use another"
            yield PaasProblem("InvalidGroup", text)


# -- warnings ----------------------------------------------------------------------------------------------


def _warnings(seen: Seen, paas: Paas) -> Iterator[PaasProblem]:
    config = seen.config
    for key, group in paas.groups.items():
        if group.query and group.users:
            yield PaasProblem("QueryAndUsers", f"group {key!r} has a query, so its users are ignored: remove one of them")
        elif group.users and config is not None and config.group_user_management == "warn":
            yield PaasProblem("GroupUsersDiscouraged", f"group {key!r} has users: administrators ask for a query instead")
    if config is None:
        return
    if config.unknown_role_policy == "UseDefault":
        yield from _roles(config, paas, "counts as default")
    if not seen.served and not by_users(seen):
        named = sorted(key for key, group in paas.groups.items() if group.users and not group.query)
        if named:
            text = f"groups with users: {limits.few(named)}: this cluster has no Groups, so their users are not made members"
            yield PaasProblem("GroupAPIMissing", f"{text}: let an identity provider give them, or ask for groupFallback Users")
    for role in sorted(seen.missing):
        yield PaasProblem("ClusterRoleMissing", f"ClusterRole {role} does not exist: ask an administrator")


# -- PaasNS ------------------------------------------------------------------------------------------------


def _of_paas_ns(seen: Seen, paas: Paas, asked: PaasNs, refusals: Sequence[Refusal]) -> Apply | None:
    """The condition about the namespace that a PaasNS asked for; nothing of ours stays on one that has none (2.2)."""
    place = next((each for each in seen.places.values() if each.asked_by == asked.key), None)
    if place is None:
        if not is_left(seen, asked):
            return None
        return Apply(PAAS_NS, object_of(PAAS_NS, name_metadata(asked.live)), asked.live, subresource="status", manager=MANAGER)
    errors = [*_unknown(asked.groups, paas, "spec.groups"), *_foreign(seen, {place.name})]
    errors += [_refused(each, asked.live) for each in refusals if each.key.namespace == place.name]
    return part_report(PAAS_NS, asked.live, RIGHTS_PART, errors, (), manager=MANAGER, done=DONE)
