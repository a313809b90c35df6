"""What a ProjectHelmChart is told: upstream's status fields, and conditions with Helm's result and the lock's state.

``status.status`` keeps the six values of the Helm Project Operator.  The conditions say what it does not:

* ``Ready``: Helm has installed the release as asked for;
* ``Reconciling``: something is on its way, with what it waits for;
* ``Stalled``: nothing will move before somebody changes what the message names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

from release_provisioning.descriptor import RELEASES
from release_provisioning.projects.seen import Contender, Release, is_cleaning_up, name_problem, obstacle, targets_of
from tenantry.model.conditions import condition, find_condition
from tenantry.model.config import Config
from tenantry.model.difference import difference
from tenantry.model.kinds import PROJECT_HELM_CHART, Object, is_terminating
from tenantry.model.names import CLEANUP, RELEASE_FINALIZER
from tenantry.model.plan import NOTHING, Apply, Notice, Plan, Refusal
from tenantry.model.projects import RELEASE_MANAGER
from tenantry.model.refusals import REASONS, Fixes, first_of, fixes, message_of, text_of
from tenantry.model.releases import NO_TARGETS, Dashboards, release_namespace, values_problem

AWAITING_REDEPLOYMENT = "AwaitingOperatorRedeployment"
UNABLE = "UnableToCreateHelmRelease"
WAITING_FOR_DASHBOARD = "WaitingForDashboardValues"
DEPLOYED = "Deployed"
UNABLE_TO_PARSE = "UnableToParseValues"
NOT_MANAGED = "NotManaged"

TOLD_AT_ONCE = 16
"""Statuses that are written at the same time."""
TOLD_IN_A_RUN = 64
"""Statuses that one run writes, where very many ask for one name."""

State = Literal["ready", "moving", "stalled"]
_AT_WORK = ("Running", "Retrying", "NamespaceMissing")
"""Reasons of the condition ``Failed`` of a HelmChart while it is False, as our own controller gives them; and ``Complete``."""
FIXES = fixes(
    RELEASES,
    admission="change the admission policy, or add what it asks for under helmProjectOperator.namespaceLabels or "
    "namespaceAnnotations",
    invalid="correct the values or the configuration that this object is made from",
)


@dataclass(frozen=True, slots=True)
class Told:
    """What to tell: ``status.status``, the message, and the state and reason for the conditions.

    ``conditions`` has another message for the conditions where theirs says more; ``details`` are the other status fields.
    """

    status: str
    message: str
    reason: str
    state: State
    said: str = ""
    details: Object = field(default_factory=dict)


def report_release(seen: Release, refusals: Sequence[Refusal], config: Config) -> Plan:
    """The status of every ProjectHelmChart that asks for the release or has it."""
    writes: list[Apply] = []
    holder = seen.holder
    for contender in sorted(seen.contenders, key=lambda each: each is not holder):  # the holder is told first
        if not contender.asks_for(seen.name):
            continue
        leaving = is_terminating(contender.object)
        told = _tell(contender, seen, refusals, config) if not leaving else _tell_leaving(contender, seen, refusals, config)
        if told is not None:
            writes.append(_status(contender.object, told))
    # Thousands may ask for one name: they are told a few at a time, so that others' requests go out between, and so many in a
    # run; what these writes make happen is the next run.
    if len(writes) > TOLD_AT_ONCE:
        due = (each for each in writes if difference(each.wanted, each.live, manager=RELEASE_MANAGER, subresource="status"))
        writes = list(islice(due, TOLD_IN_A_RUN))
    return Plan(tuple(tuple(writes[at : at + TOLD_AT_ONCE]) for at in range(0, len(writes), TOLD_AT_ONCE))) if writes else NOTHING


def _unable(contender: Contender, seen: Release, config: Config, why: str = "") -> str:
    """What is in the way of which release, and where."""
    where = f"release {seen.name} in namespace {release_namespace(contender.key, seen.name, config)}"
    return f"{where}: {why}" if why else where


def _tell_leaving(contender: Contender, seen: Release, refusals: Sequence[Refusal], config: Config) -> Told | None:
    """Why a ProjectHelmChart that is deleted does not go: nothing else but a refusal can hold it (hpo-47)."""
    if not refusals or RELEASE_FINALIZER not in (contender.object["metadata"].get("finalizers") or ()):
        return None
    further = f"; or give up the release: have an administrator remove the finalizer {RELEASE_FINALIZER}"
    return _refused(contender, seen, config, refusals, {cause: f"{fix}{further}" for cause, fix in FIXES.items()})


def _refused(contender: Contender, seen: Release, config: Config, refusals: Sequence[Refusal], known: Fixes = FIXES) -> Told:
    first = first_of(refusals)
    assert first is not None
    reason = REASONS[first.cause]
    standing = message_of(contender.object, "Stalled", reason)
    message = text_of(first, known, standing, place=_unable(contender, seen, config))
    return Told(UNABLE, message, reason, "stalled")


def _tell(contender: Contender, seen: Release, refusals: Sequence[Refusal], config: Config) -> Told | None:
    if contender.denied and contender.chart is not None:
        message = (
            f"project {contender.project} is denied by the configuration (otherSystemProjectLabelValues): its release is left as "
            "it is and no longer kept; delete this ProjectHelmChart to remove the release"
        )
        return Told(UNABLE, message, "ProjectDenied", "stalled")
    if not contender.is_served:
        return _not_managed(contender)
    holder = seen.holder
    if holder is None or contender.key != holder.key:
        other = holder or seen.keeper
        why = f"it belongs to {_whose(other, contender)}, so {contender.key} cannot have it: choose another name"
        return Told(UNABLE, _unable(contender, seen, config, why), "ReleaseNameTaken", "stalled")
    return _tell_holder(contender, seen, refusals, config)


def _whose(other: Contender | None, contender: Contender) -> str:
    """Who has the name; of another project's objects nobody is told (a-36)."""
    if other is None:
        return "a ProjectHelmChart of another name"
    if other.key.namespace != contender.key.namespace:
        return "another project"
    return f"ProjectHelmChart {other.key}"


