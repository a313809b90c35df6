"""The configuration file, typed: the value names of the Helm Project Operator's chart are kept.

Unknown keys and wrong types are errors with the key's path; nothing is guessed.  What a setting means is
written beside it, and `tenantry config show` prints the values in force.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    StrictBool,
    Tag,
    field_validator,
    model_validator,
)
from pydantic.alias_generators import to_camel

from tenantry.model import limits
from tenantry.model.decision_settings import DecisionSettings
from tenantry.model.identifiers import is_dns_label, is_dns_subdomain, is_label_key, is_label_value
from tenantry.model.names import ADOPT, CLUSTER_ADMIN, HELM_JOB_ROLE, NAMESPACE_NAME, OPERATED, ORPHANED, PROJECT_ID

_GROUP_LIMIT = 63
_KUBERNETES_OWN = "kube-root-ca.crt"
"""A ConfigMap that Kubernetes keeps in every namespace."""
_RELEASE_NAME_LIMIT = 48
"""Of the 50 characters of a release's name: one for a dash, and one at least for that of a ProjectHelmChart."""


def _only(accepted: Callable[[str], bool], what: str) -> AfterValidator:
    def check(value: str) -> str:
        if not accepted(value):
            raise ValueError(f"{value!r} is not {what}")
        return value

    return AfterValidator(check)


def _is_account(value: str) -> bool:
    namespace, _, name = value.partition("/")
    return is_dns_label(namespace) and name != "" and "/" not in name


_A_LABEL_KEY = "a label key such as field.cattle.io/projectId"

DnsLabel = Annotated[str, _only(is_dns_label, "a DNS label (lower-case letters, digits and dashes)")]
LabelKey = Annotated[str, _only(is_label_key, _A_LABEL_KEY)]
LabelValue = Annotated[str, _only(is_label_value, "a label value (letters, digits, dots, dashes, underscores; at most 63)")]
Account = Annotated[str, _only(_is_account, "a ServiceAccount as namespace/name")]


class Section(BaseModel):
    """A part of the file: frozen, and closed to unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, alias_generator=to_camel)


class Cattle(Section):
    """``global.cattle``: how projects are recognised."""

    project_label: Annotated[str, _only(lambda key: not key or is_label_key(key), _A_LABEL_KEY)] = "field.cattle.io/projectId"
    """Label key whose value is the project id; empty turns on single-namespace mode."""
    cluster_id: str = ""
    """Prefix in the project annotation: ``<clusterId>:<projectId>``."""
    system_project_id: LabelValue = ""
    """The system project; also the default of ``projectReleaseNamespaces.labelValue``."""
    system_default_registry: str = ""
    url: str = ""


class Global(Section):
    """``global``."""

    cattle: Cattle = Cattle()


class RepoChart(Section):
    """A chart in a repository: all three or none (hpo-54)."""

    repo: str
    name: str
    version: str


def _chart_form(value: Any) -> str | None:
    if isinstance(value, str | PurePosixPath):
        return "(path)" if str(value) else None
    return "(repository)" if isinstance(value, dict | RepoChart) else None


ChartSource = Annotated[
    Annotated[PurePosixPath, Tag("(path)")] | Annotated[RepoChart, Tag("(repository)")],
    Discriminator(
        _chart_form,
        custom_error_type="chart_form",
        custom_error_message="must be the path of a folder or .tgz, or a mapping with repo, name and version",
    ),
]


class Chart(Section):
    """One chart that projects may ask for: the operator identity of upstream, as configuration."""

    helm_api_version: str
    """``spec.helmApiVersion`` of the ProjectHelmCharts that ask for it, such as ``dummy.cattle.io/v1alpha1``."""
    release_name: DnsLabel
    chart: ChartSource | None = None
    """A folder or .tgz, or ``{repo, name, version}``; without it the built-in example chart."""
    singleton: StrictBool = False
    """At most one ProjectHelmChart per registration namespace."""
    values_override: dict[str, Any] = {}
    job_cluster_role: str = ""
    """The ClusterRole for the Jobs that run Helm for this chart; empty for ``helmController.jobClusterRole``, which see."""

    @field_validator("helm_api_version")
    @classmethod
    def _group_version(cls, value: str) -> str:
        group, _, version = value.partition("/")
        if not is_dns_subdomain(group) or not is_dns_label(version):
            raise ValueError(f"{value!r} is not a group and version such as dummy.cattle.io/v1alpha1")
        if len(group) > _GROUP_LIMIT:
            raise ValueError(
                f"{value!r}: the part before the slash has {len(group)} characters, and at most {_GROUP_LIMIT} fit into the "
                "label that HelmCharts and HelmReleases get"
            )
        if value.replace("/", ".") == _KUBERNETES_OWN:
            raise ValueError(f"{value!r}: the chart's ConfigMap would be called {_KUBERNETES_OWN}, which is Kubernetes' own")
        return value

    @field_validator("release_name")
    @classmethod
    def _leaves_room(cls, value: str) -> str:
        if len(value) > _RELEASE_NAME_LIMIT:
            raise ValueError(
                f"{value!r} has {len(value)} characters, and at most {_RELEASE_NAME_LIMIT} leave room for the name of a "
                "ProjectHelmChart in the name of a release"
            )
        return value

    @property
    def reference(self) -> RepoChart | None:
        """The chart's place in a repository; None for one that is embedded into HelmCharts."""
        return self.chart if isinstance(self.chart, RepoChart) else None

    @property
    def helm_api_group(self) -> str:
        """``helmApiVersion`` before the slash: the label on HelmCharts and HelmReleases."""
        return self.helm_api_version.partition("/")[0]

    @property
    def config_map_name(self) -> str:
        """Name of the ConfigMap with the chart's values and questions in registration namespaces."""
        return self.helm_api_version.replace("/", ".")


