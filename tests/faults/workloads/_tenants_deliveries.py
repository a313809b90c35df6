"""What the workload of Tenants' deliveries promises."""

from __future__ import annotations

from tenantry.local.deployment import deployment_folder, documents
from tenantry.model.flux.names import LEAVING, TENANT
from tenantry.model.flux.onboarding import GIT_REPOSITORY, KUSTOMIZATION
from tenantry.model.kinds import EVENT, NAMESPACE, ROLE_BINDING, Key, Object, is_terminating
from tenantry.model.pointer import pointer
from tenantry.testing.workload import Workload
from tenantry.testing.world import Moment

from ._tenants import account_of, goes, is_declared, made, of_tenants, owner_of, states, tenants

SERVICE = "release-provisioning-tenants"
DELIVERED = (GIT_REPOSITORY.kind, KUSTOMIZATION.kind)


def _wanted(owner: Object, kind: str) -> Object | None:
    """The spec of what a Tenant wants of a kind."""
    source, delivery = owner["spec"].get("source"), owner["spec"].get("kustomization") or {}
    if not source:
        return None
    if kind == GIT_REPOSITORY.kind:
        return {"url": source["url"], "ref": {"branch": source["branch"]}, "interval": source.get("interval", "1m")}
    return {
        "sourceRef": {"kind": GIT_REPOSITORY.kind, "name": owner["metadata"]["name"]},
        "path": delivery.get("path", "./"),
        "prune": delivery.get("prune", True),
        "interval": delivery.get("interval", "10m"),
        "serviceAccountName": account_of(owner),
    }


def _is_bound(moment: Moment, owner: str, where: str) -> bool:
    """Whether rbac-aggregation had made a binding there."""
    return Key(ROLE_BINDING.api_version, ROLE_BINDING.kind, where, f"{owner}-reconciler") in moment.past


def delivers_what_is_declared(moment: Moment) -> str:
    """What is made or changed is as some Tenant wants it in its first namespace, where its account has rights."""
    key, before, after = moment.change.key, moment.change.before, moment.change.after
    if not moment.by or key.kind not in DELIVERED or after is None or is_terminating(after):
        return ""
    if before is not None and before.get("spec") == after.get("spec"):
        return ""
    owner = owner_of(after)
    if not _is_bound(moment, owner, key.namespace):
        return "where nobody has rights"
    for each in states(moment, owner):
        if each["spec"]["namespaces"][0] == key.namespace and after.get("spec") == _wanted(each, key.kind):
            return ""
    return f"made {after.get('spec')}"


def takes_the_source_last(moment: Moment) -> str:
    """A Kustomization goes when it is not declared, and its source after it."""
    gone, key = goes(moment), moment.change.key
    if gone is None or key.kind not in DELIVERED:
        return ""
    owner = owner_of(gone)
    if not owner:
        return "took what is not ours"
    delivers = Key(KUSTOMIZATION.api_version, KUSTOMIZATION.kind, key.namespace, key.name) in moment.objects
    if key.kind == GIT_REPOSITORY.kind and delivers:
        return "while something is delivered from it"
    declared = moment.declared(TENANT.kind, owner)
    wanted = [each["spec"]["namespaces"][0] == key.namespace and _wanted(each, key.kind) is not None for each in declared]
    return "it is declared" if is_declared(moment, owner) and all(wanted) else ""


def has_what_is_declared(objects: list[Object]) -> str:
    """In the end each Tenant whose account has rights has its source and its Kustomization, and no other."""
    bound = {(of, where) for of, where, _ in made(objects, ROLE_BINDING.kind)}
    wrong = []
    for kind in DELIVERED:
        there = {(of, where): each.get("spec") for of, where, each in made(objects, kind)}
        wanted = {
            (name, owner["spec"]["namespaces"][0]): spec
            for name, owner in tenants(objects).items()
            if (spec := _wanted(owner, kind)) and (name, owner["spec"]["namespaces"][0]) in bound
        }
        wrong += [f"{kind} {there}, not {wanted}" for _ in "1" if there != wanted]
    return "; ".join(wrong)


def deliveries_of_tenants() -> Workload:
    """A workload of release-provisioning for Tenants, without scenarios."""
    return of_tenants(
        "release-provisioning",
        SERVICE,
        safe=[delivers_what_is_declared, takes_the_source_last],
        ends=[has_what_is_declared],
        sources=documents(deployment_folder("knative") / "flux-tenants" / "source.yaml"),
        destroys=lambda step: step.get("op") == "add" and step.get("path") == pointer("metadata", "annotations", LEAVING),
        watched=(NAMESPACE, ROLE_BINDING, GIT_REPOSITORY, KUSTOMIZATION, TENANT, EVENT),
    )
