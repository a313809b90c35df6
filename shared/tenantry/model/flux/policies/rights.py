"""Who is the platform and who produces sources: ClusterRoles with one made-up verb each, and their bindings (section 3.5)."""

from __future__ import annotations

from collections.abc import Sequence

from tenantry.model.flux.names import DEFAULT, GROUP_OF_KINDS, TENANCY_PROFILE
from tenantry.model.flux.policies.parts import BYPASS, LABELS, PRODUCE
from tenantry.model.kinds import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, Object, object_of
from tenantry.model.names import SYSTEM_NAMESPACE

PLATFORM_ROLE = "tenantry-platform"
PRODUCERS_ROLE = "tenantry-source-producers"
_RBAC = CLUSTER_ROLE.group
KEEPERS = ("namespace-registration", "rbac-aggregation-tenants", "release-provisioning", "release-provisioning-tenants")
"""The identities that keep Tenants, or label and delete namespaces of releases; their fences bound what they may do."""


def rights() -> list[Object]:
    """The roles and their bindings: to what ends namespaces or keeps Tenants, and to the controllers of Flux."""
    platform: list[Object] = [
        {"apiGroup": _RBAC, "kind": "User", "name": "system:kube-controller-manager"},
        {"apiGroup": _RBAC, "kind": "Group", "name": "system:serviceaccounts:kube-system"},
    ]
    platform += [{"kind": "ServiceAccount", "name": each, "namespace": SYSTEM_NAMESPACE} for each in KEEPERS]
    producers: list[Object] = [{"apiGroup": _RBAC, "kind": "Group", "name": "system:serviceaccounts:flux-system"}]
    return [*_role(PLATFORM_ROLE, BYPASS, platform), *_role(PRODUCERS_ROLE, PRODUCE, producers)]


def _role(name: str, verb: str, subjects: Sequence[Object]) -> list[Object]:
    metadata = {"name": name, "labels": dict(LABELS)}
    rule = {"apiGroups": [GROUP_OF_KINDS], "resources": [TENANCY_PROFILE.plural], "resourceNames": [DEFAULT], "verbs": [verb]}
    role_ref = {"apiGroup": _RBAC, "kind": CLUSTER_ROLE.kind, "name": name}
    return [
        object_of(CLUSTER_ROLE, metadata, rules=[rule]),
        object_of(CLUSTER_ROLE_BINDING, metadata, roleRef=role_ref, subjects=list(subjects)),
    ]
