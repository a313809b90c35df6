"""What a HelmChart's status tells: its Job, and the conditions ``JobCreated``, ``Failed`` and ``Installed``.

``Failed`` is False with the reasons Running, Retrying (with Helm's words) and Complete, and True when the Job gave up or cannot
be made; a Warning Event goes with every word that is new and bad.  ``Installed`` remembers whether Helm has ever worked on the
release.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from release_provisioning.descriptor import HELM_JOBS
from release_provisioning.jobs import manifest, rights
from release_provisioning.jobs.plan import delete_job_of, failure_of, has_run, last_word, taken_by
from release_provisioning.jobs.rights import Stray
from release_provisioning.jobs.seen import Seen, finalizers_of, is_managed, outcome_of
from tenantry.model.conditions import condition, find_condition
from tenantry.model.config import Config
from tenantry.model.kinds import CLUSTER_ROLE_BINDING, HELM_CHART, ROLE_BINDING, Object, annotations_of, is_terminating
from tenantry.model.leftovers import report_leftovers
from tenantry.model.names import CHART_MANAGED_BY, CHART_UNMANAGED, HELM_CHART_FINALIZER
from tenantry.model.plan import NOTHING, Apply, Notice, Plan, Refusal
from tenantry.model.refusals import REASONS, first_of, fixes, message_of, text_of

FIXES = fixes(HELM_JOBS, invalid="correct the HelmChart")
_LACKS = re.compile(r"is forbidden: [Uu]ser ")
"""How the API server says that an account lacks a right."""
Verdict = tuple[Literal["True", "False"], str, str]


def report_chart(seen: Seen, refusals: Sequence[Refusal], config: Config) -> Plan:
    """The status of one HelmChart; without one, what is said where it left something that may not be deleted."""
    chart = seen.chart
    if chart is None:
        return report_leftovers(seen.leftovers, refusals, HELM_JOBS, "jobs")
    if not is_managed(chart, config) or CHART_MANAGED_BY not in annotations_of(chart):
        return NOTHING
    if is_terminating(chart) and (HELM_CHART_FINALIZER not in finalizers_of(chart) or seen.ending):
        return NOTHING
    if is_terminating(chart) and not refusals and delete_job_of(seen) is None and last_word(seen, config) is not None:
        return NOTHING  # it goes now, and its last word is an Event
    created, failed = _verdicts(seen, refusals, config)
    generation = int(chart["metadata"].get("generation", 0))
    job = manifest.delete_name(seen.name) if is_terminating(chart) else manifest.install_name(seen.name)
    before = (chart.get("status") or {}).get("jobName")
    status: Object = {
        "jobName": job if created[0] == "True" else before,
        "observedGeneration": generation,
        "conditions": [
            condition("JobCreated", *created),
            condition("Failed", *failed),
            condition("Installed", *_installed(seen)),
        ],
    }
    if not status["jobName"]:
        del status["jobName"]
    if seen.plain:
        del status["observedGeneration"]
    metadata = {"name": seen.name, "namespace": seen.namespace}
    wanted: Object = {"apiVersion": HELM_CHART.api_version, "kind": HELM_CHART.kind, "metadata": metadata, "status": status}
    notice = _notice(chart, failed)
    return Plan(((Apply(HELM_CHART, wanted, chart, subresource="status", notice=notice, stamp=not seen.plain),),))


def report_stray(stray: Stray, refusals: Sequence[Refusal]) -> Plan:
    """What is said on a binding of no use that may not be deleted."""
    return report_leftovers(stray.leftovers, refusals, HELM_JOBS, "jobs")


def _verdicts(seen: Seen, refusals: Sequence[Refusal], config: Config) -> tuple[Verdict, Verdict]:
    chart = seen.chart
    assert chart is not None
    leaving = is_terminating(chart)
    if refusals:
        return _refused(chart, refusals, leaving)
    if seen.wanted is not None and (problem := seen.wanted.problem) is not None:
        return ("False", problem[0], "Helm is not run"), ("True", *problem)
    if leaving and (hindered := _hindered(seen)):
        return hindered
    if seen.homeless and not seen.jobs:
        return _homeless(chart)
    name = manifest.delete_name(seen.name) if leaving else manifest.install_name(seen.name)
    does = "uninstalls" if leaving else "installs or upgrades"
    created: Verdict = ("True", "JobCreated", f"Helm {does} with Job {seen.namespace}/{name}")
    job = seen.delete if leaving else seen.install
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


def _hindered(seen: Seen) -> tuple[Verdict, Verdict] | None:
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
        text = f"{taken} is not of this HelmChart, so the release is not uninstalled: {what}, {way_out}"
        return ("False", "NameTaken", "Helm is not run"), ("True", "NameTaken", text)
    if seen.install is not None and is_terminating(seen.install) and seen.waited_s > manifest.GRACE_S:
        job = f"Job {seen.namespace}/{manifest.install_name(seen.name)}"
        text = (
            f"{job} was deleted and does not end, so the release is not uninstalled: look at its pods and finalizers, {way_out}"
        )
        return ("False", "JobNotEnding", "Helm is not run"), ("True", "JobNotEnding", text)
    return None


def _homeless(chart: Object) -> tuple[Verdict, Verdict]:
    """There is no namespace in which Helm's account could have rights: that of a project's release is on its way."""
    namespace = manifest.target_namespace(chart)
    what = f"Helm's account has rights in namespace {namespace} only, and that does not exist, or is being deleted"
    created: Verdict = ("False", "NamespaceMissing", "Helm is not run")
    if rights.is_of_project(chart):
        return created, ("False", "NamespaceMissing", f"{what}: Helm runs when it is there")
    return created, ("True", "NamespaceMissing", f"{what}: make it, or set helmController.administratorsClusterRole")


def _failure(job: Object, seen: Seen, config: Config) -> str:
    """What went wrong, and who can mend it when Helm's account lacks a right."""
    chart, text = seen.chart, failure_of(job, seen.pods)
    assert chart is not None
    if not _LACKS.search(text) or rights.reaches_everywhere(chart, config):
        return text
    setting = "charts[].jobClusterRole" if rights.is_of_project(chart) else "helmController.administratorsClusterRole"
    role, namespace = rights.job_role(chart, config), manifest.target_namespace(chart)
    return (
        f"{text}. Helm's account has ClusterRole {role} in namespace {namespace} only: a cluster administrator may name a wider "
        f"one in {setting} (docs/helm-jobs.md)"
    )


