"""RoleBindings of a Tenant: what is observed, what is written, and what people are told (2.7).  Pure.

A binding is made where the account of the Tenant stands, which namespace-registration makes in namespaces that are the Tenant's.
It goes after the Kustomizations that deliver with it: else Flux could prune nothing (2.3).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field

from rbac_aggregation.tenants.descriptor import TENANT_RIGHTS
from tenantry.model import limits
from tenantry.model.flux.names import TENANT
from tenantry.model.flux.onboarding import binding_of
from tenantry.model.flux.tenant import DELIVERY_FINALIZER, RIGHTS_FINALIZER, DeclaredTenant, TenantProblem, is_kept_for
from tenantry.model.flux.tenant import RIGHTS_MANAGER as MANAGER
from tenantry.model.flux.tenant_status import RIGHTS_PART, refused, told_part
from tenantry.model.kinds import ROLE_BINDING, Key, Object, is_terminating, key_of, object_of
from tenantry.model.plan import NOTHING, Apply, Delete, Plan, Refusal, RemoveFinalizers, Write, plan_of
from tenantry.model.refusals import fixes

FIXES = fixes(TENANT_RIGHTS, invalid="correct what the Tenant says for it")


@dataclass(frozen=True, slots=True)
class TenantRights:
    """One Tenant as it is; without ``tenant`` what one of this name has left.

    ``accounts`` are those with its label.  ``bindings`` are those with its label, and those of the name that is wanted.
    ``delivering`` are the namespaces in which Kustomizations with its label are left.
    """

    name: str
    tenant: DeclaredTenant | None = None
    accounts: tuple[Object, ...] = ()
    bindings: dict[Key, Object] = field(default_factory=dict)
    delivering: frozenset[str] = frozenset()


def stands_in(tenant: DeclaredTenant, accounts: Sequence[Object]) -> list[str]:
    """The namespaces that a Tenant names and that have its account, in its order."""
    there = {
        each["metadata"]["namespace"]
        for each in accounts
        if each["metadata"]["name"] == tenant.account and not is_terminating(each)
    }
    return [name for name in tenant.namespaces if name in there]


def plan_rights(seen: TenantRights) -> Plan:
    """A binding beside each account; those that are not wanted go, and the finalizer of a Tenant that is deleted last."""
    tenant = seen.tenant
    if tenant is None:
        return plan_of(*_left(seen, frozenset()))
    if tenant.deleted:
        if DELIVERY_FINALIZER in tenant.finalizers or RIGHTS_FINALIZER not in tenant.finalizers:
            return NOTHING
        last = RemoveFinalizers(TENANT, tenant.live, (RIGHTS_FINALIZER,))
        return Plan((tuple(_left(seen, frozenset())), (last,)))
    in_the_way = bindings_in_the_way(seen, tenant)
    made = [_bound(each, seen.bindings.get(key_of(each))) for each in _wanted(seen, tenant) if key_of(each) not in in_the_way]
    left = _left(seen, frozenset(tenant.namespaces))
    finalizer = object_of(TENANT, {"name": tenant.name, "finalizers": [RIGHTS_FINALIZER]})
    first = (Apply(TENANT, finalizer, tenant.live, manager=MANAGER),) if made else ()
    return Plan((first, (*made, *left)))


def _wanted(seen: TenantRights, tenant: DeclaredTenant) -> list[Object]:
    return [binding_of(name, tenant.names, tenant.role, tenant.labels) for name in stands_in(tenant, seen.accounts)]


def bindings_in_the_way(seen: TenantRights, tenant: DeclaredTenant) -> list[Key]:
    """Bindings of wanted names to another role that are somebody else's: they cannot be changed, and are not deleted."""
    lives = ((key_of(each), each["roleRef"], seen.bindings.get(key_of(each))) for each in _wanted(seen, tenant))
    return [key for key, role, live in lives if live and live["roleRef"] != role and not is_kept_for(live, tenant.name, MANAGER)]


def _bound(wanted: Object, live: Object | None) -> Plan:
    """A binding; one for another role is made anew, since that field cannot change."""
    if is_terminating(live):
        return NOTHING
    if live is not None and live["roleRef"] != wanted["roleRef"]:
        return Plan(((Delete(ROLE_BINDING, live),), (Apply(ROLE_BINDING, wanted, None, create_only=True, manager=MANAGER),)))
    return plan_of(Apply(ROLE_BINDING, wanted, live, create_only=True, manager=MANAGER))


def _left(seen: TenantRights, wanted: frozenset[str]) -> Iterator[Write]:
    """Bindings in namespaces that the Tenant does not name any more, or of another name; not where something delivers yet."""
    name = seen.tenant.names.binding if seen.tenant is not None else ""
    for key, live in sorted(seen.bindings.items()):
        kept = key.namespace in wanted and key.name == name
        if kept or is_terminating(live) or not is_kept_for(live, seen.name, MANAGER) or key.namespace in seen.delivering - wanted:
            continue
        yield Delete(ROLE_BINDING, live)


def doubtful(_: TenantRights, plan: Plan) -> frozenset[Hashable]:
    """What goes, each object as it was seen.

    A binding that another process has made anew since is another one: that it is in the way, too, is to be seen once more.
    """
    return plan.taken_away() | plan.deleted_uids()


def report_rights(seen: TenantRights, refusals: Sequence[Refusal]) -> Plan:
    """Whether the account has its role in all namespaces."""
    tenant = seen.tenant
    if tenant is None or (tenant.deleted and not refusals):
        return NOTHING
    missing = [name for name in tenant.namespaces if name not in stands_in(tenant, seen.accounts)]
    waits = f"waits for account {tenant.account} in {limits.few(missing)}" if missing else ""
    found = refused(tenant, RIGHTS_PART, refusals, FIXES)
    for key in bindings_in_the_way(seen, tenant):
        text = f"{key} is there, gives another role and was not made for this tenant: delete it"
        found.append(TenantProblem("ObjectConflict", text))
    done = f"account {tenant.account} has role {tenant.role} in {len(tenant.namespaces)} namespaces"
    return plan_of(told_part(tenant, RIGHTS_PART, found, manager=MANAGER, done=done, waits=waits))
