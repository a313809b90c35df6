"""What a ProjectHelmChart is told: upstream's status fields, and conditions with Helm's and the lock's state.

``status.status`` keeps the six values of the Helm Project Operator.  The conditions say what it does not:

* ``Ready``: Helm installed the release and, where locks are on, it is locked;
* ``Reconciling``: something is on its way, with what it waits for;
* ``Stalled``: nothing will move before somebody changes what the message names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from release_provisioning.projects.plan import (
    Contender,
    Release,
    is_cleaning_up,
    namespace_problem,
    targets_of,
)
from tenantry.model.conditions import condition, find_condition
from tenantry.model.config import Config
from tenantry.model.kinds import PROJECT_HELM_CHART, Object, is_terminating
from tenantry.model.plan import NOTHING, Apply, Notice, Plan, Refusal, Write
from tenantry.model.releases import merged_dashboards, release_name_problem, release_namespace

AWAITING_REDEPLOYMENT = "AwaitingOperatorRedeployment"
UNABLE = "UnableToCreateHelmRelease"
NO_TARGETS = "NoTargetProjectNamespaces"
WAITING_FOR_DASHBOARD = "WaitingForDashboardValues"
DEPLOYED = "Deployed"


@dataclass(frozen=True, slots=True)
class Told:
    """One state to tell: ``status`` and message, a reason for the conditions, and whether it stalls."""

    status: str
    message: str
    reason: str
    stalled: bool
    details: Object | None = None


def report_release(seen: Release, refusals: Sequence[Refusal], config: Config) -> Plan:
    """The status of every ProjectHelmChart that claims the name or holds it from before."""
    holder = seen.holder
    writes: list[Write] = []
    for contender in seen.contenders:
        if is_terminating(contender.object):
            continue
        told = _tell(contender, holder, seen, refusals, config)
        if told is not None:
            writes.append(_status(contender, told, seen, config))
    return Plan((tuple(writes),)) if writes else NOTHING


def _tell(
    contender: Contender, holder: Contender | None, seen: Release, refusals: Sequence[Refusal], config: Config
) -> Told | None:
    was_ours = bool((contender.object.get("status") or {}).get("releaseName"))
    if contender.denied:
        message = (
            f"project {contender.project} is on the deny list (otherSystemProjectLabelValues): its release is left as "
            "it is and no longer kept; delete this ProjectHelmChart to remove the release"
        )
        return Told(UNABLE, message, "ProjectDenied", stalled=True) if was_ours or contender.chart else None
    if contender.chart is None or not contender.project:
        if not was_ours:
            return None
        message = (
            "this ProjectHelmChart is no longer managed: its helmApiVersion is none of the configured ones, or its "
            "namespace is no registration namespace; its release is left as it is"
        )
        return Told(UNABLE, message, "NotManaged", stalled=True)
    if holder is not None and contender.key != holder.key:
        message = (
            f"ProjectHelmChart {holder.key} already holds the release name {seen.name}, so {contender.key} cannot have "
            "it: choose another name or delete the other"
        )
        return Told(UNABLE, message, "ReleaseNameTaken", stalled=True)
    return _tell_holder(contender, seen, refusals, config)


def _tell_holder(holder: Contender, seen: Release, refusals: Sequence[Refusal], config: Config) -> Told | None:
    if problem := release_name_problem(seen.name):
        return Told(UNABLE, problem, "InvalidReleaseName", stalled=True)
    if is_cleaning_up(holder, seen):
        message = "the operator was uninstalled: the release is taken away until the operator is there again"
        return Told(AWAITING_REDEPLOYMENT, message, "Uninstalled", stalled=True)
    try:
        targets = targets_of(holder, seen, config)
    except ValueError as error:
        return Told(UNABLE, str(error), "InvalidSelector", stalled=True)
    if not targets:
        message = "the project has no namespace: add one to the project, or widen the selector"
        return Told(NO_TARGETS, message, "NoTargets", stalled=True)
    if problem := namespace_problem(holder, seen, config):
        return Told(UNABLE, problem, "NamespaceConflict", stalled=True)
    if refusals:
        first = sorted(refusals, key=lambda refusal: (refusal.key, refusal.message))[0]
        return Told(UNABLE, f"{first.key} was refused: {first.message[:700]}", "Refused", stalled=True)
    details: Object = {
        "systemNamespace": config.helm_project_operator.system_namespace,
        "releaseNamespace": release_namespace(holder.key, seen.name, config),
        "releaseName": seen.name,
        "targetNamespaces": list(targets),
    }
    dashboards = merged_dashboards(_dashboard_parts(seen))
    if not dashboards:
        message = "the chart's dashboard values are not there yet: no labelled ConfigMap with a JSON object"
        return Told(WAITING_FOR_DASHBOARD, message, "", stalled=False, details=details)
    message = "the release was requested, and its dashboard values are there"
    return Told(DEPLOYED, message, "", stalled=False, details={**details, "dashboardValues": dashboards})


def _dashboard_parts(seen: Release) -> list[Object]:
    """JSON objects of all labelled ConfigMaps, by ConfigMap name and key; what does not parse is passed over."""
    from pydantic_core import from_json

    parts: list[Object] = []
    for config_map in sorted(seen.dashboards, key=lambda found: str(found["metadata"]["name"])):
        for key, text in sorted((config_map.get("data") or {}).items()):
            if not key.endswith(".json"):
                continue
            try:
                value = from_json(text)
            except ValueError:
                continue
            if isinstance(value, dict):
                parts.append(value)
    return parts


def _status(contender: Contender, told: Told, seen: Release, config: Config) -> Apply:
    live = contender.object
    metadata = live["metadata"]
    generation = int(metadata.get("generation") or 0)
    conditions = _conditions(told, seen, config, generation)
    status: Object = {
        "status": told.status,
        "statusMessage": told.message,
        **(told.details or {}),
        "observedGeneration": generation,
        "conditions": conditions,
    }
    if told.reason == "ReleaseNameTaken":
        status.pop("releaseName", None)
    wanted: Object = {
        "apiVersion": PROJECT_HELM_CHART.api_version,
        "kind": PROJECT_HELM_CHART.kind,
        "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]},
        "status": status,
    }
    return Apply(PROJECT_HELM_CHART, wanted, live, subresource="status", notice=_notice(live, told, conditions))


def _notice(live: Object, told: Told, conditions: Sequence[Object]) -> Notice | None:
    wanted = {made["type"]: made for made in conditions}
    for type_, kind in (("Stalled", "Warning"), ("Ready", "Normal")):
        now, before = wanted[type_], find_condition(live, type_) or {}
        if now["status"] == "True" and (before.get("status"), before.get("message")) != ("True", now["message"]):
            return Notice(live, now["reason"], now["message"], "Provision", kind)  # type: ignore[arg-type]
    return None


def _conditions(told: Told, seen: Release, config: Config, generation: int) -> list[Object]:
    if told.stalled:
        return [
            condition("Ready", "False", told.reason, told.message, generation),
            condition("Reconciling", "False", told.reason, told.message, generation),
            condition("Stalled", "True", told.reason, told.message, generation),
        ]
    helm_failed = find_condition(seen.helm_chart, "Failed")
    if helm_failed is not None and helm_failed.get("status") == "True":
        message = f"Helm could not deploy {seen.name}: {helm_failed.get('message') or 'see its job'}"
        return [
            condition("Ready", "False", "HelmFailed", message, generation),
            condition("Reconciling", "False", "HelmFailed", message, generation),
            condition("Stalled", "True", "HelmFailed", message, generation),
        ]
    lock = ((seen.helm_release or {}).get("status") or {}).get("state", "")
    job_done = find_condition(seen.helm_chart, "Complete")
    ready = lock == "Deployed" or (job_done is not None and job_done.get("status") == "True")
    if ready:
        message = f"release {seen.name} is deployed" + (f"; its lock says {lock}" if lock else "")
        return [
            condition("Ready", "True", "Deployed", message, generation),
            condition("Reconciling", "False", "Deployed", message, generation),
            condition("Stalled", "False", "Deployed", message, generation),
        ]
    message = f"waiting for Helm to deploy {seen.name}" + (f"; its lock says {lock}" if lock else "")
    return [
        condition("Ready", "False", "WaitingForHelm", message, generation),
        condition("Reconciling", "True", "WaitingForHelm", message, generation),
        condition("Stalled", "False", "WaitingForHelm", message, generation),
    ]
