"""The status of a ProjectHelmChart: upstream's fields, and conditions with Helm's result and the lock's state.

``status.status`` keeps the six values of the Helm Project Operator.  The conditions say what it does not:

* ``Ready``: Helm has installed the release as asked for;
* ``Reconciling``: it is being installed or changed, and the message says what it waits for;
* ``Stalled``: nothing happens before somebody changes what the message names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

from release_provisioning.projects.dashboards import Dashboards
from release_provisioning.projects.descriptor import RELEASES
from release_provisioning.projects.seen import (
    WITHOUT_TARGETS,
    Contender,
    ObservedRelease,
    checked,
    is_cleaning_up,
    place_text,
    was_served,
)
from tenantry.model.conditions import condition, find_condition
from tenantry.model.config import Config
from tenantry.model.difference import difference
from tenantry.model.kinds import PROJECT_HELM_CHART, Object, finalizers_of, is_terminating, name_metadata, object_of
from tenantry.model.names import CLEANUP, RELEASE_FINALIZER
from tenantry.model.plan import Apply, KubernetesEvent, Plan, Refusal
from tenantry.model.projects import RELEASE_MANAGER
from tenantry.model.refusals import OF_NAMESPACES, REASONS, Fixes, first_of, fixes, message_of, text_of
from tenantry.model.releases import NO_TARGETS, release_namespace

UNABLE = "UnableToCreateHelmRelease"
DEPLOYED = "Deployed"
STATUSES = {WITHOUT_TARGETS: NO_TARGETS, "InvalidValues": "UnableToParseValues"}
"""``status.status`` by the reason of a problem, where it is not ``UNABLE``."""
NOT_MANAGED = "NotManaged"

WRITTEN_AT_ONCE = 16
"""Statuses that are written at the same time."""
WRITTEN_IN_A_RUN = 400
"""Statuses that one run writes, where very many ask for one name."""

State = Literal["ready", "moving", "stalled"]
_AT_WORK = ("Running", "Retrying", "NamespaceMissing")
"""Reasons of the condition ``Failed`` of a HelmChart while it is False, as our own controller gives them; and ``Complete``."""
FIXES = fixes(
    RELEASES,
    admission=OF_NAMESPACES,
    invalid="correct the values or the configuration that this object is made from",
)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the status of a ProjectHelmChart says: ``status.status`` and its message, the state and the reason of the conditions.

    ``detail`` is the message of the conditions where it says more; ``fields`` are the other fields of the status.
    """

    status: str
    message: str
    reason: str
    state: State = "stalled"
    detail: str = ""
    fields: Object = field(default_factory=dict)


def report_release(seen: ObservedRelease, refusals: Sequence[Refusal], config: Config) -> Plan:
    """The status of every ProjectHelmChart that asks for the release or has it."""
    writes: list[Apply] = []
    holder = seen.holder
    for contender in sorted(seen.contenders, key=lambda each: each is not holder):  # the holder comes first
        if not contender.asks_for(seen.name):
            continue
        judge = _judge_leaving if is_terminating(contender.object) else _judge
        if (judged := judge(contender, seen, refusals, config)) is not None:
            writes.append(_status(contender.object, judged))
    # Thousands may ask for one name: a few are written at a time, so that others' requests go out between, and so many in a
    # run; what these writes make happen is the next run.
    if len(writes) > WRITTEN_AT_ONCE:
        due = (each for each in writes if difference(each.wanted, each.live, manager=RELEASE_MANAGER, subresource="status"))
        writes = list(islice(due, WRITTEN_IN_A_RUN))
    return Plan(tuple(tuple(writes[at : at + WRITTEN_AT_ONCE]) for at in range(0, len(writes), WRITTEN_AT_ONCE)))


def _judge_leaving(contender: Contender, seen: ObservedRelease, refusals: Sequence[Refusal], config: Config) -> Judgement | None:
    """Why a ProjectHelmChart that is being deleted stays: nothing else but a refusal can hold it (hpo-47)."""
    if not refusals or RELEASE_FINALIZER not in finalizers_of(contender.object):
        return None
    further = f"; or give up the release: have an administrator remove the finalizer {RELEASE_FINALIZER}"
    return _refused(contender, seen, config, refusals, {cause: f"{fix}{further}" for cause, fix in FIXES.items()})


def _refused(
    contender: Contender, seen: ObservedRelease, config: Config, refusals: Sequence[Refusal], known: Fixes = FIXES
) -> Judgement:
    first = first_of(refusals)
    assert first is not None
    reason = REASONS[first.cause]
    standing = message_of(contender.object, "Stalled", reason)
    return Judgement(UNABLE, text_of(first, known, standing, place=place_text(contender, seen, config)), reason)


def _judge(contender: Contender, seen: ObservedRelease, refusals: Sequence[Refusal], config: Config) -> Judgement | None:
    if contender.denied and contender.chart is not None:
        message = (
            f"project {contender.project} is denied by the configuration (otherSystemProjectLabelValues): its release is left as "
            "it is and no longer kept; delete this ProjectHelmChart to remove the release"
        )
        return Judgement(UNABLE, message, "ProjectDenied")
    if not contender.is_served:
        return _not_managed(contender)
    holder = seen.holder
    if holder is None or contender.key != holder.key:
        whose = _whose(holder or seen.keeper, contender)
        why = f"it belongs to {whose}, so {contender.key} cannot have it: choose another name"
        return Judgement(UNABLE, f"{place_text(contender, seen, config)}: {why}", "ReleaseNameTaken")
    return _refused(holder, seen, config, refusals) if refusals else _judge_holder(holder, seen, config)


