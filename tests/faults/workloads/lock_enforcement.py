"""lock-enforcement: a release is locked, drifts in every way, is upgraded, fails, is paused and goes."""

import base64
import gzip
import json
from collections.abc import Awaitable

from tenantry.model.helm import read_record
from tenantry.model.kinds import CONFIG_MAP, EVENT, HELM_RELEASE, NAMESPACE, SECRET
from tenantry.testing.workload import Run, Step, Workload, apply, delete, edit, namespace
from tenantry.testing.world import Moment

HOME, LOCK = "n-@", "lock-@"
MARKS = {"meta.helm.sh/release-name": "r", "meta.helm.sh/release-namespace": HOME}
MANAGED = {"app.kubernetes.io/managed-by": "Helm"}
SYSTEM = "cattle-helm-system"
VERBS = ["get", "list", "create", "patch", "delete"]


def record(revision: int, status: str, value: str = "1") -> Step:
    """Helm's record of a revision: a ConfigMap c1 with this value."""
    manifest = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c1"}, "data": {"a": value}})
    release = {"name": "r", "version": revision, "info": {"status": status}, "manifest": manifest}
    packed = base64.b64encode(base64.b64encode(gzip.compress(json.dumps(release).encode(), mtime=0))).decode()
    labels = {"owner": "helm", "name": "r", "status": status, "version": str(revision)}
    return apply(
        "Secret", f"sh.helm.release.v1.r.v{revision}", HOME, labels=labels, type="helm.sh/release.v1", data={"release": packed}
    )


def makes(value: str) -> Step:
    """Helm makes or changes the object."""
    return lambda run: run.apply("ConfigMap", "c1", HOME, annotations=MARKS, labels=MANAGED, data={"a": value})


SOURCE = {  # in place of the one that the function makes
    "apiVersion": "sources.knative.dev/v1",
    "kind": "ApiServerSource",
    "metadata": {"name": "locked", "namespace": "tenantry-system"},
    "spec": {
        "namespaceSelector": {},
        "resources": [{"apiVersion": "v1", "kind": "ConfigMap"}],
        "ceOverrides": {"extensions": {"locked": "true"}},
        "sink": {"ref": {"apiVersion": "eventing.knative.dev/v1", "kind": "Broker", "name": "tenantry"}},
    },
}


def waits_for_helm(moment: Moment) -> str:
    """No lock write while the newest record says that Helm is at work; handing fields back changes none."""
    before, after = moment.change.before, moment.change.after
    if not moment.by or moment.change.key.kind != "ConfigMap" or (before and after and before.get("data") == after.get("data")):
        return ""
    found = [read_record(obj, "r") for key, obj in moment.objects.items() if key.kind == "Secret" and "sh.helm" in key.name]
    newest = max(found, key=lambda each: each.revision, default=None)
    return "" if newest and newest.status in ("deployed", "failed") else f"wrote while Helm says {newest and newest.status}"


workload = Workload(
    "lock-enforcement",
    config={"helmProjectOperator": {"helmLocker": {"failedGraceSeconds": 0}}},
    tells=lambda obj: any(each.get("status") == "False" for each in (obj.get("status") or {}).get("conditions") or ()),
    common=["apiserversources"],
    safe=[waits_for_helm],
    watched=(NAMESPACE, CONFIG_MAP, SECRET, HELM_RELEASE, EVENT),
    sources=[SOURCE],
    installed=[
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
         "metadata": {"name": "lockable", "labels": {"tenantry.dev/aggregate-to-locks": "true"}},
         "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": VERBS}]},
    ],
)  # fmt: skip
DECLARED = {"release": {"name": "r", "namespace": HOME}}
LOCKED = apply("HelmRelease", LOCK, SYSTEM, spec=DECLARED)
PAUSED = apply("HelmRelease", LOCK, SYSTEM, spec={**DECLARED, "suspend": True})
MADE = [namespace(HOME), makes("1"), record(1, "deployed"), LOCKED]
EDITED = edit("ConfigMap", "c1", HOME, "/data/a", "x")
SET = [{"op": "add", "path": path, "value": value} for path, value in (("/data/a", "x"), ("/immutable", True))]


def FROZEN(run: Run) -> Awaitable[object]:  # noqa: N802 - a step like the others
    """A hand edits the object and makes it immutable."""
    return run.edit("ConfigMap", "c1", HOME, *SET)


workload.scenario("lock", LOCKED, before=MADE[:3])
workload.scenario("drift", EDITED, before=MADE)
workload.scenario("drift-deleted", delete("ConfigMap", "c1", HOME), before=MADE, other=MADE)
workload.scenario("drift-immutable", FROZEN, before=MADE)
workload.scenario("upgrade", record(2, "pending-upgrade"), makes("2"), record(2, "deployed", "2"), before=MADE)
workload.scenario("work", record(2, "pending-upgrade"), EDITED, record(2, "failed"), before=MADE)
workload.scenario("pause", PAUSED, EDITED, LOCKED, before=MADE)
workload.scenario("unlock", delete("HelmRelease", LOCK, SYSTEM, gone=True), before=MADE)
