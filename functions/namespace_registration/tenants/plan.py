"""Namespaces and accounts of a Tenant: what is observed, what is written, and what people are told (2.7).  Pure.

An account outlives the rights that are bound to it, and these outlive what was delivered with them: else Flux could prune
nothing (2.3).  So accounts and labels go when no RoleBinding of the Tenant is left in their namespace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from namespace_registration.tenants.descriptor import TENANT_NAMESPACES
from tenantry.model.difference import entries_of, is_sole_owner
from tenantry.model.flux.names import ACCOUNT_LABEL, MADE_FOR_TENANT, PRUNE, SHOW_SOURCES, TENANT, TENANT_LABEL
from tenantry.model.flux.onboarding import account_of
from tenantry.model.flux.tenant import (
    DELIVERY_FINALIZER,
    NAMESPACES_FINALIZER,
    RIGHTS_FINALIZER,
    RIGHTS_MANAGER,
    DeclaredTenant,
    TenantDefaults,
    TenantProblem,
    is_kept_for,
    is_made_for,
    namespace_problem,
)
from tenantry.model.flux.tenant import NAMESPACES_MANAGER as MANAGER
from tenantry.model.flux.tenant_status import READY, others_parts, refused, told_part
from tenantry.model.kinds import NAMESPACE, SERVICE_ACCOUNT, Object, is_terminating, labels_of, object_of
from tenantry.model.plan import NOTHING, Apply, Delete, Plan, Refusal, RemoveFinalizers, RemoveLabel, Write, plan_of
from tenantry.model.refusals import fixes

FIXES = fixes(TENANT_NAMESPACES, invalid="correct what the Tenant says for it")
_FURTHER_LABELS = (TENANT_LABEL, ACCOUNT_LABEL)


@dataclass(frozen=True, slots=True)
class TenantSeen:
    """One Tenant as it is; without ``tenant`` what one of this name has left.

    ``others`` are all Tenants.  ``namespaces`` are those that it names and those with its label, by name.  ``accounts`` are those
    with its label, and those of the name that is wanted in namespaces that it names.  ``bindings`` are its
    RoleBindings.
    """

    name: str
    tenant: DeclaredTenant | None = None
    defaults: TenantDefaults = field(default_factory=TenantDefaults)
    others: tuple[DeclaredTenant, ...] = ()
    namespaces: Mapping[str, Object | None] = field(default_factory=dict)
    accounts: tuple[Object, ...] = ()
    bindings: tuple[Object, ...] = ()

    @property
    def bound(self) -> frozenset[str]:
        """The namespaces in which RoleBindings of it are left."""
        return frozenset(each["metadata"]["namespace"] for each in self.bindings if is_kept_for(each, self.name, RIGHTS_MANAGER))

    def is_used(self, account: Object) -> bool:
        """Whether a RoleBinding of it names an account."""
        name, namespace = account["metadata"]["name"], account["metadata"]["namespace"]
        here = (each for each in self.bindings if each["metadata"]["namespace"] == namespace)
        return any(subject.get("name") == name for each in here for subject in each.get("subjects") or ())


def problems_of(seen: TenantSeen, tenant: DeclaredTenant) -> dict[str, TenantProblem]:
    """What keeps namespaces from being the Tenant's, by name."""
    judged = {
        name: namespace_problem(tenant, name, seen.namespaces.get(name), seen.others, seen.defaults) for name in tenant.namespaces
    }
    return {name: problem for name, problem in judged.items() if problem is not None}


def plan_tenant(seen: TenantSeen) -> Plan:
    """Namespaces and accounts as declared; what is not wanted any more goes, the finalizer last."""
    tenant = seen.tenant
    if tenant is None:
        return Plan(tuple(_left(seen, frozenset(), "", deletes=False)))
    if tenant.deleted:
        if tenant.finalizers & {RIGHTS_FINALIZER, DELIVERY_FINALIZER} or NAMESPACES_FINALIZER not in tenant.finalizers:
            return NOTHING
        last = RemoveFinalizers(TENANT, tenant.live, (NAMESPACES_FINALIZER,))
        return Plan((*_left(seen, frozenset(), "", deletes=tenant.deletes), (last,)))
    finalizer = object_of(TENANT, {"name": tenant.name, "finalizers": [NAMESPACES_FINALIZER]})
    problems = problems_of(seen, tenant)
    made = tuple(_made(seen, tenant, name) for name in tenant.namespaces if name not in problems)
    left = Plan(tuple(_left(seen, frozenset(tenant.namespaces), tenant.account, deletes=tenant.deletes)))
    return Plan(((Apply(TENANT, finalizer, tenant.live, manager=MANAGER),), (*made, left)))


