"""Labels, annotations, prefixes and limits, each with its owner and meaning.

The ``helm.cattle.io`` names are those of the Helm Project Operator, so that charts, dashboards and people
who know them find what they expect; the ``tenantry.dev`` ones are ours.
"""

from __future__ import annotations

OPERATED = "helm.cattle.io/helm-project-operated"
"""Label ``true`` on everything that Tenantry makes for projects."""

PROJECT_ID = "helm.cattle.io/projectId"
"""Label on registration, release and member namespaces: the project; on members the memory of the last one."""

ORPHANED = "helm.cattle.io/helm-project-operator-orphaned"
"""Label ``true`` on a registration or release namespace that may be deleted."""

API_GROUP = "helm.cattle.io/helm-api-version"
"""Label on HelmCharts and HelmReleases: the helmApiVersion before the slash."""

CLEANUP = "helm.cattle.io/helm-project-operator-cleanup"
"""Label ``true`` on a ProjectHelmChart: its release is taken away until the system is deployed again."""

DASHBOARD_VALUES = "helm.cattle.io/dashboard-values-configmap"
"""Label that charts put on ConfigMaps with dashboard values: the release name."""

CHART_MANAGED_BY = "helmcharts.cattle.io/managed-by"
"""Annotation on a HelmChart: the name of the controller that runs Helm for it."""

RELEASE_MANAGED_BY = "helmreleases.cattle.io/managed-by"
"""Annotation on a HelmRelease: the name of the controller that locks it."""

UPSTREAM_PROJECT_CHART_FINALIZER = "wrangler.cattle.io/on-project-helm-chart-remove"
"""Finalizer of the Helm Project Operator on ProjectHelmCharts: nobody takes it off once that operator is gone."""

UPSTREAM_HELM_CHART_FINALIZER = "wrangler.cattle.io/on-helm-chart-remove"
UPSTREAM_HELM_RELEASE_FINALIZER = "wrangler.cattle.io/on-helm-release-remove"

PROJECT_CHART = "tenantry.dev/project-helm-chart"
"""Annotation on release namespaces, HelmCharts, HelmReleases and RoleBindings: ``<namespace>/<name>`` of the ProjectHelmChart."""

HELM_API_VERSION = "tenantry.dev/helm-api-version"
"""Annotation on a HelmChart: the helmApiVersion, in full, of the configured chart that it installs."""

CLEANED_UP_BY = "tenantry.dev/cleaned-up-by"
"""Annotation on a ProjectHelmChart with the cleanup label: the installation that saw the label first."""

PROJECT_LABEL_ACCEPTED = "tenantry.dev/project-label"
"""Annotation by which an administrator accepts on a registration namespace that projects go by another label key: that key."""

WITHDRAWAL_ACCEPTED = "tenantry.dev/accept-withdrawal"
"""Annotation on the owner of rights: the digest of the change whose withdrawals an administrator accepts (decision 30)."""

CHART_LABEL = "helmcharts.helm.cattle.io/chart"
"""Label on what runs Helm for a HelmChart, Job and pods included: the name of the HelmChart."""

CONFIG_HASH = "helmcharts.helm.cattle.io/configHash"
"""Annotation on the pods of such a Job: a digest of chart, values and everything else that a run depends on."""

CHART_UNMANAGED = "helmcharts.helm.cattle.io/unmanaged"
"""Annotation on a HelmChart that nobody shall run Helm for."""

HELM_RECORD_TYPE = "helm.sh/release.v1"
"""Type of the Secrets in which Helm keeps its records."""

HELM_CHART_FINALIZER = "tenantry.dev/helm-chart"
"""Finalizer of release-provisioning on HelmCharts: the release is uninstalled before they go."""

RELEASE_FINALIZER = "tenantry.dev/release"
"""Finalizer of release-provisioning on ProjectHelmCharts."""

LOCK_FINALIZER = "tenantry.dev/lock"
"""Finalizer of lock-enforcement on HelmReleases."""

NAMESPACE_SCOPE_FINALIZER = "finalizer.nss.operator.ibm.com"
"""Finalizer of scope-binding, and of the IBM operator before it, on NamespaceScopes."""

