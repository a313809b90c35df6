"""Releases as they are observed, with what is asked for and what was made, for tests without a cluster."""

from __future__ import annotations

from typing import Any

from release_provisioning.projects.seen import Contender, ObservedRelease
from tenantry.model.conditions import find_condition
from tenantry.model.config import Config
from tenantry.model.kinds import NAMESPACE, PROJECT_HELM_CHART, Object, object_of
from tenantry.model.plan import Apply, Plan
from tenantry.model.projects import RELEASE_MANAGER

VERSION, NAME, HOME, SYSTEM = "dummy.cattle.io/v1alpha1", "demo-dummy", "cattle-project-p-a", "cattle-helm-system"
CONTENTS = {VERSION: "Y2hhcnQ="}
FINALIZER = "tenantry.dev/release"


def config(**operator: Any) -> Config:
    """A configuration with the system project ``p-system``."""
    return Config.model_validate({"global": {"cattle": {"systemProjectId": "p-system"}}, "helmProjectOperator": operator})


def asked(name: str = "demo", namespace: str = HOME, version: str = VERSION, **metadata: Any) -> Object:
    """A ProjectHelmChart."""
    identity = {"name": name, "namespace": namespace, "uid": f"{namespace}/{name}", "generation": 2, **metadata}
    return object_of(PROJECT_HELM_CHART, identity, spec={"helmApiVersion": version})


def contender(obj: Object | None = None, *, project: str = "p-a", denied: bool = False, chart: bool = True) -> Contender:
    """A ProjectHelmChart that asks for the release, of this project, served or not."""
    ours = config().helm_project_operator.charts[0] if chart else None
    return Contender(obj or asked(), ours, project, denied)


def member(name: str = "a1") -> Object:
    """A namespace of project ``p-a``."""
    return object_of(NAMESPACE, {"name": name, "labels": {"field.cattle.io/projectId": "p-a"}})


def made(kind: str, *, by: str = f"{HOME}/demo", owned: bool = True, status: Object | None = None, **metadata: Any) -> Object:
    """An object that was made for the release, by this ProjectHelmChart."""
    version = "helm.cattle.io/v1" if kind == "HelmChart" else "helm.cattle.io/v1alpha1"
    annotations = {"tenantry.dev/project-helm-chart": by} if by else {}
    entry = {"manager": RELEASE_MANAGER, "operation": "Apply", "fieldsV1": {"f:spec": {}}}
    identity = {"name": NAME, "namespace": SYSTEM, "uid": "u", "resourceVersion": "1", "generation": 3}
    whole = {**identity, "annotations": annotations, "managedFields": [entry] if owned else [], **metadata}
    return {"apiVersion": version, "kind": kind, "metadata": whole, "spec": {}, "status": status or {}}


def seen(*contenders: Contender, **found: Any) -> ObservedRelease:
    """The release with one member, asked for by these."""
    return ObservedRelease(NAME, contenders or (contender(),), members=(member(),), **found)


def verbs(plan: Plan) -> list[str]:
    """The writes of a plan, each as verb and kind."""
    return [f"{type(write).__name__} {write.key.kind}" for write in plan.writes()]


def told(plan: Plan) -> Object:
    """The status that a report writes."""
    (write,) = plan.writes()
    assert isinstance(write, Apply)
    status: Object = write.wanted["status"]
    return status


def stalled(plan: Plan) -> str:
    """The reason why a report says that nothing goes on; empty while something does."""
    found = find_condition({"status": told(plan)}, "Stalled") or {}
    return str(found["reason"]) if found["status"] == "True" else ""