class ProjectReleaseNamespaces(Section):
    """Dedicated namespaces for releases, and the project that they are put into."""

    enabled: StrictBool = True
    """False puts releases into the registration namespaces: their owners then hold Helm's records and all Secrets of them."""
    label_value: LabelValue = ""
    """The project of these namespaces; empty for ``global.cattle.systemProjectId``, and without that for no project."""


class ClusterRoleRefs(Section):
    """The ClusterRoles whose bindings are aggregated; an empty name turns a level off."""

    admin: str = "admin"
    edit: str = "edit"
    view: str = "view"


class ReleaseRoleBindings(Section):
    """Aggregation of rights into release namespaces."""

    aggregate: StrictBool = True
    cluster_role_refs: ClusterRoleRefs = ClusterRoleRefs()


class LocalObjectReference(Section):
    """A Secret by name."""

    name: str


class ServiceAccountSpec(Section):
    """What the ``default`` ServiceAccount of a hardened namespace gets."""

    automount_service_account_token: StrictBool = False
    secrets: tuple[LocalObjectReference, ...] = ()
    image_pull_secrets: tuple[LocalObjectReference, ...] = ()


def _deny_all() -> dict[str, Any]:
    return {"podSelector": {}, "policyTypes": ["Ingress", "Egress"], "ingress": [], "egress": []}


class HardeningConfiguration(Section):
    """The hardening objects."""

    service_account_spec: ServiceAccountSpec = ServiceAccountSpec()
    network_policy_spec: dict[str, Any] = Field(default_factory=_deny_all)
    """A whole NetworkPolicy spec; it replaces the default, which denies all ingress and egress."""


class HardenedNamespaces(Section):
    """Hardening of the namespaces that Tenantry makes."""

    enabled: StrictBool = True
    configuration: HardeningConfiguration = HardeningConfiguration()


