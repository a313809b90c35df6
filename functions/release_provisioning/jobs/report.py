"""The status of a HelmChart: its Job, and the conditions ``JobCreated``, ``Failed`` and ``Installed``.

``Failed`` is False with the reasons Running, Retrying (with Helm's message) and Complete, and True when the Job gave up or
cannot be made; each new failure is a Warning Event, too.  ``Installed`` remembers whether Helm has ever worked on the
release.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from release_provisioning.jobs import manifest, rights
from release_provisioning.jobs.descriptor import HELM_JOBS
from release_provisioning.jobs.plan import delete_job_of, failure_of, has_run, is_outdated, last_word, taken_by
from release_provisioning.jobs.seen import JobProblem, ObservedHelmChart, is_managed, outcome_of
from tenantry.model.conditions import condition, find_condition
from tenantry.model.config import Config
from tenantry.model.kinds import (
    CLUSTER_ROLE_BINDING,
    HELM_CHART,
    ROLE_BINDING,
    Object,
    annotations_of,
    finalizers_of,
    is_terminating,
    name_metadata,
    object_of,
)
from tenantry.model.leftovers import report_leftovers
from tenantry.model.names import CHART_MANAGED_BY, CHART_UNMANAGED, HELM_CHART_FINALIZER
from tenantry.model.plan import NOTHING, Apply, KubernetesEvent, Plan, Refusal, plan_of
from tenantry.model.refusals import REASONS, first_of, fixes, message_of, text_of

FIXES = fixes(HELM_JOBS, invalid="correct the HelmChart")
_LACKS = re.compile(r"is forbidden: [Uu]ser ")
"""How the API server says that an account lacks a right."""
NOT_RUN = "Helm is not run"
ConditionText = tuple[Literal["True", "False"], str, str]


def report_chart(seen: ObservedHelmChart, refusals: Sequence[Refusal], config: Config) -> Plan:
    """The status of one HelmChart; of a deleted one, Warnings on what it left and may not be deleted."""
    chart = seen.chart
    if chart is None:
        return report_leftovers(seen.leftovers, refusals, HELM_JOBS, "jobs")
    if not is_managed(chart, config) or CHART_MANAGED_BY not in annotations_of(chart):
        return NOTHING
    leaving = is_terminating(chart)
    if leaving and (HELM_CHART_FINALIZER not in finalizers_of(chart) or seen.ending):
        return NOTHING
    if leaving and not refusals and delete_job_of(seen) is None and last_word(seen, config) is not None:
        return NOTHING  # its finalizer is taken off now, and the last word is an Event
    created, failed = _condition_texts(seen, refusals, config)
    # Whether there may be anything to uninstall: once true it stays true.
    installed: ConditionText = ("False", "NotYet", "Helm has not begun")
    if has_run(seen):
        installed = ("True", "HelmRan", "Helm has worked on the release")
    texts = {"JobCreated": created, "Failed": failed, "Installed": installed}
    status: Object = {"conditions": [condition(type_, *text) for type_, text in texts.items()]}
    names = manifest.names_of(chart)
    job = names.delete if leaving else names.install
    if job_name := job if created[0] == "True" else (chart.get("status") or {}).get("jobName"):
        status["jobName"] = job_name
    if not seen.plain:
        status["observedGeneration"] = int(chart["metadata"].get("generation", 0))
    wanted = object_of(HELM_CHART, name_metadata(chart), status=status)
    event = _event(chart, failed)
    return plan_of(Apply(HELM_CHART, wanted, chart, subresource="status", event=event, stamp=not seen.plain))


def _condition_texts(seen: ObservedHelmChart, refusals: Sequence[Refusal], config: Config) -> tuple[ConditionText, ConditionText]:
    chart = seen.existing
    leaving = is_terminating(chart)
    blocked = _refused(chart, refusals, leaving) if refusals else _hindered(seen) if leaving else seen.problem
    if blocked is not None:
        return ("False", blocked[0], NOT_RUN), ("True", *blocked)
    if seen.homeless and not seen.jobs:
        return ("False", "NamespaceMissing", NOT_RUN), _homeless(chart)
    job, does, which = seen.install, "installs or upgrades", seen.install_job
    if leaving:
        job, does, which = seen.delete, "uninstalls", seen.delete_job
    created: ConditionText = ("True", "JobCreated", f"Helm {does} with {which}")
    if job is None or _is_of_old(seen, job):
        return created, ("False", "Running", "Helm runs")
    result = outcome_of(job)
    if result == "complete":
        return created, ("False", "Complete", "Helm has done its work")
    if result == "failed":
        return created, ("True", "JobFailed", _failure(job, seen, config))
    if (job.get("status") or {}).get("failed"):
        return created, ("False", "Retrying", f"Helm failed and is tried again: {_failure(job, seen, config)}")
    return created, ("False", "Running", "Helm runs")


def _hindered(seen: ObservedHelmChart) -> JobProblem | None:
    """What keeps Helm from uninstalling: an object that is not of the HelmChart, or a Job that should long have ended."""
    if delete_job_of(seen) is not None:
        return None
    way_out = (
        f"or give the HelmChart the annotation {CHART_UNMANAGED}, and it goes without uninstalling. After "
        f"{manifest.DELETE_DEADLINE_S // 60} minutes it does so by itself"
    )
    if taken := taken_by(seen):
        binding = taken.startswith((CLUSTER_ROLE_BINDING.kind, ROLE_BINDING.kind))
        what = "take the other subjects off it" if binding else "delete it"
        return "NameTaken", f"{taken} is not of this HelmChart, so the release is not uninstalled: {what}, {way_out}"
    if seen.install is not None and is_terminating(seen.install) and seen.waited_s > manifest.GRACE_S:
        what = "so the release is not uninstalled: look at its pods and finalizers"
        return "JobNotEnding", f"{seen.install_job} was deleted and does not end, {what}, {way_out}"
    return None


def _homeless(chart: Object) -> ConditionText:
    """There is no namespace in which Helm's account could have rights; a project's release gets its own soon."""
    namespace = manifest.target_namespace(chart)
    what = f"Helm's account has rights in namespace {namespace} only, and that does not exist, or is being deleted"
    if rights.is_of_project(chart):
        return "False", "NamespaceMissing", f"{what}: Helm runs when it is there"
    return "True", "NamespaceMissing", f"{what}: make it, or set helmController.administratorsClusterRole"


def _failure(job: Object, seen: ObservedHelmChart, config: Config) -> str:
    """What went wrong, and who can mend it when Helm's account lacks a right."""
    chart, text = seen.existing, failure_of(job, seen.pods)
    if not _LACKS.search(text) or rights.reaches_everywhere(chart, config):
        return text
    setting = "charts[].jobClusterRole" if rights.is_of_project(chart) else "helmController.administratorsClusterRole"
    role, namespace = rights.job_role(chart, config), manifest.target_namespace(chart)
    return (
        f"{text}. Helm's account has ClusterRole {role} in namespace {namespace} only: a cluster administrator may name a wider "
        f"one in {setting} (docs/helm-jobs.md)"
    )


