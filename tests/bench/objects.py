"""The objects of the bench: what people create, and what the function makes of it, as its own plan says."""

from __future__ import annotations

from typing import Any

from pydantic_core import from_json, to_json

from namespace_registration.projects.plan import Project, plan_project
from tenantry.engine.recorder import now_micro, reference
from tenantry.model.config import Config
from tenantry.model.kinds import CONFIG_MAP, EVENT, NAMESPACE, NETWORK_POLICY, SERVICE_ACCOUNT, Kind, Object
from tenantry.model.names import OPERATED, PROJECT_ID
from tenantry.model.plan import Apply
from tenantry.serving.charts import chart_files
from tenantry.testing.objects import obj

CONFIG = Config()
PROJECT_LABEL = CONFIG.project_label
INSIDE = (CONFIG_MAP, SERVICE_ACCOUNT, NETWORK_POLICY)
OURS = f"labelSelector={OPERATED.replace('/', '%2F')}%3Dtrue"
_CHARTS = chart_files(CONFIG)
_FOREIGN = (
    (b"helm.cattle.io/", b"bench.cattle.io/"),
    (b"field.cattle.io/", b"bench.cattle.io/"),
    (b"cattle-project-", b"benchs-project-"),
)


def foreign(ours: Object) -> Object:
    """The same object to the byte count or nearly, under names that mean nothing to any function."""
    raw = to_json(ours)
    for prefix, theirs in _FOREIGN:
        raw = raw.replace(prefix, theirs)
    made: Object = from_json(raw)
    return made


def namespace(name: str, project: str) -> Object:
    return obj(NAMESPACE, name, labels={PROJECT_LABEL: project} if project else {})


def member_label(name: str, project: str) -> Object:
    return obj(NAMESPACE, name, labels={PROJECT_ID: project})


def registration(project: str) -> tuple[Object, list[tuple[Kind, Object]]]:
    """The registration namespace, and what belongs into it."""
    plan = plan_project(Project(project, None, False, True), _CHARTS, CONFIG)
    wanted = [(write.kind, write.wanted) for write in plan.writes() if isinstance(write, Apply)]
    return wanted[0][1], wanted[1:]


def event(stored: Object, project: str) -> Object:
    """The Kubernetes Event that tells of a registration."""
    regarding = reference(stored)
    return {
        "apiVersion": EVENT.api_version,
        "kind": EVENT.kind,
        "metadata": {"name": f"{regarding['name']}.{regarding['uid'][:16]}", "namespace": "default"},
        "eventTime": now_micro(),
        "reportingController": "tenantry.dev/namespace-registration",
        "reportingInstance": "bench",
        "action": "Register",
        "reason": "ProjectRegistered",
        "regarding": regarding,
        "note": f"project {project} has its registration namespace",
        "type": "Normal",
    }


def is_complete_registration(found: Any) -> bool:
    """Labels and annotation, as a registration namespace must have them."""
    metadata = found["metadata"]
    labels = metadata.get("labels") or {}
    annotated = (metadata.get("annotations") or {}).get(PROJECT_LABEL)
    return bool(labels.get(OPERATED) == "true" and labels.get(PROJECT_ID) and labels.get(PROJECT_LABEL) and annotated)