class HelmController(Section):
    """``helmController``: who runs Helm for a HelmChart, and with what."""

    enabled: StrictBool = True
    """False leaves the HelmCharts to another controller, named by ``externalControllerName``."""
    external_controller_name: str = "helm-controller"
    """The name in the managed-by annotation of HelmCharts while this one is not enabled."""
    job_image: str = ""
    """The image of the Jobs that run Helm; empty for the one of this release."""
    job_cluster_role: str = Field(HELM_JOB_ROLE, min_length=1)
    """The ClusterRole that the account of such a Job has in the namespace of its release, while the Job runs, unless the chart
    names its own.  Only ``cluster-admin`` holds in all namespaces."""
    administrators_cluster_role: str = CLUSTER_ADMIN
    """The same for HelmCharts that administrators made themselves, which the usual controller gives ``cluster-admin``; empty for
    ``jobClusterRole``."""
    quiet_seconds: int = Field(2, ge=0, le=5, strict=True)
    """How long chart and values must stay as they are before Helm runs again: many changes in a row are one upgrade.  A run
    waits at most four times as long, well below the deadline of an event."""


class HelmLocker(Section):
    """Locks on releases."""

    enabled: StrictBool = True
    failed_grace_seconds: int = Field(60, ge=0, strict=True)
    """How long after a failed upgrade the last deployed revision is not enforced: time for a rollback."""
    interrupted_grace_seconds: int = Field(3600, ge=0, strict=True)
    """When an upgrade that never ended counts as interrupted.  Longer than any Helm operation may take."""


class HelmProjectOperator(Section):
    """``helmProjectOperator``: projects, their charts and their namespaces."""

    system_namespace: DnsLabel = "cattle-helm-system"
    """Where HelmCharts and HelmReleases live; the registration namespace in single-namespace mode."""
    system_namespaces: tuple[str, ...] = ("kube-system",)
    """Further namespaces that never belong to a project."""
    controller_name: str = "helm-project-operator"
    charts: tuple[Chart, ...] = Field(
        default=(Chart(helm_api_version="dummy.cattle.io/v1alpha1", release_name="dummy"),), min_length=1
    )
    project_release_namespaces: ProjectReleaseNamespaces = ProjectReleaseNamespaces()
    other_system_project_label_values: tuple[str, ...] = ()
    """Deny list of project ids."""
    release_role_bindings: ReleaseRoleBindings = ReleaseRoleBindings()
    hardened_namespaces: HardenedNamespaces = HardenedNamespaces()
    helm_controller: HelmController = HelmController()
    helm_locker: HelmLocker = HelmLocker()
    values_override: dict[str, Any] = {}
    namespace_labels: dict[LabelKey, LabelValue] = {}
    """Extra labels on namespaces that Tenantry makes, for clusters whose policies ask for an owner."""
    namespace_annotations: dict[str, str] = {}

    @field_validator("charts")
    @classmethod
    def _distinct(cls, value: tuple[Chart, ...]) -> tuple[Chart, ...]:
        names = [chart.config_map_name for chart in value]
        if len(set(names)) != len(names):
            raise ValueError("two charts have the same helmApiVersion: each needs its own")
        return value


class NamespaceScopeSettings(Section):
    """``scopeBinding.namespaceScope``: how NamespaceScopes give rights in member namespaces."""

    projection: Literal["managed", "own-roles"] = "managed"
    """``managed``: one Role bounded by the member's consent; ``own-roles``: copies of each account's own Roles within it."""
    consent_accounts: tuple[Account, ...] = ()
    """Further ServiceAccounts, as ``namespace/name``, that a consent may be bound to; ``ibm-namespace-scope-operator`` in the
    NamespaceScope's own namespace and the function's own account always count."""

    @property
    def agreed_accounts(self) -> frozenset[tuple[str, str]]:
        """The further accounts as (namespace, name)."""
        return frozenset((found.partition("/")[0], found.partition("/")[2]) for found in self.consent_accounts)


class Olm(Section):
    """``scopeBinding.olm``: scopes made from the OperatorGroups and ClusterServiceVersions of OLM."""

    enabled: StrictBool = False
    """Also needs the label ``scope-binding/olm-compat: "true"`` on each OperatorGroup that takes part."""