def _is_of_old(seen: ObservedHelmChart, job: Object) -> bool:
    """Whether a Job is of values that are no longer asked for, and so says nothing about those that are."""
    if job is seen.delete:
        return False
    assert seen.wanted is not None
    return is_terminating(job) or is_outdated(job, seen.wanted)


def _refused(chart: Object, refusals: Sequence[Refusal], leaving: bool) -> JobProblem:
    first = first_of(refusals)
    assert first is not None
    fix = FIXES[first.cause]
    if first.key.kind in (CLUSTER_ROLE_BINDING.kind, ROLE_BINDING.kind) and first.cause == "rights":
        fix = "let the function's ServiceAccount `bind` that ClusterRole (see docs/helm-jobs.md)"
    if leaving:
        fix += f"; or give the HelmChart the annotation {CHART_UNMANAGED}, and it goes without uninstalling"
    reason = REASONS[first.cause]
    return reason, text_of(first, {first.cause: fix}, message_of(chart, "Failed", reason))


def _event(chart: Object, failed: ConditionText) -> KubernetesEvent | None:
    """One Event when ``Failed`` changes: a Warning for a failure, a normal one when Helm is done."""
    before = find_condition(chart, "Failed") or {}
    status, reason, message = failed
    if (before.get("status"), before.get("reason")) == (status, reason) and (
        status == "False" or before.get("message") == message
    ):
        return None
    if status == "True" or reason == "Retrying":
        return KubernetesEvent(chart, reason if status == "True" else "JobRetrying", message, "RunHelm", "Warning")
    if reason == "Complete":
        return KubernetesEvent(chart, "JobComplete", message, "RunHelm")
    if before.get("status") == "True":
        return KubernetesEvent(chart, "Healed", "the problem that was reported here is gone", "RunHelm")
    return None
