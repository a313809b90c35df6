"""Kinds, labels, annotations and finalizers of Paas, each with its owner and meaning.

The ``cpet.belastingdienst.nl`` names are those of opr-paas, so that whoever knows it finds what they expect; the ``tenantry.dev``
ones are ours.  Functions read and write ``v1alpha2``, the version that is stored.
"""

from __future__ import annotations

from tenantry.model.kinds import Kind

GROUP_OF_KINDS = "cpet.belastingdienst.nl"
VERSION = f"{GROUP_OF_KINDS}/v1alpha2"

PAAS = Kind(VERSION, "Paas", "paas", namespaced=False)
PAAS_NS = Kind(VERSION, "PaasNS", "paasns")
PAAS_CONFIG = Kind(VERSION, "PaasConfig", "paasconfig", namespaced=False)

OUR_KINDS = frozenset({PAAS, PAAS_NS, PAAS_CONFIG})
"""While the CRD of one of them is opr-paas', nothing is done for Paas (section 6)."""

# Of other systems: they are served only where those are.
GROUP = Kind("user.openshift.io/v1", "Group", "groups", namespaced=False)
CLUSTER_RESOURCE_QUOTA = Kind("quota.openshift.io/v1", "ClusterResourceQuota", "clusterresourcequotas", namespaced=False)
APPLICATION_SET = Kind("argoproj.io/v1alpha1", "ApplicationSet", "applicationsets")
ARGO_CD = Kind("argoproj.io/v1beta1", "ArgoCD", "argocds")

MANAGED_BY_PAAS = f"{GROUP_OF_KINDS}/managed-by-paas"
"""Label on everything that is made for a Paas: its name.  It finds objects and proves nothing."""

PAAS_UID = "tenantry.dev/paas-uid"
"""Annotation on the same: the uid of the Paas.  It is the proof that an object is made for it, and a policy guards it."""

ASKED_BY = "tenantry.dev/paasns"
"""Annotation on the namespace of a PaasNS: ``<namespace>/<name>`` of that PaasNS."""

SHARED = "tenantry.dev/paas-shared"
"""Annotation on what several Paas share: ``permissions`` (ClusterRoleBindings) or ``quota`` (of a clusterwide capability)."""

ELEMENTS = "tenantry.dev/paas-elements"
"""Annotation on an ApplicationSet that has elements of ours: the capability."""

PAAS_FINALIZER = f"paas.{GROUP_OF_KINDS}/finalizer"
"""Finalizer of namespace-registration on a Paas; upstream's has the same name."""

RIGHTS_FINALIZER = "tenantry.dev/rbac-aggregation"
"""Finalizer of rbac-aggregation on a Paas: its bindings go, then its Groups."""

ACCOUNTS_FINALIZER = "tenantry.dev/scope-binding"
"""Finalizer of scope-binding on a Paas: the subjects of its service accounts go."""

HAND_OVER_FINALIZER = "tenantry.dev/release-provisioning"
"""Finalizer of release-provisioning on a Paas: its elements in ApplicationSets go."""

OTHERS_FINALIZERS = (RIGHTS_FINALIZER, ACCOUNTS_FINALIZER, HAND_OVER_FINALIZER)
"""While one of them is on a Paas that is being deleted, its namespaces and quotas stay (2.11)."""

SUBJECTS_FINALIZER = "tenantry.dev/paas-rights"
"""Finalizer of scope-binding on a namespace whose service accounts have rights in the cluster: so long its name is not free."""

# Conditions (1.4).  The first three are those that people wait for; each part is written by one function.
READY = "Ready"
HAS_ERRORS = "HasErrors"
WARNINGS = "Warnings"
ACTIVE = "Active"
NAMESPACES_PART = "tenantry.dev/Namespaces"
RIGHTS_PART = "tenantry.dev/Rights"
ACCOUNTS_PART = "tenantry.dev/ServiceAccounts"
HAND_OVER_PART = "tenantry.dev/HandOver"
PARTS = (NAMESPACES_PART, RIGHTS_PART, ACCOUNTS_PART, HAND_OVER_PART)
"""In the order in which Ready names their problems."""

BINDING_PREFIX = "paas-"
"""Of RoleBindings and shared ClusterRoleBindings: ``paas-<ClusterRole>``."""
ACCOUNT_BINDING_PREFIX = "paas-sa-"
"""Of RoleBindings for service accounts where ``permissionScope`` is ``Namespace``."""
QUOTA_NAME = "paas-quota"
"""The ResourceQuota in each namespace where ClusterResourceQuota is not served."""
ARGO_CAPABILITY = "argocd"
"""The capability whose namespace has the Argo CD that ``argopermissions`` are for."""
ARGO_POLICY = "argocd-rbac-cm"
"""The ConfigMap from which Argo CD reads its policy."""


def namespace_name(paas: str, suffix: str) -> str:
    """The namespace of an entry, a capability or a PaasNS."""
    return f"{paas}-{suffix}"


def binding_name(cluster_role: str) -> str:
    """The binding of a ClusterRole, in a namespace or shared in the cluster."""
    return f"{BINDING_PREFIX}{cluster_role}"
