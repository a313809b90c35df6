"""The writes of the Helm controller: a Job per HelmChart and state of its values, and an uninstallation before its deletion.

Rules: spec helm-project 1.3 to 1.5 (contract of the Job), 4.7 (deletion never hangs), 8.1 (managed-by respected, the role of the
account configurable).  A HelmChart that is another controller's is left alone, as is every object that bears a name that we
need and is not of that HelmChart.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import replace

from release_provisioning.jobs import manifest, rights
from release_provisioning.jobs.seen import (
    JobProblem,
    ObservedHelmChart,
    binds_only,
    is_managed,
    is_of_chart,
    outcome_of,
)
from tenantry.model import limits
from tenantry.model.conditions import find_condition
from tenantry.model.config import Config
from tenantry.model.difference import owns
from tenantry.model.identifiers import is_dns_label, is_dns_subdomain
from tenantry.model.kinds import (
    CONFIG_MAP,
    HELM_CHART,
    JOB,
    SECRET,
    SERVICE_ACCOUNT,
    Kind,
    Object,
    annotations_of,
    finalizers_of,
    is_terminating,
    key_of,
    labels_of,
    name_metadata,
    object_of,
)
from tenantry.model.manifests import NotReadable, load_yaml
from tenantry.model.names import CHART_LABEL, CHART_MANAGED_BY, HELM_CHART_FINALIZER, UPSTREAM_HELM_CHART_FINALIZER
from tenantry.model.plan import NOTHING, Apply, Delete, Edit, KubernetesEvent, Plan, RemoveFinalizers, Write, plan_of
from tenantry.model.projects import RELEASE_MANAGER

CLAIM_MANAGER = f"{RELEASE_MANAGER}-jobs"
"""Owns our finalizer on HelmCharts, whose other fields may be those of the unit ``projects``."""
NAME_LIMIT = 63 - len("helm-install-")
_GZIP = b"\x1f\x8b"


def with_wanted(seen: ObservedHelmChart, config: Config) -> ObservedHelmChart:
    """The same, with the Job that the HelmChart needs and what is in its way."""
    job = manifest.install_job(seen.existing, seen.further, seen.secrets, config)
    return replace(seen, wanted=job, problem=_problem_of(seen, job))


def _problem_of(seen: ObservedHelmChart, wanted: Object) -> JobProblem | None:
    spec = manifest.spec_of(seen.existing)
    if len(seen.name) > NAME_LIMIT:
        return "NameTooLong", (
            f"metadata.name has {len(seen.name)} characters and at most {NAME_LIMIT} fit into the name of the Job "
            f"{manifest.Names('', '<name>').install}: use a shorter name"
        )
    if not is_dns_subdomain(seen.name):
        return "InvalidName", "metadata.name cannot be part of the names of a Job and a ServiceAccount"
    if spec.get("helmVersion", "") not in ("", "v3"):
        return "UnsupportedVersion", f"spec.helmVersion is {spec['helmVersion']!r}: only v3 is supported; remove the field"
    if not is_dns_label(manifest.target_namespace(seen.existing)):
        return "InvalidTargetNamespace", f"spec.targetNamespace {spec['targetNamespace']!r} is not the name of a namespace"
    if taken := taken_by(seen):
        return "NameTaken", f"{taken} exists and is not of this HelmChart: delete it, or rename the HelmChart"
    if seen.install is not None and not is_outdated(seen.install, wanted):
        return None  # Helm has run with it, and knows more about it than we can
    return _bad_archive(spec) or _bad_values(seen)


def taken_by(seen: ObservedHelmChart) -> str:
    """The first object that bears a name of ours and belongs to something else, or binding that is for others, too."""
    parts = (seen.secret, seen.content, seen.account, *seen.jobs)
    foreign = [found for found in parts if found is not None and not is_of_chart(found, seen)]
    bindings = (live for live in (seen.role_binding, seen.binding) if live is not None)
    foreign += [live for live in bindings if not binds_only(live, seen.namespace, seen.name)]
    return str(key_of(foreign[0])) if foreign else ""


def _bad_archive(spec: Object) -> JobProblem | None:
    archive = spec.get("chartContent")
    if not archive:
        return None
    try:
        raw = base64.b64decode("".join(str(archive).split()), validate=True)
    except ValueError:
        return "InvalidChart", "spec.chartContent is not base64: put the .tgz of the chart there, encoded with base64"
    if not raw.startswith(_GZIP):
        return "InvalidChart", "spec.chartContent is not a gzip archive: put the .tgz there that `helm package` makes"
    return None


def _bad_values(seen: ObservedHelmChart) -> JobProblem | None:
    for obj in (seen.chart, seen.further):
        content = manifest.spec_of(obj).get("valuesContent")
        if obj is None or not content or len(content) > limits.JOB_VALUES_CHARACTERS:
            continue
        try:
            why = "" if isinstance(load_yaml(str(content)), dict | None) else "not a map"
        except NotReadable as error:
            why = str(error)
        if why:
            fix = "put one map of values in plain YAML there, such as `replicas: 2`"
            return "InvalidValues", f"spec.valuesContent of {key_of(obj)} cannot be used ({why}): {fix}"
    return None


def plan_chart(seen: ObservedHelmChart, config: Config) -> Plan:
    """The writes for one HelmChart."""
    chart = seen.chart
    if chart is None:
        return _left_behind(seen)
    if not is_managed(chart, config):
        return _hand_over(chart, config)
    if is_terminating(chart):
        return _uninstall(seen, config)
    claim = _claim(chart, config)
    assert seen.wanted is not None
    if seen.problem is not None:
        return plan_of(*claim, *rights.withdrawn(seen, idle=True))
    stages: list[tuple[Write, ...]] = [(*claim, *rights.withdrawn(seen, idle=seen.homeless)), tuple(_inputs(seen))]
    job = tuple(_install(seen, seen.wanted)) if not seen.homeless or seen.jobs else ()
    # Not while a Job that ended is replaced: its binding goes, and the next comes with the next Job.
    binding = rights.given(seen, config) if not seen.homeless and (rights.is_working(seen) or not seen.jobs) else []
    # What is replaced is asked to end first: that it has not ended yet is then known for sure.
    replaced = any(isinstance(write, Delete) for write in job)
    stages += [job, *binding] if replaced else [*binding, job]
    return Plan(tuple(stages))


def _hand_over(chart: Object, config: Config) -> Plan:
    """A HelmChart that is not ours any more must not wait for us when it is deleted."""
    in_system = chart["metadata"]["namespace"] == config.helm_project_operator.system_namespace
    if not in_system or HELM_CHART_FINALIZER not in finalizers_of(chart):
        return NOTHING
    return plan_of(RemoveFinalizers(HELM_CHART, chart, (HELM_CHART_FINALIZER,)))


def _claim(chart: Object, config: Config) -> tuple[Write, ...]:
    """Our name, if it has none, our finalizer, and no longer that of the controller before us.

    The name is written only on the very state that had none: two controllers never take each other's.
    """
    if CHART_MANAGED_BY not in annotations_of(chart):
        name = config.helm_project_operator.controller_name
        annotations = {**annotations_of(chart), CHART_MANAGED_BY: name}
        finalizers = list(dict.fromkeys([*finalizers_of(chart), HELM_CHART_FINALIZER]))
        steps = (
            {"op": "add", "path": "/metadata/annotations", "value": annotations},
            {"op": "add", "path": "/metadata/finalizers", "value": finalizers},
        )
        return (
            Edit(HELM_CHART, chart, steps, KubernetesEvent(chart, "Claimed", f"{name} runs Helm for this HelmChart", "Claim")),
        )
    if UPSTREAM_HELM_CHART_FINALIZER in finalizers_of(chart) and HELM_CHART_FINALIZER in finalizers_of(chart):
        return (RemoveFinalizers(HELM_CHART, chart, (UPSTREAM_HELM_CHART_FINALIZER,)),)
    wanted = object_of(HELM_CHART, {**name_metadata(chart), "finalizers": [HELM_CHART_FINALIZER]})
    return (Apply(HELM_CHART, wanted, chart, manager=CLAIM_MANAGER),)


def _inputs(seen: ObservedHelmChart) -> list[Write]:
    secret = manifest.secret(seen.existing, seen.further)
    if seen.secret is not None and seen.secret.get("type") != secret["type"]:
        return [Delete(SECRET, seen.secret)]  # the type of a Secret cannot change; the next run makes it anew
    return [
        Apply(SECRET, secret, seen.secret),
        Apply(CONFIG_MAP, manifest.content(seen.existing), seen.content),
        Apply(SERVICE_ACCOUNT, manifest.account(seen.existing), seen.account),
    ]


def _install(seen: ObservedHelmChart, wanted: Object) -> list[Write]:
    chart, live = seen.existing, seen.install
    if seen.delete is not None:
        return [] if is_terminating(seen.delete) else [Delete(JOB, seen.delete, propagation="Foreground")]
    if live is None:
        event = KubernetesEvent(chart, "ApplyJob", f"Helm installs or upgrades with {seen.install_job}", "ApplyJob")
        return [Apply(JOB, wanted, None, create_only=True, event=event)]
    if not is_outdated(live, wanted) and _owner_uid(live) in ("", chart["metadata"]["uid"]):
        return []
    if is_terminating(live):
        return []  # its end is an event, and the next Job is made then
    event = KubernetesEvent(chart, "ReplaceJob", f"chart or values changed: {seen.install_job} is replaced", "ApplyJob")
    return [Delete(JOB, live, event, propagation="Foreground")]


def is_outdated(live: Object, wanted: Object) -> bool:
    """Whether a Job ran Helm for another state of the HelmChart."""
    return manifest.hash_of(live) != manifest.hash_of(wanted)


def upgrades_to(seen: ObservedHelmChart) -> str:
    """The state for which the Job that there is would be replaced, as a digest; empty when it stays."""
    live, wanted = seen.install, seen.wanted
    if live is None or wanted is None or seen.problem is not None or is_terminating(live) or seen.delete is not None:
        return ""
    return manifest.hash_of(wanted) if is_outdated(live, wanted) else ""


def _owner_uid(job: Object) -> str:
    owners = job["metadata"].get("ownerReferences") or ()
    return next((str(owner["uid"]) for owner in owners if owner.get("kind") == HELM_CHART.kind), "")


def _uninstall(seen: ObservedHelmChart, config: Config) -> Plan:
    chart = seen.existing
    if HELM_CHART_FINALIZER not in finalizers_of(chart):
        return NOTHING  # it was never ours, or waits for somebody else
    if verdict := last_word(seen, config):
        account, jobs, bindings = _parts(seen)
        released = RemoveFinalizers(HELM_CHART, chart, (HELM_CHART_FINALIZER, UPSTREAM_HELM_CHART_FINALIZER), verdict)
        # The account and its bindings are deleted first, so that no Job can do anything any more, and so that a refusal is
        # reported while there is a HelmChart to report it on. The verdict rests on the Jobs: they stay until it is carried out,
        # or a run that was cut short would come to another one.
        return Plan((account, bindings, (released,), jobs))
    if taken_by(seen):
        return plan_of(*rights.withdrawn(seen, idle=True))  # reported, and waited for until `_stuck`
    if seen.install is not None:
        away = () if is_terminating(seen.install) else (Delete(JOB, seen.install, propagation="Foreground"),)
        return plan_of(*rights.withdrawn(seen), *away)
    if seen.delete is not None:
        return Plan(tuple(rights.given(seen, config)))
    event = KubernetesEvent(chart, "RemoveJob", f"Helm uninstalls with {seen.delete_job}", "RemoveJob")
    job = Apply(JOB, manifest.delete_job(chart, config), None, create_only=True, event=event)
    return Plan(((Apply(SERVICE_ACCOUNT, manifest.account(chart), seen.account),), *rights.given(seen, config), (job,)))


def last_word(seen: ObservedHelmChart, config: Config) -> KubernetesEvent | None:
    """Why there is nothing to wait for any more, as the last Event on this HelmChart; None while there is.

    It never waits for ever: the Job's own deadline ends in a failure, and what keeps Helm from its work has the same time; then
    it is reported, and the release stays behind.
    """
    chart, job = seen.existing, delete_job_of(seen)
    namespace = manifest.target_namespace(chart)
    release = f"release {namespace}/{seen.name}"
    by_hand = f"To fix it, run `helm uninstall {seen.name} --namespace {namespace}`"
    if seen.ending:
        note = f"{release} was not uninstalled: namespace {seen.namespace} is deleted"
        return KubernetesEvent(chart, "NotUninstalled", note, "Remove", "Warning")
    result = outcome_of(job) if job is not None else "running"
    if result == "complete":
        return KubernetesEvent(chart, "Removed", f"{release} is uninstalled", "Remove")
    if job is not None and result == "failed":
        note = f"{release} could not be uninstalled and stays behind: {failure_of(job, seen.pods)}. {by_hand}"
        return KubernetesEvent(chart, "UninstallFailed", note, "Remove", "Warning")
    if job is None and not has_run(seen):
        return KubernetesEvent(chart, "Removed", "nothing was installed for this HelmChart", "Remove")
    if seen.install is None and (gone := _gone_with(seen, config)):
        return KubernetesEvent(chart, "Removed", f"namespace {namespace} {gone}, and {release} with it", "Remove")
    if stuck := _stuck(seen):
        note = f"{release} was not uninstalled and stays behind: {stuck}. {by_hand}"
        return KubernetesEvent(chart, "NotUninstalled", note, "Remove", "Warning")
    return None


def _gone_with(seen: ObservedHelmChart, config: Config) -> str:
    """What the release's namespace is, where there is nothing left for Helm to do; empty while there is.

    In a namespace that is being deleted nobody can be given rights, and a release without rights elsewhere has nothing elsewhere.
    """
    everywhere = rights.reaches_everywhere(seen.existing, config)
    if seen.target is None:
        return "is gone" if delete_job_of(seen) is None or not everywhere else ""
    return "is deleted" if is_terminating(seen.target) and not everywhere else ""


def delete_job_of(seen: ObservedHelmChart) -> Object | None:
    """The Job that uninstalls, where it is of this HelmChart."""
    return seen.delete if seen.delete is not None and is_of_chart(seen.delete, seen) else None


def _stuck(seen: ObservedHelmChart) -> str:
    """What has kept Helm from its work for too long; empty while there is something to wait for."""
    if delete_job_of(seen) is not None:
        # Its deadline has passed, and so has its pods' time to end: it is suspended, or held by somebody else.
        late = seen.waited_s > 2 * manifest.DELETE_DEADLINE_S
        return f"{seen.delete_job} neither succeeds nor fails" if late else ""
    if seen.waited_s <= manifest.DELETE_DEADLINE_S:
        return ""
    if taken := taken_by(seen):
        return f"{taken} is not of this HelmChart"
    return f"{seen.install_job} does not end" if is_terminating(seen.install) else ""


def has_run(seen: ObservedHelmChart) -> bool:
    """Whether Helm may ever have worked on this release; only what is certain counts as a no.

    A Job whose pods never started, for want of an image or a node, has left nothing to uninstall, and an uninstallation would
    wait for the same image or node.  The condition ``Installed`` remembers the Jobs before the present one.
    """
    remembered = find_condition(seen.chart, "Installed")
    before = bool(((seen.chart or {}).get("status") or {}).get("jobName"))
    started = seen.install is not None and _has_started(seen.install, seen.pods)
    if remembered is None:
        return before or started
    if remembered.get("status") == "False" and seen.install is None:
        # Replaced a moment ago, or deleted by hand, perhaps after it ran: on a deletion the careful answer is yes.
        return is_terminating(seen.chart) and before
    return remembered.get("status") != "False" or started


def _has_started(job: Object, pods: Sequence[Object]) -> bool:
    status = job.get("status") or {}
    if any(status.get(count) for count in ("succeeded", "failed", "ready")) or outcome_of(job) != "running":
        return True
    states = [found.get("state") or {} for pod in pods for found in (pod.get("status") or {}).get("containerStatuses") or ()]
    phases = {(pod.get("status") or {}).get("phase", "Pending") for pod in pods}
    return bool(phases - {"Pending"}) or any("running" in state or "terminated" in state for state in states)


def _left_behind(seen: ObservedHelmChart) -> Plan:
    """What has no owner and outlived its HelmChart.

    Without a binding that is for it alone, only what we made ourselves is deleted: a name and a label prove nothing.
    """
    account, jobs, bindings = _parts(seen)
    if seen.binding is None:
        found = (
            each for each in (*account, *jobs, *bindings) if owns(each.live, RELEASE_MANAGER, "metadata", "labels", CHART_LABEL)
        )
        return plan_of(*found)
    return Plan(((*account, *jobs), bindings)) if labels_of(seen.binding).get(CHART_LABEL) == seen.name else NOTHING


def _parts(seen: ObservedHelmChart) -> tuple[tuple[Delete, ...], tuple[Delete, ...], tuple[Delete, ...]]:
    """The deletions of what is of this HelmChart: account and inputs, Jobs, bindings.

    Garbage collection would come for what has an owner, but half a minute later where the CRD is new.
    """

    def away(*parts: tuple[Kind, Object | None]) -> tuple[Delete, ...]:
        mine = ((kind, found) for kind, found in parts if found is not None and is_of_chart(found, seen))
        return tuple(Delete(kind, found) for kind, found in mine if not is_terminating(found))

    account = away((SERVICE_ACCOUNT, seen.account), (SECRET, seen.secret), (CONFIG_MAP, seen.content))
    bindings = tuple(Delete(kind, live) for kind, live in rights.bindings_of(seen) if not is_terminating(live))
    return account, away((JOB, seen.install), (JOB, seen.delete)), bindings


def failure_of(job: Object, pods: Sequence[Object]) -> str:
    """What went wrong: what Helm said last, beside what the Job says if it says more than that it failed."""
    said = _last_words(pods)
    conditions = (job.get("status") or {}).get("conditions") or ()
    failed: Object = next((found for found in conditions if found.get("type") == "Failed" and found.get("status") == "True"), {})
    if said and failed.get("reason") == "DeadlineExceeded":
        return f"it took longer than {job['spec'].get('activeDeadlineSeconds')} s; Helm said: {said}"
    return said or str(failed.get("message") or "the Job failed")


def _last_words(pods: Sequence[Object]) -> str:
    """The termination message of the pod that ended last."""
    ended = []
    for pod in pods:
        for status in (pod.get("status") or {}).get("containerStatuses") or ():
            terminated = (status.get("state") or {}).get("terminated") or {}
            if terminated.get("exitCode") and (message := str(terminated.get("message") or "").strip()):
                ended.append((str(terminated.get("finishedAt") or ""), pod["metadata"]["name"], message))
    return max(ended)[2] if ended else ""
