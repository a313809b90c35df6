"""The function: its name and its units."""

from __future__ import annotations

import logging

from release_provisioning.jobs import Jobs
from release_provisioning.projects import Releases
from tenantry.engine import Units
from tenantry.serving import Function, Settings
from tenantry.serving.archives import chart_contents
from tenantry.serving.charts import chart_files

log = logging.getLogger("tenantry")


def _units(settings: Settings) -> Units:
    chart_files(settings.config)  # what is no chart is refused here, before Helm meets it
    for setting in settings.config.cluster_admins if settings.config.helm_project_operator.helm_controller.enabled else ():
        log.warning("%s is cluster-admin: Helm's Jobs have all rights in all namespaces while they run", setting)
    return [Releases(settings.config, chart_contents(settings.config)), Jobs(settings.config)]


function = Function("release-provisioning", _units)
