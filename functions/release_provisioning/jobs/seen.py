"""What is seen of one HelmChart, and what of it is whose: the values that plans and reports decide on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from release_provisioning.jobs import manifest
from tenantry.model.config import Config
from tenantry.model.kinds import HELM_CHART, Object, annotations_of, labels_of
from tenantry.model.leftovers import Leftovers
from tenantry.model.names import CHART_LABEL, CHART_MANAGED_BY, CHART_UNMANAGED, HELM_CHART_FINALIZER, field_manager

MANAGER = field_manager("release-provisioning")

Result = Literal["running", "complete", "failed"]
Problem = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a HelmChart that stays comes to, worked out once for plan and report: its digest is of megabytes."""

    job: Object
    problem: Problem | None
    """What the user must change before Helm can be run, as reason and message that name the field and the fix."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One HelmChart as it is, with what runs Helm for it; for one that is not ours nothing more is read."""

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
    """The namespace of the release, read when the HelmChart is on its way out."""
    ending: bool = False
    """Whether the HelmChart's own namespace is on its way out."""
    waited_s: float = 0.0
    """How long a HelmChart on its way out has waited for what it waits for now."""
    plain: bool = False
    """Whether the CRD is another manager's, whose conditions have no times and whose status no generation."""
    wanted: Wanted | None = None
    """Of a HelmChart that is ours and stays."""
    role_binding: Object | None = None
    """The RoleBinding of Helm's account in the namespace of the release."""
    homeless: bool = False
    """Of a HelmChart that stays: whether its account lacks a binding in a namespace that is not there, or on its way out."""
    leftovers: Leftovers = field(default_factory=Leftovers)
    """Of a HelmChart that is gone: what goes after it."""

    @property
    def jobs(self) -> tuple[Object, ...]:
        """The Jobs that there are."""
        return tuple(job for job in (self.install, self.delete) if job is not None)


def is_managed(chart: Object, config: Config) -> bool:
    """Whether this HelmChart is for us: named after us, or nobody's yet and asking for something (spec 1.5)."""
    operator = config.helm_project_operator
    if not operator.helm_controller.enabled or chart["metadata"]["namespace"] != operator.system_namespace:
        return False
    annotations = annotations_of(chart)
    if CHART_UNMANAGED in annotations:
        return False
    held = HELM_CHART_FINALIZER in finalizers_of(chart)
    spec = manifest.spec_of(chart)
    if not (spec.get("chart") or spec.get("chartContent") or held):
        return False
    return annotations.get(CHART_MANAGED_BY, operator.controller_name) == operator.controller_name


def finalizers_of(obj: Object) -> Sequence[str]:
    """The finalizers of an object."""
    found: list[str] = obj["metadata"].get("finalizers") or []
    return found


def outcome_of(job: Object) -> Result:
    """What a Job's conditions say of it; complete and failed are for good, and then no pod of it works any more."""
    true = {found["type"] for found in (job.get("status") or {}).get("conditions") or () if found.get("status") == "True"}
    return "complete" if "Complete" in true else "failed" if "Failed" in true else "running"


def is_of_chart(obj: Object, seen: Seen) -> bool:
    """Made for this HelmChart: by us, or by a Helm controller before us."""
    if labels_of(obj).get(CHART_LABEL) == seen.name:
        return True
    owners = obj["metadata"].get("ownerReferences") or ()
    by_owner = any(owner.get("kind") == HELM_CHART.kind and owner.get("name") == seen.name for owner in owners)
    applied = annotations_of(obj)
    by_record = applied.get("objectset.rio.cattle.io/owner-name") == seen.name and "HelmChart" in applied.get(
        "objectset.rio.cattle.io/owner-gvk", ""
    )
    return by_owner or by_record


def binds_only(binding: Object, namespace: str, name: str) -> bool:
    """Whether a binding is about the account of this HelmChart and nobody else."""
    subjects = [(one.get("kind"), one.get("namespace"), one.get("name")) for one in binding.get("subjects") or ()]
    return all(subject == ("ServiceAccount", namespace, manifest.account_name(name)) for subject in subjects) and (
        bool(subjects) or labels_of(binding).get(CHART_LABEL) == name
    )