class SelectorChange(Section):
    """``scopeBinding.selectorChange``: how much a changed ``namespaceSelector`` of a ScopeInstance takes without being asked.

    A change that takes more than both waits until an administrator accepts it; with 100 percent none does.
    """

    bindings: int = Field(20, ge=0, strict=True)
    """How many bindings it may take from namespaces that it matches no more."""
    percent: int = Field(10, ge=0, le=100, strict=True)
    """How many of all bindings of the instance that may be, in percent."""


class ScopeBinding(Section):
    """``scopeBinding``: where operators may act."""

    selector_change: SelectorChange = SelectorChange()
    namespace_scope: NamespaceScopeSettings = NamespaceScopeSettings()
    olm: Olm = Olm()


class Flux(Section):
    """``flux``: who may use which source of Flux."""

    max_grants: Annotated[int, Field(strict=True, ge=1, le=limits.GRANTS)] = limits.GRANTS
    """Sources with grants in the AccessIndex; from four fifths of it on the index says so."""


class Config(Section):
    """The whole file."""

    global_: Global = Field(Global(), alias="global")
    helm_project_operator: HelmProjectOperator = HelmProjectOperator()
    scope_binding: ScopeBinding = ScopeBinding()
    flux: Flux = Flux()
    decisions: DecisionSettings = DecisionSettings()

    @model_validator(mode="after")
    def _marks_are_ours(self) -> Self:
        operator = self.helm_project_operator
        labels = {OPERATED, PROJECT_ID, ORPHANED, NAMESPACE_NAME, self.project_label}
        if clash := labels & set(operator.namespace_labels):
            raise ValueError(f"helmProjectOperator.namespaceLabels may not set {min(clash)}")
        if clash := {ADOPT, self.project_label} & set(operator.namespace_annotations):
            raise ValueError(f"helmProjectOperator.namespaceAnnotations may not set {min(clash)}")
        return self

    @property
    def project_label(self) -> str:
        """The label key that defines projects; empty in single-namespace mode."""
        return self.global_.cattle.project_label

    @property
    def dedicated(self) -> bool:
        """Whether releases have namespaces of their own, which the owners of the project have no rights in."""
        return self.helm_project_operator.project_release_namespaces.enabled and bool(self.project_label)

    @property
    def release_project_id(self) -> str:
        """Project id that dedicated release namespaces get; empty when there are none, or they are put into no project."""
        if not self.dedicated:
            return ""
        return self.helm_project_operator.project_release_namespaces.label_value or self.global_.cattle.system_project_id

    @property
    def cluster_admins(self) -> tuple[str, ...]:
        """The settings that give Helm's Jobs all rights in all namespaces, as paths in the file."""
        return tuple(path for path, role in self._job_roles().items() if role == CLUSTER_ADMIN)

    @property
    def job_cluster_roles(self) -> frozenset[str]:
        """The ClusterRoles that accounts of Helm's Jobs may get."""
        return frozenset(self._job_roles().values()) - {""}

    def _job_roles(self) -> dict[str, str]:
        """The settings that name ClusterRoles for Helm's Jobs, as paths in the file; an empty one names none."""
        operator = self.helm_project_operator
        controller = operator.helm_controller
        named = {
            "helmController.jobClusterRole": controller.job_cluster_role,
            "helmController.administratorsClusterRole": controller.administrators_cluster_role,
            **{f"charts[{index}].jobClusterRole": chart.job_cluster_role for index, chart in enumerate(operator.charts)},
        }
        return {f"helmProjectOperator.{path}": role for path, role in named.items()}

    @property
    def denied_project_ids(self) -> frozenset[str]:
        """Project ids whose namespaces are system namespaces."""
        cattle, operator = self.global_.cattle, self.helm_project_operator
        ids = {cattle.system_project_id, self.release_project_id, *operator.other_system_project_label_values}
        return frozenset(ids - {""})

    @property
    def system_namespaces(self) -> frozenset[str]:
        """Namespaces that never belong to a project, by name."""
        operator = self.helm_project_operator
        return frozenset({operator.system_namespace, *operator.system_namespaces})