NAMESPACE_LIST = "managedby-namespace-scope"
"""Label ``true`` on ConfigMaps with the list of namespaces of a NamespaceScope."""

GIVEN_FROM = "scope-binding/from-namespace"
"""Label on Roles and RoleBindings in members of a NamespaceScope: the NamespaceScope's namespace."""

OLM_OWNER_NAMESPACE = "olm.owner.namespace"
"""Label of OLM on webhook configurations: the namespace of the operator."""

INJECTION_ORIGINAL = "scope-binding/original"
"""Annotation on ClusterServiceVersions and webhook configurations that keeps what injection replaced."""

SCOPE_TEMPLATE_UID = "operators.coreos.io/scopeTemplateUID"
"""Label on the ClusterRoles of a ScopeTemplate."""

SCOPE_INSTANCE_UID = "operators.coreos.io/scopeInstanceUID"
"""Label on the bindings of a ScopeInstance."""

SCOPE_GENERATED = "scope-binding/generated"
"""Label ``true`` on ScopeTemplates and ScopeInstances that are made for a ClusterServiceVersion."""

LOCKED_SOURCE, LOCKED_CLUSTER_SOURCE = "lock-enforcement-locked", "lock-enforcement-locked-cluster"
"""The ApiServerSources that lock-enforcement makes."""

LOCK = "tenantry.dev/lock"
"""Annotation ``paused`` on a HelmRelease or on a locked object: its drift stays until the annotation goes."""

LOCK_PAUSED = "paused"

LOCK_IGNORE = "tenantry.dev/lock-ignore"
"""Annotation on a locked object: JSON pointers, separated by commas, of fields that others may change."""

ADOPT = "tenantry.dev/adopt"
"""Annotation ``true`` with which an administrator lets Tenantry take over an existing namespace."""

ALLOW_DELETION = "tenantry.dev/allow-deletion"
"""Annotation ``true`` with which an administrator lets a namespace be deleted that a project or a release uses.  Only the
policy ``tenantry-guard-namespaces`` reads it."""

REGISTERED_CONDITION = "tenantry.dev/Registered"
"""Condition on a Namespace that says why its project is not served; absent when all is well."""

ROLE_OF = "helm.cattle.io/project-helm-chart-role"
"""Label on a Role in a release namespace, set by charts: the name of the release."""

AGGREGATE_FROM = "helm.cattle.io/project-helm-chart-role-aggregate-from"
"""Label on the same Role: ``admin``, ``edit`` or ``view``, the level whose people get it."""

BINDING_OF = "helm.cattle.io/project-helm-chart-role-binding"
"""Label on a RoleBinding that Tenantry made for such a Role: the name of the release."""

LEVEL_TAKEN_FROM = "tenantry.dev/level-taken-from"
"""Annotation on such a RoleBinding, ``<level>=<ClusterRole>``: its people are those of that ClusterRole (decision 30)."""

ROLES_BOUND_CONDITION = "tenantry.dev/RolesBound"
"""Condition on a ProjectHelmChart that says why a Role of its release is not bound; absent when all is well."""

NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""Label that the API server puts on every namespace; who creates one owns it, so it is part of what we want."""

SYSTEM_NAMESPACE = "tenantry-system"
"""Where the functions and their ServiceAccounts live."""

ONE_MACHINE = {"app.kubernetes.io/component": "one-machine"}
"""Label of the Lease that `tenantry up` has while it serves a cluster."""

HELM_JOB_ROLE = "tenantry-helm-job"
"""The ClusterRole of ours for the Jobs that run Helm: what an admin of one namespace may do."""

CLUSTER_ADMIN = "cluster-admin"
"""Kubernetes' own ClusterRole with all rights."""

REGISTRATION_PREFIX = "cattle-project-"
HARDENING_POLICY = "hpo-generated-default"
DEFAULT_SERVICE_ACCOUNT = "default"

NAMESPACE_NAME_LIMIT = 63  # RFC 1123 label
PROJECT_ID_LIMIT = NAMESPACE_NAME_LIMIT - len(REGISTRATION_PREFIX)


def field_manager(function: str) -> str:
    """The field manager of a function."""
    return f"tenantry-{function}"
