"""release-provisioning: a release follows its project, and what was made drifts and is put back."""

from dataclasses import replace

from tenantry.testing.workload import delete, edit, together

from .release_provisioning import JOIN, JOIN_TOO, LEAVE, MOVE, OFF, OTHER, READY, RELEASE, SYSTEM
from .release_provisioning import workload as provisioning

workload = replace(provisioning, scenarios={})
workload.scenario("move-member", MOVE, before=[together(OTHER, *READY, JOIN_TOO)], other=[*READY, JOIN_TOO, MOVE, OTHER])
workload.scenario("no-targets", LEAVE, JOIN, before=READY)
workload.scenario("drift-chart", edit("HelmChart", RELEASE, SYSTEM, "/spec/valuesContent", "x: 1"), before=READY)
workload.scenario("drift-made", delete("HelmChart", RELEASE, SYSTEM), delete("HelmRelease", RELEASE, SYSTEM), before=READY)
workload.scenario("drift-home", OFF, delete("NetworkPolicy", "hpo-generated-default", RELEASE), before=READY)
MAY_GO = edit("Namespace", RELEASE, "", "/metadata/annotations/tenantry.dev~1allow-deletion", "true")
workload.scenario("rebuild", delete("Namespace", RELEASE, gone=True), before=[*READY, MAY_GO])
