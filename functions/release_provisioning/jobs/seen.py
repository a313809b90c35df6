"""What is observed of one HelmChart, and which objects are of it: the values that plans and reports decide on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from release_provisioning.jobs import manifest
from tenantry.model.config import Config
from tenantry.model.kinds import HELM_CHART, Object, annotations_of, finalizers_of, labels_of
from tenantry.model.leftovers import Leftovers
from tenantry.model.names import CHART_LABEL, CHART_MANAGED_BY, CHART_UNMANAGED, HELM_CHART_FINALIZER

OWNER_NAME = "objectset.rio.cattle.io/owner-name"
"""Annotation of what another Helm controller has made."""

Result = Literal["running", "complete", "failed"]
JobProblem = tuple[str, str]


@dataclass(frozen=True, slots=True)
class ObservedHelmChart:
    """One HelmChart with what runs Helm for it; for one that is not ours nothing more is read."""

    namespace: str
    name: str
    chart: Object | None
    further: Object | None = None
    """The HelmChartConfig of the same name."""
    secret: Object | None = None
    content: Object | None = None
    account: Object | None = None
    binding: Object | None = None
    """The ClusterRoleBinding of Helm's account."""
    install: Object | None = None
    delete: Object | None = None
    secrets: Mapping[str, Object | None] = field(default_factory=dict)
    pods: tuple[Object, ...] = ()
    target: Object | None = None
    """The namespace of the release, read when the HelmChart is being deleted."""
    ending: bool = False
    """Whether the HelmChart's own namespace is being deleted."""
    waited_s: float = 0.0
    """How long a HelmChart that is being deleted has waited for what it waits for now."""
    plain: bool = False
    """Whether the CRD is another manager's, whose conditions have no times and whose status no generation."""
    wanted: Object | None = None
    """The Job of a HelmChart that is ours and stays, worked out once for plan and report: its digest is of megabytes."""
    problem: JobProblem | None = None
    """What the user must change before Helm can run, as reason and message that name the field and the fix."""
    role_binding: Object | None = None
    """The RoleBinding of Helm's account in the namespace of the release."""
    homeless: bool = False
    """Of a HelmChart that stays: whether its account lacks a binding in a namespace that does not exist, or is being deleted."""
    leftovers: Leftovers = field(default_factory=Leftovers)
    """Of a HelmChart that is deleted: what is to be deleted after it."""

    @property
    def existing(self) -> Object:
        """The HelmChart, where it is known to exist."""
        assert self.chart is not None
        return self.chart

    @property
    def jobs(self) -> tuple[Object, ...]:
        """The Jobs that exist."""
        return tuple(job for job in (self.install, self.delete) if job is not None)

    @property
    def install_job(self) -> str:
        """The Job that installs and upgrades, for messages."""
        return f"Job {self.namespace}/{manifest.Names(self.namespace, self.name).install}"

    @property
    def delete_job(self) -> str:
        """The Job that uninstalls, for messages."""
        return f"Job {self.namespace}/{manifest.Names(self.namespace, self.name).delete}"


def is_managed(chart: Object, config: Config) -> bool:
    """Whether this HelmChart is for us: named after us, or nobody's yet and asking for something (spec 1.5)."""
    operator, annotations, spec = config.helm_project_operator, annotations_of(chart), manifest.spec_of(chart)
    if not operator.helm_controller.enabled or chart["metadata"]["namespace"] != operator.system_namespace:
        return False
    if CHART_UNMANAGED in annotations:
        return False
    if not (spec.get("chart") or spec.get("chartContent") or HELM_CHART_FINALIZER in finalizers_of(chart)):
        return False
    return annotations.get(CHART_MANAGED_BY, operator.controller_name) == operator.controller_name


def outcome_of(job: Object) -> Result:
    """What a Job's conditions say of it; complete and failed are final, and then no pod of it works any more."""
    true = {found["type"] for found in (job.get("status") or {}).get("conditions") or () if found.get("status") == "True"}
    return "complete" if "Complete" in true else "failed" if "Failed" in true else "running"


def is_of_chart(obj: Object, seen: ObservedHelmChart) -> bool:
    """Made for this HelmChart: by us, or by a Helm controller before us."""
    owners = obj["metadata"].get("ownerReferences") or ()
    if any(owner.get("kind") == HELM_CHART.kind and owner.get("name") == seen.name for owner in owners):
        return True
    applied = annotations_of(obj)
    by_record = applied.get(OWNER_NAME) == seen.name and "HelmChart" in applied.get("objectset.rio.cattle.io/owner-gvk", "")
    return by_record or labels_of(obj).get(CHART_LABEL) == seen.name


def binds_only(binding: Object, namespace: str, name: str) -> bool:
    """Whether a binding is about the account of this HelmChart and nobody else."""
    subjects = [(one.get("kind"), one.get("namespace"), one.get("name")) for one in binding.get("subjects") or ()]
    ours = all(subject == ("ServiceAccount", namespace, manifest.Names(namespace, name).account) for subject in subjects)
    return ours and (bool(subjects) or labels_of(binding).get(CHART_LABEL) == name)
