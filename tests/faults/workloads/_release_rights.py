"""What the workload of rbac-aggregation promises, and the hands that it needs beside what people declare."""

from __future__ import annotations

from rbac_aggregation.projects.levels import change_digest
from rbac_aggregation.projects.seen import MANAGER, RBAC_GROUP, role_ref
from tenantry.model.config import Config
from tenantry.model.kinds import Object, key_of, labels_of
from tenantry.model.names import (
    AGGREGATE_FROM,
    BINDING_OF,
    CLEANUP,
    LEVEL_TAKEN_FROM,
    OPERATED,
    PROJECT_CHART,
    PROJECT_ID,
    ROLE_OF,
    WITHDRAWAL_ACCEPTED,
)
from tenantry.testing.workload import Run, Step, apply
from tenantry.testing.world import Moment

HOME, PLACE, CHART = "cattle-project-p-@", "demo-@-dummy", ("ProjectHelmChart", "demo-@", "cattle-project-p-@")
SPEC = {"helmApiVersion": "dummy.cattle.io/v1alpha1"}
CONFIG = {"global": {"cattle": {"systemProjectId": "p-system"}}}
OURS = {OPERATED: "true", PROJECT_ID: "p-@"}


def role(name: str, level: str, **labels: str) -> Step:
    return apply("Role", name, PLACE, labels=labels or {ROLE_OF: PLACE, AGGREGATE_FROM: level}, rules=[])


def named(binding: Object | None, *levels: object) -> set[str]:
    counts = binding is not None and (not levels or binding["roleRef"]["name"] in levels)
    return {each["name"] for each in (binding or {}).get("subjects") or () if counts}


def only_who_is_named(moment: Moment) -> str:
    """Who gets a right is named for the Role's level in the registration namespace; who goes on being named keeps it."""
    key, now = moment.change.key, moment.objects
    if not moment.by or key.kind != "RoleBinding":
        return ""
    levels = {labels_of(each).get(AGGREGATE_FROM) for each in moment.declared("Role", key.name, key.namespace)}
    bindings = [(where, found) for where, found in moment.all_declared("RoleBinding") if "-project-" in where.namespace]
    may = {name for _, found in bindings for each in found for name in named(each, *levels)}
    held = len(levels) == 1 and {each.kind for each in now} >= {"Role", "ProjectHelmChart"}
    held = held and not any(CLEANUP in labels_of(each) for each in now.values())
    keeps = {who for where, found in bindings if held and where in now for who in named(found[0], *levels) & named(found[-1])}
    had, has = named(moment.change.before), named(moment.change.after)
    return f"gave {has - had - may}, took {keeps & had - has}" if has - had - may or keeps & had - has else ""


async def as_bound_before(run: Run) -> None:
    """The RoleBinding of Role r-admin as it was made when level admin was taken from ClusterRole boss."""
    labels = {**OURS, BINDING_OF: PLACE}
    annotations = {PROJECT_CHART: f"{HOME}/demo-@", LEVEL_TAKEN_FROM: "admin=boss"}
    fields = {"roleRef": role_ref("r-admin"), "subjects": [{"apiGroup": RBAC_GROUP, "kind": "User", "name": "bob"}]}
    made = await run.apply("RoleBinding", "r-admin", PLACE, MANAGER, labels=labels, annotations=annotations, **fields)
    del run.declared[key_of(made)]  # ours, not theirs


async def accept(run: Run) -> None:
    """Annotate the ProjectHelmChart as its condition says."""
    live = await run.get(*CHART) or {}
    value = {WITHDRAWAL_ACCEPTED: change_digest(live, Config.model_validate(CONFIG))}
    await run.edit(*CHART, {"op": "add", "path": "/metadata/annotations", "value": value})