def _not_managed(contender: Contender) -> Told | None:
    """Told once for a generation: another system may serve it now, whose words are not to be overwritten (hpo-40)."""
    ready = find_condition(contender.object, "Ready") or {}
    said = ready.get("reason") == NOT_MANAGED and ready.get("observedGeneration") == _generation(contender.object)
    if not contender.was_served or said:
        return None
    why = (
        "its spec.helmApiVersion is that of no configured chart"
        if contender.chart is None
        else "its namespace is no registration namespace"
    )
    message = f"this ProjectHelmChart is no longer managed, because {why}: what was made for it is left as it is"
    return Told(UNABLE, message, NOT_MANAGED, "stalled")


def _tell_holder(holder: Contender, seen: Release, refusals: Sequence[Refusal], config: Config) -> Told:
    if refusals:
        return _refused(holder, seen, config, refusals)
    if is_cleaning_up(holder, seen):
        version = holder.chart.helm_api_version if holder.chart is not None else "it"
        message = (
            f"the label {CLEANUP}=true says that the system is being uninstalled: release {seen.name} is taken away until what "
            f"serves {version} in namespace {holder.key.namespace} is deployed again, which removes the label"
        )
        return Told(AWAITING_REDEPLOYMENT, message, "Uninstalled", "stalled")
    if problem := name_problem(holder, seen.name, config):
        return Told(UNABLE, _unable(holder, seen, config, problem), "InvalidReleaseName", "stalled")
    try:
        targets = targets_of(holder, seen, config)
    except ValueError as error:
        return Told(UNABLE, _unable(holder, seen, config, str(error)), "InvalidSelector", "stalled")
    if not targets:
        message = (
            "there is no namespace to deploy this ProjectHelmChart for: add one to the project"
            if config.project_label
            else "there is no namespace to deploy this ProjectHelmChart for: set or widen spec.projectNamespaceSelector"
        )
        return Told(NO_TARGETS, message, "NoTargets", "stalled")
    if problem := obstacle(holder, seen, config):
        return Told(UNABLE, _unable(holder, seen, config, problem), "NotOurs", "stalled")
    if problem := values_problem(holder.object):
        return Told(UNABLE_TO_PARSE, f"spec.values cannot become the values of a release: {problem}", "InvalidValues", "stalled")
    if is_terminating(seen.namespace):
        why = f"namespace {seen.name} is being deleted; it is made again, and the chart installed again, when it is gone"
        return Told(UNABLE, _unable(holder, seen, config, why), "NamespaceTerminating", "moving")
    return _tell_release(holder, seen, targets, config)


