"""What is told of the permissions of service accounts: the part ServiceAccounts of a Paas (1.4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from scope_binding.paas.descriptor import PAAS_ACCOUNTS
from scope_binding.paas.seen import (
    MANAGER,
    PERMISSIONS,
    AccountGrant,
    GrantsSeen,
    NamespaceSeen,
    RoleSeen,
    grants_of,
    impossible_names,
    in_cluster,
    is_local,
    is_shared,
    local_name,
    subjects_of,
)
from tenantry.model.conditions import find_condition
from tenantry.model.kinds import Object, finalizers_of
from tenantry.model.leftovers import report_leftovers
from tenantry.model.paas.declared import Paas
from tenantry.model.paas.names import ACCOUNTS_FINALIZER, ACCOUNTS_PART, NAMESPACES_PART, PAAS, SHARED, binding_name
from tenantry.model.paas.places import held_by
from tenantry.model.paas.status import PaasProblem, part_given_up, part_report
from tenantry.model.plan import NOTHING, Plan, Refusal, plan_of
from tenantry.model.refusals import REASONS, fixes, message_of, text_of

FIXES = fixes(PAAS_ACCOUNTS, invalid="have an administrator correct the permissions of the capability in the PaasConfig")
DONE = "the service accounts of all capabilities have their permissions"
_BETWEEN = "; "


def report_role(seen: RoleSeen, refusals: Sequence[Refusal]) -> Plan:
    """A Warning on a binding from which somebody could not be taken; what cannot be given is told on each Paas."""
    return report_leftovers(seen.leftovers, refusals, PAAS_ACCOUNTS, "paas")


def report_namespace(seen: NamespaceSeen, refusals: Sequence[Refusal]) -> Plan:
    """A Warning on a namespace that could not be let go: no Paas may be left that it could be told on."""
    failed = "its finalizer could not be taken off"
    return report_leftovers(seen.leftovers, refusals, PAAS_ACCOUNTS, "paas", failed=failed, by_hand="do it")


def is_missing(seen: GrantsSeen, grant: AccountGrant) -> bool:
    """Whether a grant does not stand yet, although its namespace is there and the name of its binding is not somebody else's."""
    assert seen.paas is not None
    return (
        held_by(seen.paas, seen.namespaces.get(grant.subject.namespace))
        and not _conflict(seen, grant)
        and grant.subject not in subjects_of(_binding(seen, grant))
    )


def report_paas(seen: GrantsSeen, refusals: Sequence[Refusal]) -> Plan:
    """The condition of the part; the old one stays while what it depends on is being made."""
    paas = seen.paas
    if paas is None:
        return NOTHING
    if paas.deleted:
        problems = [_refused(paas, refusal) for refusal in refusals]
        told = part_report(PAAS, paas.live, ACCOUNTS_PART, problems, [], manager=MANAGER, done=DONE)
        return plan_of(told) if problems else NOTHING
    warnings = list(_warnings(paas, seen))
    grants = grants_of(paas, seen.config)
    stands = bool(seen.named or seen.left) or (seen.config is None and ACCOUNTS_FINALIZER in finalizers_of(paas.live))
    if not grants and not warnings and not impossible_names(paas, seen.config) and not refusals and not stands:
        given_up = part_given_up(paas.live, ACCOUNTS_PART, manager=MANAGER)
        return plan_of(given_up) if given_up is not None else NOTHING
    if seen.config is None:
        text = "no PaasConfig is active, so permissions of service accounts stay as they are: have an administrator make one"
        problems = [PaasProblem("NoPaasConfig", text)]
    else:
        if not refusals and any(_is_coming(seen, grant) for grant in grants):
            return NOTHING
        problems = [*_problems(seen, paas, grants), *(_refused(paas, refusal) for refusal in refusals)]
    return plan_of(part_report(PAAS, paas.live, ACCOUNTS_PART, problems, warnings, manager=MANAGER, done=DONE))


def _binding(seen: GrantsSeen, grant: AccountGrant) -> Object | None:
    return seen.bindings.get((grant.role, _place(seen, grant)))


def _place(seen: GrantsSeen, grant: AccountGrant) -> str:
    return "" if in_cluster(seen.config) else grant.subject.namespace


def _is_coming(seen: GrantsSeen, grant: AccountGrant) -> bool:
    """Whether nobody can say yet whether a grant will stand: its namespace, or the run of its role, is to be waited for."""
    assert seen.paas is not None
    if held_by(seen.paas, seen.namespaces.get(grant.subject.namespace)):
        return is_missing(seen, grant) and grant.role not in seen.refused
    told = find_condition(seen.paas.live, NAMESPACES_PART) or {}
    return not (told.get("status") == "False" and told.get("observedGeneration") == seen.paas.generation)


def _conflict(seen: GrantsSeen, grant: AccountGrant) -> bool:
    live = _binding(seen, grant)
    if live is None or seen.paas is None:
        return False
    return not (is_shared(live) if in_cluster(seen.config) else is_local(live, grant.role, seen.paas.uid))


def _problems(seen: GrantsSeen, paas: Paas, grants: Sequence[AccountGrant]) -> Iterator[PaasProblem]:
    for capability, problem in impossible_names(paas, seen.config):
        yield PaasProblem("InvalidName", f"capability {capability}: {problem}: {FIXES['invalid']}")
    for grant in grants:
        where = grant.subject.namespace
        if not held_by(paas, seen.namespaces.get(where)):
            text = f"{grant.subject} has no permissions, since namespace {where} is not of this Paas: see {NAMESPACES_PART}"
            yield PaasProblem("NamespaceConflict", text)
        elif _conflict(seen, grant):
            yield _taken(seen, grant)
        elif is_missing(seen, grant) and grant.role in seen.refused:
            yield _refused(paas, seen.refused[grant.role])


def _taken(seen: GrantsSeen, grant: AccountGrant) -> PaasProblem:
    if not in_cluster(seen.config):
        name = f"{grant.subject.namespace}/{local_name(grant.role)}"
        text = f"RoleBinding {name} is not of this Paas, so {grant.subject} is not bound"
        return PaasProblem("BindingConflict", f"{text}: delete it, or give it another name")
    text = f"ClusterRoleBinding {binding_name(grant.role)} was not made by Tenantry, so {grant.subject} is not bound"
    fix = f"have an administrator give it another name, or annotate it with {SHARED}={PERMISSIONS}"
    return PaasProblem("ClusterRoleBindingConflict", f"{text}: {fix}")


def _refused(paas: Paas, refusal: Refusal) -> PaasProblem:
    standing = message_of(paas.live, ACCOUNTS_PART, generation=paas.generation)
    return PaasProblem(REASONS[refusal.cause], text_of(refusal, FIXES, standing, separator=_BETWEEN))


def _warnings(paas: Paas, seen: GrantsSeen) -> Iterator[PaasProblem]:
    for name, declared in paas.enabled.items():
        known = seen.config.capabilities.get(name) if seen.config is not None else None
        if known is not None and declared.extra_permissions and not known.extra_permissions:
            text = f"capability {name}: extra permissions are asked for, and the PaasConfig has none"
            fix = "set extra_permissions to false, or have an administrator configure them"
            yield PaasProblem("ExtraPermissionsNotConfigured", f"{text}: {fix}")