def _made(seen: TenantSeen, tenant: DeclaredTenant, name: str) -> Plan:
    """A namespace with its labels, then its account; accounts of another name go once the binding names the new one."""
    live = seen.namespaces.get(name)
    labels = {**tenant.labels, ACCOUNT_LABEL: tenant.account}
    metadata = {"name": name, "labels": labels, "annotations": {PRUNE: "disabled", SHOW_SOURCES: "true"}}
    namespace = Apply(NAMESPACE, object_of(NAMESPACE, metadata), live, create_only=True, manager=MANAGER)
    there = next((each for each in _accounts(seen, name) if each["metadata"]["name"] == tenant.account), None)
    wanted = account_of(name, tenant.names, tenant.labels)
    account = Apply(SERVICE_ACCOUNT, wanted, there, create_only=True, manager=MANAGER)
    return Plan((() if tenant.skips else (namespace,), () if is_terminating(there) else (account,)))


def _accounts(seen: TenantSeen, namespace: str) -> list[Object]:
    return [each for each in seen.accounts if each["metadata"]["namespace"] == namespace]


def _left(seen: TenantSeen, wanted: frozenset[str], account: str, *, deletes: bool) -> Iterator[tuple[Write, ...]]:
    """Accounts that nothing names any more, then namespaces or their labels where no right is left."""
    name = seen.name
    leaving = [
        each
        for where, each in sorted(seen.namespaces.items())
        if where not in wanted and where not in seen.bound and is_made_for(each, name) and not is_terminating(each)
    ]
    yield tuple(
        Delete(SERVICE_ACCOUNT, each)
        for each in seen.accounts
        if is_kept_for(each, name, MANAGER)
        and not is_terminating(each)
        and not (each["metadata"]["namespace"] in wanted and each["metadata"]["name"] == account)
        and not seen.is_used(each)
    )
    if deletes:
        yield tuple(Delete(NAMESPACE, each) for each in leaving if each is not None and is_kept_for(each, name, MANAGER))
        return
    lives = [each for each in leaving if each is not None]
    yield tuple(RemoveLabel(NAMESPACE, each, label) for each in lives for label in _FURTHER_LABELS if _stays(each, label))
    metadata = [({"name": each["metadata"]["name"]}, each) for each in lives if entries_of(each, MANAGER)]
    yield tuple(Apply(NAMESPACE, object_of(NAMESPACE, named), each, manager=MANAGER) for named, each in metadata)
    # Last, since the namespace is found by it.
    yield tuple(RemoveLabel(NAMESPACE, each, MADE_FOR_TENANT) for each in lives if _stays(each, MADE_FOR_TENANT))


def _stays(namespace: Object, label: str) -> bool:
    """Whether a label stays when we give it up: others wrote it, too, or in place of ours."""
    return label in labels_of(namespace) and not is_sole_owner(namespace, MANAGER, "metadata", "labels", label)


# -- what is told ------------------------------------------------------------------------------------------


def report_tenant(seen: TenantSeen, refusals: Sequence[Refusal]) -> Plan:
    """Ready, and the namespaces that are the Tenant's."""
    tenant = seen.tenant
    if tenant is None or (tenant.deleted and not refusals):
        return NOTHING
    own = problems_of(seen, tenant)
    found = [*own.values(), *refused(tenant, READY, refusals, FIXES)]
    later, waits = others_parts(tenant)
    missing = {each.key.name for each in refusals if each.key.kind == NAMESPACE.kind} | own.keys()
    stands = sorted(name for name in tenant.namespaces if name not in missing)
    done = f"{len(stands)} namespaces, account {tenant.account}, role {tenant.role}"
    told = told_part(
        tenant, READY, found or later, manager=MANAGER, done=done, waits=waits, more={"namespaces": stands} if stands else {}
    )
    return plan_of(told)
