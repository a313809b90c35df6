"""The objects that give a team its namespaces, and Flux its repository: what ``tenantry create`` prints, and a Tenant gets.

Pure.  ``create tenant`` prints them in the style of Flux' own command, or in that of the example of RFC-0003 (f-46, f-143).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tenantry.model.flux.names import KUSTOMIZE_GROUP, SOURCE_GROUP, TENANT_LABEL
from tenantry.model.kinds import NAMESPACE, ROLE_BINDING, SERVICE_ACCOUNT, Kind, Object, object_of

GIT_REPOSITORY = Kind(f"{SOURCE_GROUP}/v1", "GitRepository", "gitrepositories")
KUSTOMIZATION = Kind(f"{KUSTOMIZE_GROUP}/v1", "Kustomization", "kustomizations")
CLUSTER_ADMIN = "cluster-admin"
_RBAC = "rbac.authorization.k8s.io"
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61})[a-z0-9]")


class TenantNames(NamedTuple):
    """How the objects of a tenant are called in each of its namespaces."""

    account: str
    binding: str


def is_tenant_name(name: str) -> bool:
    """Whether Flux' own command takes this name for a tenant: 2 to 63 characters (f-52)."""
    return _NAME.fullmatch(name) is not None


def shipped_names(tenant: str, account: str = "") -> TenantNames:
    """As Flux' own command calls them."""
    return TenantNames(account or tenant, f"{tenant}-reconciler")


def rfc_names(account: str = "") -> TenantNames:
    """As the example of RFC-0003 calls them."""
    return TenantNames(account or "flux", "flux")


def tenant_labels(tenant: str, more: Mapping[str, str]) -> dict[str, str]:
    """The label that says whose an object is, and those that people want besides."""
    return {**more, TENANT_LABEL: tenant}


def namespace_of(name: str, labels: Mapping[str, str]) -> Object:
    """A namespace of a tenant."""
    return object_of(NAMESPACE, _metadata(name, "", labels))


def account_of(namespace: str, names: TenantNames, labels: Mapping[str, str]) -> Object:
    """The account that deliveries are applied as."""
    return object_of(SERVICE_ACCOUNT, _metadata(names.account, namespace, labels))


def binding_of(
    namespace: str, names: TenantNames, role: str, labels: Mapping[str, str], *, with_gotk_user: bool = False
) -> Object:
    """The rights of that account: all that the ClusterRole has, in this namespace only (f-42).

    ``with_gotk_user`` adds the subject that Flux' own command writes first (f-145).
    """
    user = {"apiGroup": _RBAC, "kind": "User", "name": f"gotk:{namespace}:reconciler"}
    account = {"kind": "ServiceAccount", "name": names.account, "namespace": namespace}
    return object_of(
        ROLE_BINDING,
        _metadata(names.binding, namespace, labels),
        roleRef={"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
        subjects=[user, account] if with_gotk_user else [account],
    )


def git_repository(
    name: str,
    namespace: str,
    *,
    url: str,
    ref: Mapping[str, str],
    interval: str,
    secret: str = "",
    labels: Mapping[str, str] = {},
) -> Object:
    """A GitRepository; ``ref`` is its ``spec.ref``."""
    spec: dict[str, Any] = {"interval": interval, "ref": dict(ref), "url": url}
    if secret:
        spec["secretRef"] = {"name": secret}
    return object_of(GIT_REPOSITORY, _metadata(name, namespace, labels), spec=spec)


def git_ref(*, branch: str = "", tag: str = "", semver: str = "", commit: str = "", name: str = "") -> dict[str, str]:
    """The ``spec.ref`` of a GitRepository: the first of commit, name, semver, tag and branch that is given; empty without any.

    A commit keeps its branch.
    """
    if commit:
        return {"commit": commit, **({"branch": branch} if branch else {})}
    for field, value in (("name", name), ("semver", semver), ("tag", tag), ("branch", branch)):
        if value:
            return {field: value}
    return {}


def kustomization(
    name: str,
    namespace: str,
    *,
    source: Mapping[str, str],
    path: str,
    prune: bool,
    interval: str,
    account: str = "",
    target_namespace: str = "",
    depends_on: Sequence[Mapping[str, str]] = (),
    labels: Mapping[str, str] = {},
) -> Object:
    """A Kustomization; ``source`` is its ``spec.sourceRef``."""
    spec: dict[str, Any] = {"interval": interval, "path": path, "prune": prune, "sourceRef": dict(source)}
    if account:
        spec["serviceAccountName"] = account
    if target_namespace:
        spec["targetNamespace"] = target_namespace
    if depends_on:
        spec["dependsOn"] = [dict(each) for each in depends_on]
    return object_of(KUSTOMIZATION, _metadata(name, namespace, labels), spec=spec)


def _metadata(name: str, namespace: str, labels: Mapping[str, str]) -> Object:
    named = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {**named, "labels": dict(labels)} if labels else named
