"""What Helm's account may do, and for how long: the rights of its release's namespace, while a Job has not ended.

A binding is made before its Job, and goes when the Job has ended for good.  Each Job that ended takes its binding along, even
when the next Job is about to follow: so a deletion by somebody who saw an older state never meets the binding of a newer Job.
What a process that was killed leaves, or a HelmChart that moved to another namespace or owner, is a `StrayBinding`: the sweep
finds it by its label.  Rules: checks a-1 to a-4 and a-46.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from release_provisioning.jobs import manifest
from release_provisioning.jobs.seen import OWNER_NAME, ObservedHelmChart, binds_only, is_managed, is_of_chart, outcome_of
from tenantry.model.config import Config
from tenantry.model.difference import owns
from tenantry.model.kinds import CLUSTER_ROLE_BINDING, ROLE_BINDING, Kind, Object, annotations_of, is_terminating, labels_of
from tenantry.model.leftovers import Leftovers
from tenantry.model.names import CHART_LABEL, HELM_API_VERSION, OPERATED, PROJECT_CHART
from tenantry.model.plan import NOTHING, Apply, Delete, KubernetesEvent, Plan, Write, plan_of
from tenantry.model.projects import RELEASE_MANAGER

_CONTROLLER = "helmProjectOperator.helmController"


def is_of_project(chart: Object) -> bool:
    """Whether a HelmChart is that of a ProjectHelmChart.

    Only release-provisioning and administrators write HelmCharts.  Any of its marks will do, so that none that is taken off by
    hand gives Helm more rights.
    """
    marks = {PROJECT_CHART, HELM_API_VERSION} & set(annotations_of(chart))
    return bool(marks) or OPERATED in labels_of(chart) or owns(chart, RELEASE_MANAGER, "spec")


def job_setting(chart: Object, config: Config) -> tuple[str, str]:
    """The setting, as its path in the file, that names the ClusterRole for the Job's account; and that ClusterRole.

    It is that of the configured chart, else that of the installation.  A HelmChart can only choose among what the configuration
    names: it can never ask for a role.
    """
    operator = config.helm_project_operator
    wanted = annotations_of(chart).get(HELM_API_VERSION, "")
    path, role = f"{_CONTROLLER}.administratorsClusterRole", operator.helm_controller.administrators_cluster_role
    if is_of_project(chart):
        charts = ((number, each) for number, each in enumerate(operator.charts) if each.helm_api_version == wanted)
        named = ((f"helmProjectOperator.charts[{number}].jobClusterRole", each.job_cluster_role) for number, each in charts)
        path, role = next(named, ("", ""))
    return (path, role) if role else (f"{_CONTROLLER}.jobClusterRole", operator.helm_controller.job_cluster_role)


def job_role(chart: Object, config: Config) -> str:
    """The ClusterRole for the Job's account."""
    return job_setting(chart, config)[1]


def reaches_everywhere(chart: Object, config: Config) -> bool:
    """Whether Helm's account gets its role in all namespaces: only where the configuration says ``cluster-admin``."""
    return manifest.binding_kind(job_role(chart, config)) is CLUSTER_ROLE_BINDING


def is_working(seen: ObservedHelmChart) -> bool:
    """Whether a Job has not ended, and so needs its rights; also one that was deleted and finishes."""
    return any(outcome_of(job) == "running" and is_of_chart(job, seen) for job in seen.jobs)


def bindings_of(seen: ObservedHelmChart) -> list[tuple[Kind, Object]]:
    """The existing bindings of the account and of nobody else."""
    found = ((ROLE_BINDING, seen.role_binding), (CLUSTER_ROLE_BINDING, seen.binding))
    return [(kind, live) for kind, live in found if live is not None and binds_only(live, seen.namespace, seen.name)]


def withdrawn(seen: ObservedHelmChart, *, idle: bool = False) -> tuple[Delete, ...]:
    """The end of rights that no Job needs any more; ``idle`` says that none is about to be made where there is none."""
    if is_working(seen) or not (seen.jobs or idle):
        return ()
    return tuple(Delete(kind, live) for kind, live in bindings_of(seen) if not is_terminating(live))


def given(seen: ObservedHelmChart, config: Config) -> list[tuple[Write, ...]]:
    """Stages that give the account its role, there and nowhere else."""
    role = job_role(seen.existing, config)
    wanted = manifest.binding(seen.existing, role)
    kind = manifest.binding_kind(role)
    live = seen.binding if kind is CLUSTER_ROLE_BINDING else seen.role_binding
    if live is not None and live.get("roleRef") != wanted["roleRef"]:
        note = f"the account of the Job is bound to ClusterRole {role} instead of {(live.get('roleRef') or {}).get('name')}"
        return [(Delete(kind, live, KubernetesEvent(seen.existing, "RoleChanged", note, "Bind")),)]
    others = tuple(Delete(other, found) for other, found in bindings_of(seen) if other is not kind and not is_terminating(found))
    return [(Apply(kind, wanted, live),), others]


@dataclass(frozen=True, slots=True)
class StrayBinding:
    """A binding of Helm's account that may be of no use: for the HelmChart ``name`` of the namespace ``system``.

    ``namespace`` is empty for a ClusterRoleBinding.
    """

    namespace: str
    name: str
    system: str
    binding: Object | None = None
    chart: Object | None = None
    jobs: tuple[Object, ...] = ()
    leftovers: Leftovers = field(default_factory=Leftovers)


def is_minded(chart: Object | None, namespace: str, config: Config) -> bool:
    """Whether the run for a HelmChart looks at its binding there, so that nobody else has to."""
    return chart is not None and is_managed(chart, config) and namespace in ("", manifest.target_namespace(chart))


def plan_stray(stray: StrayBinding, config: Config) -> Plan:
    """Delete a binding of ours that no Job needs; a Job of a HelmChart that another controller takes over finishes with it."""
    live = stray.binding
    if live is None or is_terminating(live) or is_minded(stray.chart, stray.namespace, config):
        return NOTHING
    ours = owns(live, RELEASE_MANAGER, "metadata", "labels", CHART_LABEL) and OWNER_NAME not in annotations_of(live)
    if not ours or not binds_only(live, stray.system, stray.name):
        return NOTHING
    working = (job for job in stray.jobs if outcome_of(job) == "running")
    if stray.chart is not None and any(stray.namespace in ("", manifest.target_of(job)) for job in working):
        return NOTHING
    return plan_of(Delete(ROLE_BINDING if stray.namespace else CLUSTER_ROLE_BINDING, live))