def _installed(seen: Seen) -> Verdict:
    """Whether there may be anything to uninstall: once true it stays true."""
    if has_run(seen):
        return "True", "HelmRan", "Helm has worked on the release"
    return "False", "NotYet", "Helm has not begun"


def _is_of_old(seen: Seen, job: Object) -> bool:
    """Whether a Job is of values that are no longer asked for, and so says nothing about those that are."""
    if job is seen.delete:
        return False
    assert seen.wanted is not None
    return is_terminating(job) or manifest.hash_of(job) != manifest.hash_of(seen.wanted.job)


def _refused(chart: Object, refusals: Sequence[Refusal], leaving: bool) -> tuple[Verdict, Verdict]:
    first = first_of(refusals)
    assert first is not None
    fix = FIXES[first.cause]
    if first.key.kind in (CLUSTER_ROLE_BINDING.kind, ROLE_BINDING.kind) and first.cause == "rights":
        fix = "let the function's ServiceAccount `bind` that ClusterRole (see docs/helm-jobs.md)"
    if leaving:
        fix += f"; or give the HelmChart the annotation {CHART_UNMANAGED}, and it goes without uninstalling"
    reason = REASONS[first.cause]
    text = text_of(first, {first.cause: fix}, message_of(chart, "Failed", reason))
    return ("False", reason, "Helm is not run"), ("True", reason, text)


def _notice(chart: Object, failed: Verdict) -> Notice | None:
    """One Event when the verdict becomes another: a Warning for a bad one, a word when Helm is done."""
    told = find_condition(chart, "Failed") or {}
    status, reason, message = failed
    if (told.get("status"), told.get("reason")) == (status, reason) and (status == "False" or told.get("message") == message):
        return None
    if status == "True" or reason == "Retrying":
        return Notice(chart, reason if status == "True" else "JobRetrying", message, "RunHelm", "Warning")
    if reason == "Complete":
        return Notice(chart, "JobComplete", message, "RunHelm")
    if told.get("status") == "True":
        return Notice(chart, "Healed", "the problem that was reported here is gone", "RunHelm")
    return None
