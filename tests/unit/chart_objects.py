"""HelmCharts and what runs Helm for them, as the API server has them: short forms for the unit tests of jobs."""

from __future__ import annotations

import base64
from typing import Any

from release_provisioning.jobs import manifest
from release_provisioning.jobs.plan import last_word, plan_chart, with_wanted
from release_provisioning.jobs.report import report_chart
from release_provisioning.jobs.seen import ObservedHelmChart
from tenantry.model.config import Config
from tenantry.model.kinds import HELM_CHART, HELM_CHART_CONFIG, Object, is_terminating
from tenantry.model.plan import Refusal
from tenantry.testing.objects import obj

SYSTEM = "cattle-helm-system"
OURS = "tenantry.dev/helm-chart"
THEIRS = "wrangler.cattle.io/on-helm-chart-remove"
MANAGED = {"helmcharts.cattle.io/managed-by": "helm-project-operator"}
MANAGER = "tenantry-release-provisioning"
ARCHIVE = base64.b64encode(b"\x1f\x8b rest").decode()
ALL = [
    "create Secret chart-values-demo",
    "create ConfigMap chart-content-demo",
    "create ServiceAccount helm-demo",
    "create ClusterRoleBinding helm-cattle-helm-system-demo",
    "create Job helm-install-demo",
]
"""The changes that install a HelmChart, from nothing."""


def config(**controller: Any) -> Config:
    charts = [
        {"helmApiVersion": "dummy.cattle.io/v1alpha1", "releaseName": "dummy"},
        {"helmApiVersion": "narrow.cattle.io/v1alpha1", "releaseName": "narrow", "jobClusterRole": "narrow"},
    ]
    return Config.model_validate({"helmProjectOperator": {"charts": charts, "helmController": controller}})


def chart(name: str = "demo", *, leaving: bool = False, status: Object | None = None, **spec: Any) -> Object:
    metadata: Object = {"uid": "u1", "resourceVersion": "1", "generation": 1, "finalizers": [OURS]}
    if leaving:
        metadata["deletionTimestamp"] = "now"
    rest = {"status": status} if status is not None else {}
    return obj(HELM_CHART, name, SYSTEM, annotations=dict(MANAGED), metadata=metadata, spec={"chart": "tiny", **spec}, **rest)


def further(**spec: Any) -> Object:
    return obj(HELM_CHART_CONFIG, "demo", SYSTEM, spec=spec)


def stored(wanted: Object, **status: Any) -> Object:
    """An object as the API server has it."""
    metadata = {**wanted["metadata"], "uid": "j1", "resourceVersion": "2"}
    return {**wanted, "metadata": metadata, "status": status}


def seen(of: Object | None = None, **parts: Any) -> ObservedHelmChart:
    of = chart() if of is None else of
    found = ObservedHelmChart(of["metadata"]["namespace"], of["metadata"]["name"], of, **parts)
    return found if is_terminating(of) else with_wanted(found, config())


def install_of(of: Object, **status: Any) -> Object:
    return stored(manifest.install_job(of, None, {}, config()), **status)


def delete_of(of: Object, **status: Any) -> Object:
    return stored(manifest.delete_job(of, config()), **status)


def settled(of: Object, **parts: Any) -> ObservedHelmChart:
    """A HelmChart with everything in place."""
    wanted = {
        "secret": stored(manifest.secret(of, None)),
        "content": stored(manifest.content(of)),
        "account": stored(manifest.account(of)),
        "binding": stored(manifest.binding(of, "cluster-admin")),
        "install": install_of(of),
    }
    return seen(of, **{**wanted, **parts})


def named_alike(of: Object) -> dict[str, Object]:
    """Objects of somebody else that have the names which a HelmChart needs, by the part that they stand for."""
    made = {
        "secret": manifest.secret(of, None),
        "content": manifest.content(of),
        "account": manifest.account(of),
        "install": manifest.install_job(of, None, {}, config()),
        "delete": manifest.delete_job(of, config()),
        "binding": manifest.binding(of, "cluster-admin") | {"subjects": [{"kind": "User", "name": "alice"}]},
    }
    return {
        part: stored({**one, "metadata": {"name": one["metadata"]["name"], "namespace": SYSTEM}}) for part, one in made.items()
    }


def condition(kind: str, status: str = "True", **more: str) -> Object:
    return {"type": kind, "status": status, **more}


def writes(of: ObservedHelmChart, **controller: Any) -> list[str]:
    """The changes of the plan, each as verb, kind and name."""
    changes = plan_chart(of, config(**controller)).changes(MANAGER)
    return [f"{change.verb} {change.key.kind} {change.key.name}" for change in changes]


def said(of: ObservedHelmChart, refusals: tuple[Refusal, ...] = (), **controller: Any) -> dict[str, tuple[str, str, str]]:
    """The conditions of the report, by type, as status, reason and message."""
    (write,) = report_chart(of, refusals, config(**controller)).writes()
    conditions = write.wanted["status"]["conditions"]  # type: ignore[union-attr]
    return {found["type"]: (found["status"], found["reason"], found["message"]) for found in conditions}


def event(of: ObservedHelmChart, refusals: tuple[Refusal, ...] = ()) -> str:
    """The reason of the Event that goes with the report."""
    (write,) = report_chart(of, refusals, config()).writes()
    return write.event.reason if write.event else ""


def last_reason(of: ObservedHelmChart) -> str:
    """The reason of the last word on a HelmChart that goes; empty while it waits."""
    found = last_word(of, config())
    return found.reason if found is not None else ""
