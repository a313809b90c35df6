"""What a Tenant declares, what is made for it where, and what keeps a namespace from being its own (1.5, 2.7).  Pure.

Three functions make what belongs to a Tenant, each with a finalizer of its own, so that it goes in order: deliveries, rights,
then accounts and namespaces.  They agree by what stands in the cluster: rights and deliveries are made where the account is.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tenantry.model.difference import entries_of
from tenantry.model.flux.names import MADE_FOR_TENANT, TENANT_LABEL
from tenantry.model.flux.onboarding import CLUSTER_ADMIN, TenantNames, shipped_names
from tenantry.model.flux.profile import Profile
from tenantry.model.kinds import Object, declared, finalizers_of, is_terminating, labels_of
from tenantry.model.names import field_manager

NAMESPACES_FINALIZER = "tenantry.dev/tenant"
"""Of namespace-registration on a Tenant: the last one."""
RIGHTS_FINALIZER = "tenantry.dev/tenant-rights"
"""Of rbac-aggregation: goes when no RoleBinding of the Tenant is left."""
DELIVERY_FINALIZER = "tenantry.dev/tenant-delivery"
"""Of release-provisioning: goes when source and Kustomization are gone, and what was delivered with them."""

PLATFORM_PREFIX = "kube-"


NAMESPACES_MANAGER = f"{field_manager('namespace-registration')}-tenants"
RIGHTS_MANAGER = f"{field_manager('rbac-aggregation')}-tenants"
DELIVERY_MANAGER = f"{field_manager('release-provisioning')}-tenants"
"""The field managers of the three functions: not those of their other units, which write into the same namespaces."""


class TenantDefaults(NamedTuple):
    """What of the TenancyProfile concerns Tenants."""

    account: str = Profile().default_service_account
    exempt: frozenset[str] = frozenset(Profile().exempt)

    def is_platforms(self, namespace: str) -> bool:
        """Whether no tenant can have a namespace of this name (2.6)."""
        return namespace.startswith(PLATFORM_PREFIX) or namespace == "default" or namespace in self.exempt


class TenantProblem(NamedTuple):
    """Why a part of a Tenant is not there: reason, and a text that names the object and the fix."""

    reason: str
    text: str


@dataclass(frozen=True, slots=True)
class DeclaredTenant:
    """A Tenant as it is declared.  ``source`` and ``kustomization`` are as in its spec."""

    live: Object
    name: str
    uid: str
    age: tuple[str, str]
    """What decides between two: the older one comes first."""
    deleted: bool
    namespaces: tuple[str, ...]
    account: str
    role: str = CLUSTER_ADMIN
    more_labels: Mapping[str, str] = field(default_factory=dict)
    skips: bool = False
    adopts: bool = False
    source: Mapping[str, Any] | None = None
    kustomization: Mapping[str, Any] | None = None
    deletes: bool = False

    @property
    def names(self) -> TenantNames:
        """How account and binding are called."""
        return shipped_names(self.name, self.account)

    @property
    def labels(self) -> dict[str, str]:
        """Of all that is made for it."""
        return {**self.more_labels, **marks_of(self.name)}

    @property
    def finalizers(self) -> frozenset[str]:
        """Those that it has."""
        return frozenset(finalizers_of(self.live))


def version_of_tenant(live: Object | None) -> Hashable:
    """What of a Tenant decides, beside its status and finalizers."""
    return None if live is None else declared(live)


def marks_of(tenant: str) -> dict[str, str]:
    """The labels by which what is made for a Tenant is found; policies keep others from writing them."""
    return {TENANT_LABEL: tenant, MADE_FOR_TENANT: tenant}


def is_made_for(obj: Object | None, tenant: str) -> bool:
    """Whether an object is made for a Tenant."""
    return labels_of(obj).get(MADE_FOR_TENANT) == tenant


def is_kept_for(obj: Object | None, tenant: str, manager: str) -> bool:
    """Whether an object is made for a Tenant by one of the functions: only such a one is ever deleted.

    The label alone anybody can write who may write the object, where no policy of ours is bound.
    """
    return obj is not None and is_made_for(obj, tenant) and bool(entries_of(obj, manager))


def defaults_of(profile: Object | None) -> TenantDefaults:
    """The defaults in force; without a profile those of a profile that says nothing."""
    found = Profile.of(profile)
    return TenantDefaults(found.default_service_account, frozenset(found.exempt))


def tenant_of(live: Object, defaults: TenantDefaults) -> DeclaredTenant:
    """A Tenant as the API server has it: its schema has checked it and filled it in."""
    metadata, spec = live["metadata"], live.get("spec") or {}
    return DeclaredTenant(
        live,
        metadata["name"],
        metadata["uid"],
        (metadata["creationTimestamp"], metadata["uid"]),
        is_terminating(live),
        tuple(spec.get("namespaces") or ()),
        spec.get("serviceAccountName") or defaults.account,
        spec.get("clusterRole") or CLUSTER_ADMIN,
        spec.get("labels") or {},
        bool(spec.get("skipNamespace")),
        bool(spec.get("adoptNamespaces")),
        spec.get("source"),
        (spec.get("kustomization") or {}) if spec.get("source") else None,
        spec.get("deletionPolicy") == "Delete",
    )


def namespace_problem(
    tenant: DeclaredTenant, name: str, live: Object | None, others: Iterable[DeclaredTenant], defaults: TenantDefaults
) -> TenantProblem | None:
    """What keeps a namespace from being the Tenant's; nothing is written in it then.

    Args:
        name: of the namespace, one that the Tenant names.
        live: the namespace as it is.
        others: all Tenants, or those that name it.
    """
    if defaults.is_platforms(name):
        return TenantProblem("NamespaceReserved", f"namespace {name} is the platform's: name another")
    mine = is_made_for(live, tenant.name)
    for each in others:
        if each.name == tenant.name or name not in each.namespaces or (each.deleted and not is_made_for(live, each.name)):
            continue
        if is_made_for(live, each.name) or (not mine and each.age < tenant.age):
            return _belongs(name, each.name)
    if live is None:
        if tenant.skips:
            text = f"namespace {name} does not exist, and skipNamespace leaves it to others: make it"
            return TenantProblem("NamespaceMissing", text)
        return None
    if is_terminating(live):
        return TenantProblem("NamespaceTerminating", f"namespace {name} is being deleted: it is made anew when it is gone")
    labels = labels_of(live)
    owners = sorted({labels.get(key, "") for key in (MADE_FOR_TENANT, TENANT_LABEL)} - {"", tenant.name})
    if owners and not mine:  # of what is the Tenant's a label that somebody changed is put back
        return _belongs(name, owners[0])
    if not mine and not tenant.skips and not tenant.adopts:
        if labels.get(TENANT_LABEL) == tenant.name:
            return None
        text = f"namespace {name} is there and belongs to no tenant: set adoptNamespaces, or name another"
        return TenantProblem("NamespaceNotAdopted", text)
    return None


def _belongs(name: str, other: str) -> TenantProblem:
    return TenantProblem(
        "NamespaceConflict", f"namespace {name} belongs to tenant {other}: name another, or take it from that one"
    )
