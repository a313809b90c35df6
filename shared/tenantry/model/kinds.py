"""Kinds and keys: how an object is named.

A `Kind` says how the API server serves a kind (plural and scope are constants of ours: no discovery for
kinds that we know).  A `Key` names one object.  Keys are all that an event may tell a function.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

Object = dict[str, Any]
"""A Kubernetes object as decoded JSON.  Foreign objects stay dictionaries."""


@dataclass(frozen=True, slots=True)
class Kind:
    """How one kind is served: group, version, kind, plural resource name and scope."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool = True

    @property
    def group(self) -> str:
        """The API group; empty for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def resource(self) -> str:
        """The plural with its group, as ``kubectl`` takes it: ``deployments.apps``; ``pods`` in the core group."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def gvk(self) -> tuple[str, str]:
        """apiVersion and kind."""
        return self.api_version, self.kind

    def path(self, namespace: str = "", name: str = "") -> str:
        """The URL path of a collection or, with a name, of one object; names from events are quoted."""
        root = f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"
        scope = f"/namespaces/{quote(namespace, safe=':')}" if self.namespaced and namespace else ""
        return f"{root}{scope}/{self.plural}" + (f"/{quote(name, safe=':')}" if name else "")

    def __str__(self) -> str:
        return f"{self.kind}.{self.api_version}"


def can_be_name(text: str) -> bool:
    """Whether an object, of whatever kind, can have this name: a segment of a path (apimachinery's IsValidPathSegmentName).

    The API server decodes a path before it divides it, so that quoting alone would let ``/`` ask for a whole list.
    """
    return text not in ("", ".", "..") and "/" not in text and "%" not in text


_ADMISSION = "admissionregistration.k8s.io/v1"

