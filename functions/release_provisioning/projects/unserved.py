"""The Warning on a ProjectHelmChart whose helmApiVersion no chart here has.

It may be another system's, so it gets neither status nor finalizer (hpo-39): an Event is all, and none once somebody has given
it a status, since then it is served.
"""

from __future__ import annotations

from dataclasses import dataclass

from tenantry.model.config import Config
from tenantry.model.difference import difference
from tenantry.model.kinds import Object, is_terminating
from tenantry.model.plan import NOTHING, Plan, plan_of
from tenantry.model.projects import RELEASE_FUNCTION, RELEASE_MANAGER
from tenantry.model.releases import chart_for
from tenantry.model.standing import warning, warning_name

REASON = "UnknownHelmApiVersion"
BY = (RELEASE_FUNCTION, "projects", "Provision")


@dataclass(frozen=True, slots=True)
class Asked:
    """A ProjectHelmChart, None when it is deleted; whether its project is served here; and the Event as it is."""

    chart: Object | None
    in_project: bool = False
    event: Object | None = None
    now: str = ""


def is_unserved(chart: Object | None, config: Config) -> bool:
    """Whether nobody seems to serve a ProjectHelmChart: no chart here has its helmApiVersion, and it has no status."""
    return chart is not None and not chart.get("status") and not is_terminating(chart) and chart_for(chart, config) is None


def name_of(chart: Object) -> str:
    """The name of the Event: one for each thing that is asked for."""
    return warning_name(chart, REASON, str(_wanted(chart)))


def report_unserved(seen: Asked, config: Config) -> Plan:
    """The Warning that tells what can be asked for."""
    if seen.chart is None or not seen.in_project or not is_unserved(seen.chart, config):
        return NOTHING
    known = ", ".join(sorted(chart.helm_api_version for chart in config.helm_project_operator.charts)) or "none"
    wanted = _wanted(seen.chart)
    asked = (
        "spec.helmApiVersion is missing"
        if not wanted
        else f"spec.helmApiVersion is {str(wanted)[:200]!r}, which no chart here has"
    )
    note = f"{asked}: see whether the system that serves it is running, or set it to one of these: {known}"
    event = warning(seen.chart, name_of(seen.chart), REASON, note, seen.event, seen.now, by=BY)
    return plan_of(event) if difference(event.wanted, event.live, manager=RELEASE_MANAGER) is not None else NOTHING


def _wanted(chart: Object) -> object:
    return (chart.get("spec") or {}).get("helmApiVersion")
