"""Where the RoleBinding of a Tenant's account comes from."""

from __future__ import annotations

from tenantry.model.conditions import find_condition
from tenantry.model.flux.names import MADE_FOR_TENANT, TENANCY_PROFILE, TENANT
from tenantry.model.flux.tenant import RIGHTS_MANAGER, defaults_of, is_kept_for, tenant_of
from tenantry.model.flux.tenant_status import RIGHTS_PART
from tenantry.model.kinds import CLUSTER_ROLE, NAMESPACE, ROLE_BINDING, Object, key_in, key_of, labels_of
from tenantry.model.origin import Because, Looking, Offer, Origin, edit, kubectl
from tenantry.model.rbac import BoundSubject, Question, account_named, allows

KINDS = frozenset({ROLE_BINDING})


async def explain(obj: Object, subject: BoundSubject | None, look: Looking) -> Origin | None:
    """The Tenant that names the namespace, its account and its role."""
    del subject, look
    name, place = labels_of(obj).get(MADE_FOR_TENANT, ""), obj["metadata"]["namespace"]
    if not name or not is_kept_for(obj, name, RIGHTS_MANAGER):
        return None
    proof = f"label {MADE_FOR_TENANT}, and fields of field manager {RIGHTS_MANAGER}"
    about = key_in(TENANT, name, "")
    because = (
        Because(about, "spec.namespaces", place),
        Because(about, "spec.clusterRole", obj["roleRef"]["name"]),
        Because(about, "spec.serviceAccountName", ", ".join(each["name"] for each in obj.get("subjects") or ())),
    )
    ends = (edit(TENANT, name, f"take {place} out of spec.namespaces, or choose another spec.clusterRole"),)
    return Origin(f"tenant/{name}", proof, because, (*ends, kubectl("delete", TENANT, name)))


async def offers(question: Question, look: Looking) -> list[Offer]:
    """For the account of a Tenant: the Tenant of the namespace, and why its role does not hold there."""
    account, name = (
        account_named(question.user),
        labels_of(await look.get(NAMESPACE, question.namespace)).get(MADE_FOR_TENANT, ""),
    )
    live = await look.get(TENANT, name) if name else None
    if live is None or account is None:
        return []
    profiles = await look.list(TENANCY_PROFILE)
    tenant = tenant_of(live, defaults_of(profiles[0] if profiles else None))
    role = await look.get(CLUSTER_ROLE, tenant.role)
    if (account.name, account.namespace) != (tenant.account, question.namespace):
        about = Because(key_of(live), "spec.serviceAccountName", tenant.account)
        fix = f"deliver as ServiceAccount {question.namespace}/{tenant.account}"
        return [Offer(about, f"in this namespace the tenant's rights are those of account {tenant.account}", fix)]
    if not allows(question, role):
        about = Because(key_of(live), "spec.clusterRole", tenant.role)
        return [
            Offer(about, f"ClusterRole {tenant.role} does not allow it", edit(TENANT, name, "choose another spec.clusterRole"))
        ]
    told = find_condition(live, RIGHTS_PART) or {}
    return [Offer(Because(key_of(live), "spec.namespaces"), "it is declared, and not done", str(told.get("message") or "wait"))]