NAMESPACE = Kind("v1", "Namespace", "namespaces", namespaced=False)
CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps")
SECRET = Kind("v1", "Secret", "secrets")
SERVICE_ACCOUNT = Kind("v1", "ServiceAccount", "serviceaccounts")
RESOURCE_QUOTA = Kind("v1", "ResourceQuota", "resourcequotas")
DEPLOYMENT = Kind("apps/v1", "Deployment", "deployments")
STATEFUL_SET = Kind("apps/v1", "StatefulSet", "statefulsets")
DAEMON_SET = Kind("apps/v1", "DaemonSet", "daemonsets")
NETWORK_POLICY = Kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies")
EVENT = Kind("events.k8s.io/v1", "Event", "events")
ROLE = Kind("rbac.authorization.k8s.io/v1", "Role", "roles")
ROLE_BINDING = Kind("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings")
CLUSTER_ROLE = Kind("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", namespaced=False)
CLUSTER_ROLE_BINDING = Kind("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False)
ADMISSION_POLICY = Kind(_ADMISSION, "ValidatingAdmissionPolicy", "validatingadmissionpolicies", namespaced=False)
ADMISSION_POLICY_BINDING = Kind(
    _ADMISSION, "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", namespaced=False
)
ADMISSION_MUTATION = Kind(_ADMISSION, "MutatingAdmissionPolicy", "mutatingadmissionpolicies", namespaced=False)
ADMISSION_MUTATION_BINDING = Kind(
    _ADMISSION, "MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings", namespaced=False
)
CUSTOM_RESOURCE_DEFINITION = Kind(
    "apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)
# The scope kinds are served in two groups by the same code; the names without suffix are of the main one, and come last.
SCOPE_TEMPLATE_FRAMEWORK = Kind("operators.io.operator-framework/v1alpha1", "ScopeTemplate", "scopetemplates", namespaced=False)
SCOPE_INSTANCE_FRAMEWORK = Kind("operators.io.operator-framework/v1alpha1", "ScopeInstance", "scopeinstances", namespaced=False)
SCOPE_TEMPLATE = Kind("operators.coreos.com/v1alpha1", "ScopeTemplate", "scopetemplates", namespaced=False)
SCOPE_INSTANCE = Kind("operators.coreos.com/v1alpha1", "ScopeInstance", "scopeinstances", namespaced=False)
CLUSTER_SERVICE_VERSION = Kind("operators.coreos.com/v1alpha1", "ClusterServiceVersion", "clusterserviceversions")
OPERATOR_GROUP = Kind("operators.coreos.com/v1", "OperatorGroup", "operatorgroups")
NAMESPACE_SCOPE = Kind("operator.ibm.com/v1", "NamespaceScope", "namespacescopes")
VALIDATING_WEBHOOKS = Kind(_ADMISSION, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", namespaced=False)
MUTATING_WEBHOOKS = Kind(_ADMISSION, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", namespaced=False)
HORIZONTAL_POD_AUTOSCALER = Kind("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers")
API_SERVER_SOURCE = Kind("sources.knative.dev/v1", "ApiServerSource", "apiserversources")
PROJECT_HELM_CHART = Kind("helm.cattle.io/v1alpha1", "ProjectHelmChart", "projecthelmcharts")
HELM_CHART = Kind("helm.cattle.io/v1", "HelmChart", "helmcharts")
HELM_CHART_CONFIG = Kind("helm.cattle.io/v1", "HelmChartConfig", "helmchartconfigs")
JOB = Kind("batch/v1", "Job", "jobs")
POD = Kind("v1", "Pod", "pods")
LEASE = Kind("coordination.k8s.io/v1", "Lease", "leases")
HELM_RELEASE = Kind("helm.cattle.io/v1alpha1", "HelmRelease", "helmreleases")


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """The name of one object: apiVersion, kind, namespace (empty when cluster-scoped) and name."""

    api_version: str
    kind: str
    namespace: str
    name: str

    @property
    def gvk(self) -> tuple[str, str]:
        """apiVersion and kind."""
        return self.api_version, self.kind

    def __str__(self) -> str:
        where = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {where}"


def key_in(kind: Kind, name: str, namespace: str) -> Key:
    """The key of an object of a kind; of a cluster-scoped one whatever namespace is asked for."""
    return Key(kind.api_version, kind.kind, namespace if kind.namespaced else "", name)


def key_of(obj: Mapping[str, Any]) -> Key:
    """The key of an object that has apiVersion, kind and metadata."""
    metadata = obj["metadata"]
    return Key(obj["apiVersion"], obj["kind"], metadata.get("namespace") or "", metadata["name"])


def object_of(kind: Kind, metadata: Mapping[str, Any], **parts: Any) -> Object:
    """An object of a kind."""
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": dict(metadata), **parts}


def name_metadata(obj: Mapping[str, Any]) -> Object:
    """The metadata that names an object: its name, and its namespace if it has one."""
    return {part: obj["metadata"][part] for part in ("name", "namespace") if part in obj["metadata"]}


def labels_of(obj: Mapping[str, Any] | None) -> Mapping[str, str]:
    """The labels of an object; empty when there are none or no object."""
    return ((obj or {}).get("metadata") or {}).get("labels") or {}


def annotations_of(obj: Mapping[str, Any] | None) -> Mapping[str, str]:
    """The annotations of an object; empty when there are none or no object."""
    return ((obj or {}).get("metadata") or {}).get("annotations") or {}


def finalizers_of(obj: Mapping[str, Any] | None) -> Sequence[str]:
    """The finalizers of an object; empty when there are none or no object."""
    return ((obj or {}).get("metadata") or {}).get("finalizers") or ()


def is_terminating(obj: Mapping[str, Any] | None) -> bool:
    """True when deletion of the object was asked for."""
    return bool(((obj or {}).get("metadata") or {}).get("deletionTimestamp"))


def declared(obj: Object) -> Hashable:
    """What of an object is no status: it differs when another object has the name, or spec, labels or annotations change.

    Of the spec it has the generation, which the API server counts.  No finalizers.
    """
    metadata = obj["metadata"]
    marks = (tuple(sorted(found.items())) for found in (labels_of(obj), annotations_of(obj)))
    return metadata["uid"], metadata.get("generation"), metadata.get("deletionTimestamp"), *marks