def _tell_release(holder: Contender, seen: Release, targets: Sequence[str], config: Config) -> Told:
    details: Object = {
        "systemNamespace": config.helm_project_operator.system_namespace,
        "releaseNamespace": release_namespace(holder.key, seen.name, config),
        "releaseName": seen.name,
        "targetNamespaces": list(targets),
    }
    dashboards = seen.dashboards
    state, reason, said = _helm(seen)
    if dashboards.values:
        details["dashboardValues"] = dashboards.values
    status = DEPLOYED if dashboards.values else WAITING_FOR_DASHBOARD
    return Told(status, _about_dashboards(seen.name, dashboards), reason, state, said, details)


def _about_dashboards(name: str, dashboards: Dashboards) -> str:
    made = f"HelmChart and HelmRelease {name} are made"
    message = (
        f"this ProjectHelmChart is deployed: {made}, and the dashboard values of the chart are there"
        if dashboards.values
        else f"waiting for the release to provide status.dashboardValues: {made}, and the chart has left no labelled ConfigMap "
        "with a JSON object yet"
    )
    left_out = "; ".join(dashboards.left_out[:3])
    return f"{message}; left out: {left_out}" if left_out else message


def _helm(seen: Release) -> tuple[State, str, str]:
    """What Helm's Job and the lock say of the release."""
    lock = (seen.helm_release or {}).get("status") or {}
    locked = f"; its lock says {lock['state']}" if lock.get("state") else ""
    failed = find_condition(seen.helm_chart, "Failed") or {}
    if failed.get("status") == "True":
        said = str(failed.get("message") or failed.get("reason") or "see its Job in the system namespace")
        return "stalled", "HelmFailed", f"Helm could not deploy {seen.name}: {said[:600]}{locked}"
    if failed.get("reason") in _AT_WORK or _is_outdated(seen.helm_chart):
        return "moving", "WaitingForHelm", f"{str(failed.get('message') or 'Helm is about to run')[:600]}{locked}"
    if lock.get("state") == "Failed":
        said = str(lock.get("description") or "see its Job in the system namespace")
        return "stalled", "HelmFailed", f"the last Helm operation of {seen.name} failed: {said[:600]}"
    if lock.get("state") == "Deployed" or failed.get("reason") == "Complete":
        return "ready", DEPLOYED, f"release {seen.name} is deployed{locked}"
    job = ((seen.helm_chart or {}).get("status") or {}).get("jobName", "")
    waits = f"waiting for Job {job}" if job else "waiting for Helm"
    return "moving", "WaitingForHelm", f"{waits} to deploy {seen.name}{locked}"


def _is_outdated(helm_chart: Object | None) -> bool:
    """Whether what the controller says is of values that are no longer asked for; not every controller says of which."""
    observed = ((helm_chart or {}).get("status") or {}).get("observedGeneration")
    return isinstance(observed, int) and observed != _generation(helm_chart or {})


def _generation(obj: Object) -> int:
    return int((obj.get("metadata") or {}).get("generation") or 0)


# -- writing it down ---------------------------------------------------------------------------------------


def _status(live: Object, told: Told) -> Apply:
    metadata = live["metadata"]
    conditions = _conditions(told, _generation(live))
    status: Object = {
        "status": told.status,
        "statusMessage": told.message,
        **told.details,
        "observedGeneration": _generation(live),
        "conditions": conditions,
    }
    wanted: Object = {
        "apiVersion": PROJECT_HELM_CHART.api_version,
        "kind": PROJECT_HELM_CHART.kind,
        "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]},
        "status": status,
    }
    return Apply(PROJECT_HELM_CHART, wanted, live, subresource="status", notice=_notice(live, told, conditions))


def _conditions(told: Told, generation: int) -> list[Object]:
    message = told.said or told.message

    def made(type_: str, holds: bool) -> Object:
        return condition(type_, "True" if holds else "False", told.reason, message, generation)

    return [
        made("Ready", told.state == "ready"),
        made("Reconciling", told.state == "moving"),
        made("Stalled", told.state == "stalled"),
    ]


def _notice(live: Object, told: Told, conditions: Sequence[Object]) -> Notice | None:
    """An Event when a state begins, or when another obstacle takes the place of one."""
    ready, _, stalled = conditions
    if told.state == "moving":
        return None
    now, kind = (stalled, "Warning") if told.state == "stalled" else (ready, "Normal")
    before = find_condition(live, now["type"]) or {}
    if (before.get("status"), before.get("reason")) == ("True", now["reason"]):
        return None
    return Notice(live, now["reason"], now["message"], "Report", "Warning" if kind == "Warning" else "Normal")
