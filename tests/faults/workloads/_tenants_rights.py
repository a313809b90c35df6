"""What the workload of Tenants' rights promises."""

from __future__ import annotations

from tenantry.model.flux.names import TENANT
from tenantry.model.flux.onboarding import KUSTOMIZATION
from tenantry.model.flux.tenant import DELIVERY_FINALIZER
from tenantry.model.kinds import (
    EVENT,
    NAMESPACE,
    ROLE_BINDING,
    SERVICE_ACCOUNT,
    Key,
    Object,
    finalizers_of,
    is_terminating,
)
from tenantry.testing.workload import Workload
from tenantry.testing.world import Moment

from ._tenants import account_of, goes, is_declared, made, of_tenants, owner_of, states, tenants

SERVICE = "rbac-aggregation-tenants"


def _role(owner: Object) -> str:
    return str(owner["spec"].get("clusterRole") or "cluster-admin")


def binds_what_is_declared(moment: Moment) -> str:
    """A binding of ours binds one account, of its own namespace, to the role of a Tenant that names that namespace."""
    key, before, after = moment.change.key, moment.change.before, moment.change.after
    if not moment.by or key.kind != ROLE_BINDING.kind or after is None or is_terminating(after):
        return ""
    subjects = [(each["kind"], each["name"], each.get("namespace")) for each in after.get("subjects") or ()]
    if before is not None and (before.get("subjects"), before["roleRef"]) == (after.get("subjects"), after["roleRef"]):
        return ""
    for each in states(moment, owner_of(after)):
        named = key.namespace in each["spec"]["namespaces"] and key.name == f"{each['metadata']['name']}-reconciler"
        if (
            named
            and after["roleRef"]["name"] == _role(each)
            and subjects == [("ServiceAccount", account_of(each), key.namespace)]
        ):
            return ""
    return f"bound {subjects} to {after['roleRef']['name']}"


def takes_when_nothing_delivers(moment: Moment) -> str:
    """A binding goes when it is not declared, nothing delivers with it, and release-provisioning is done with the Tenant."""
    gone, key = goes(moment), moment.change.key
    if gone is None or key.kind != ROLE_BINDING.kind:
        return ""
    owner = owner_of(gone)
    if not owner:
        return "took what is not ours"
    live = moment.objects.get(Key(TENANT.api_version, TENANT.kind, "", owner))
    if is_terminating(live) and DELIVERY_FINALIZER in finalizers_of(live):
        return "before release-provisioning was done with the Tenant"
    declared = moment.declared(TENANT.kind, owner)
    named = [key.namespace in each["spec"]["namespaces"] for each in declared]
    delivers = any(
        place.kind == KUSTOMIZATION.kind and place.namespace == key.namespace and owner_of(each) == owner
        for place, each in moment.objects.items()
    )
    if delivers and not any(named):
        return "while something delivers"
    same = all(_role(each) == gone["roleRef"]["name"] for each in declared)
    return "it is declared" if is_declared(moment, owner) and all(named) and same else ""


def binds_every_account(objects: list[Object]) -> str:
    """In the end the account of each Tenant has its role in each namespace that it names, and nobody else has one by us."""
    owners, wanted = tenants(objects), set()
    for of, where, each in made(objects, SERVICE_ACCOUNT.kind):
        owner = owners.get(of)
        if owner is not None and where in owner["spec"]["namespaces"] and each["metadata"]["name"] == account_of(owner):
            wanted.add((of, where, _role(owner), account_of(owner)))
    there = {
        (of, where, each["roleRef"]["name"], *(subject["name"] for subject in each.get("subjects") or ()))
        for of, where, each in made(objects, ROLE_BINDING.kind)
    }
    return "" if there == wanted else f"missing {sorted(wanted - there)}, too much {sorted(there - wanted)}"


def rights_of_tenants() -> Workload:
    """A workload of rbac-aggregation for Tenants, without scenarios."""
    return of_tenants(
        "rbac-aggregation",
        SERVICE,
        safe=[binds_what_is_declared, takes_when_nothing_delivers],
        ends=[binds_every_account],
        watched=(NAMESPACE, SERVICE_ACCOUNT, ROLE_BINDING, KUSTOMIZATION, TENANT, EVENT),
    )
