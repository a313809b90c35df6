"""The function: its name and its units."""

from __future__ import annotations

import logging

from release_provisioning.archives import chart_contents
from release_provisioning.descriptor import HELM_JOBS, RELEASES, descriptor
from release_provisioning.jobs import Jobs
from release_provisioning.kept import kept_chart
from release_provisioning.projects import Releases
from tenantry.engine import Units
from tenantry.model.kinds import PROJECT_HELM_CHART
from tenantry.serving import Function, Settings
from tenantry.serving.charts import chart_files

log = logging.getLogger("tenantry")


def _units(settings: Settings) -> Units:
    config, units = settings.config, list[Releases | Jobs]()
    if settings.has(RELEASES):
        chart_files(config)  # what is no chart is refused here, before Helm meets it
        units.append(Releases(config, chart_contents(config)))
    if settings.has(HELM_JOBS):
        for setting in config.cluster_admins if config.helm_project_operator.helm_controller.enabled else ():
            log.warning("%s is cluster-admin: Helm's Jobs have all rights in all namespaces while they run", setting)
        units.append(Jobs(config))
    return units


function = Function(descriptor, _units, keeps={PROJECT_HELM_CHART: kept_chart})