def _whose(other: Contender | None, contender: Contender) -> str:
    """Who has the name; objects of another project are not named (a-36)."""
    if other is None:
        return "a ProjectHelmChart of another name"
    if other.key.namespace != contender.key.namespace:
        return "another project"
    return f"ProjectHelmChart {other.key}"


def _not_managed(contender: Contender) -> Judgement | None:
    """Written once for a generation: another system may serve it now, whose status is not to be overwritten (hpo-40)."""
    ready = find_condition(contender.object, "Ready") or {}
    written = ready.get("reason") == NOT_MANAGED and ready.get("observedGeneration") == _generation(contender.object)
    if written or not was_served(contender.object):
        return None
    why = (
        "its spec.helmApiVersion is that of no configured chart"
        if contender.chart is None
        else "its namespace is no registration namespace"
    )
    message = f"this ProjectHelmChart is no longer managed, because {why}: what was made for it is left as it is"
    return Judgement(UNABLE, message, NOT_MANAGED)


def _judge_holder(holder: Contender, seen: ObservedRelease, config: Config) -> Judgement:
    if is_cleaning_up(holder, seen):
        version = holder.chart.helm_api_version if holder.chart is not None else "it"
        message = (
            f"the label {CLEANUP}=true says that the system is being uninstalled: release {seen.name} is taken away until what "
            f"serves {version} in namespace {holder.key.namespace} is deployed again, which removes the label"
        )
        return Judgement("AwaitingOperatorRedeployment", message, "Uninstalled")
    targets, problem = checked(holder, seen, config)
    if problem is not None:
        return Judgement(STATUSES.get(problem.reason, UNABLE), problem.message, problem.reason)
    if is_terminating(seen.namespace):
        why = f"namespace {seen.name} is being deleted; it is made again, and the chart installed again, when it is gone"
        return Judgement(UNABLE, f"{place_text(holder, seen, config)}: {why}", "NamespaceTerminating", "moving")
    fields: Object = {
        "systemNamespace": config.helm_project_operator.system_namespace,
        "releaseNamespace": release_namespace(holder.key, seen.name, config),
        "releaseName": seen.name,
        "targetNamespaces": list(targets),
    }
    if dashboard_values := seen.dashboards.values:
        fields["dashboardValues"] = dashboard_values
    status = DEPLOYED if dashboard_values else "WaitingForDashboardValues"
    return Judgement(status, _about_dashboards(seen.name, seen.dashboards), *_helm(seen), fields)


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


def _helm(seen: ObservedRelease) -> tuple[str, State, str]:
    """Reason, state and message of the conditions, by Helm's Job and the lock of the release."""
    lock = (seen.helm_release or {}).get("status") or {}
    locked = f"; its lock says {lock['state']}" if lock.get("state") else ""
    failed = find_condition(seen.helm_chart, "Failed") or {}
    unknown = "see its Job in the system namespace"
    if failed.get("status") == "True":
        reported = str(failed.get("message") or failed.get("reason") or unknown)[:600]
        return "HelmFailed", "stalled", f"Helm could not deploy {seen.name}: {reported}{locked}"
    if failed.get("reason") in _AT_WORK or _is_outdated(seen.helm_chart):
        return "WaitingForHelm", "moving", f"{str(failed.get('message') or 'Helm is about to run')[:600]}{locked}"
    if lock.get("state") == "Failed":
        reported = str(lock.get("description") or unknown)[:600]
        return "HelmFailed", "stalled", f"the last Helm operation of {seen.name} failed: {reported}"
    if lock.get("state") == "Deployed" or failed.get("reason") == "Complete":
        return DEPLOYED, "ready", f"release {seen.name} is deployed{locked}"
    job = ((seen.helm_chart or {}).get("status") or {}).get("jobName", "")
    waits = f"waiting for Job {job}" if job else "waiting for Helm"
    return "WaitingForHelm", "moving", f"{waits} to deploy {seen.name}{locked}"


def _is_outdated(helm_chart: Object | None) -> bool:
    """Whether the controller's conditions are of values that are no longer asked for; not every controller says of which."""
    observed = ((helm_chart or {}).get("status") or {}).get("observedGeneration")
    return isinstance(observed, int) and observed != _generation(helm_chart or {})


def _generation(obj: Object) -> int:
    return int((obj.get("metadata") or {}).get("generation") or 0)


def _status(live: Object, judged: Judgement) -> Apply:
    generation = _generation(live)
    holds = {"ready": "Ready", "moving": "Reconciling", "stalled": "Stalled"}[judged.state]
    message = judged.detail or judged.message
    status: Object = {
        "status": judged.status,
        "statusMessage": judged.message,
        **judged.fields,
        "observedGeneration": generation,
        "conditions": [
            condition(type_, "True" if type_ == holds else "False", judged.reason, message, generation)
            for type_ in ("Ready", "Reconciling", "Stalled")
        ],
    }
    before, event = find_condition(live, holds) or {}, None
    # An Event when a state begins, or when another obstacle takes the place of one.
    if judged.state != "moving" and (before.get("status"), before.get("reason")) != ("True", judged.reason):
        event = KubernetesEvent(live, judged.reason, message, "Report", "Warning" if judged.state == "stalled" else "Normal")
    wanted = object_of(PROJECT_HELM_CHART, name_metadata(live), status=status)
    return Apply(PROJECT_HELM_CHART, wanted, live, subresource="status", event=event)
