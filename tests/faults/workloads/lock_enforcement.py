"""lock-enforcement: a release is locked, drifts in every way, is upgraded, fails, is paused and goes."""

from lock_enforcement.fields import content_of
from lock_enforcement.helm import read_record
from tenantry.model.conditions import find_condition
from tenantry.model.kinds import CONFIG_MAP, EVENT, HELM_RELEASE, NAMESPACE, SECRET
from tenantry.model.names import RELEASE_MANAGED_BY
from tenantry.testing.helm import lockable, locked_source, record
from tenantry.testing.workload import Step, Workload, apply, declare, delete, edit, namespace
from tenantry.testing.world import Moment

HOME, LOCK, SYSTEM = "n-@", "lock-@", "cattle-helm-system"
MARKS = {"meta.helm.sh/release-name": "r", "meta.helm.sh/release-namespace": HOME}


def says(revision: int, status: str, value: str = "1") -> Step:
    content = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c1"}, "data": {"a": value}}
    return declare(record("r", HOME, revision, status, content))


def makes(value: str) -> Step:
    return apply("ConfigMap", "c1", HOME, annotations=MARKS, labels={"app.kubernetes.io/managed-by": "Helm"}, data={"a": value})


def waits_for_helm(moment: Moment) -> str:
    """No write to what is locked while the newest record says that Helm is at work; handing fields back changes none."""
    before, after = moment.change.before, moment.change.after
    if not moment.by or moment.change.key.kind != "ConfigMap" or (before and after and content_of(before) == content_of(after)):
        return ""
    found = [read_record(obj, "r") for key, obj in moment.objects.items() if key.kind == "Secret" and "sh.helm" in key.name]
    newest = max(found, key=lambda each: each.revision, default=None)
    return "" if newest and newest.status in ("deployed", "failed") else f"wrote while Helm says {newest and newest.status}"


workload = Workload(
    "lock-enforcement",
    config={"helmProjectOperator": {"helmLocker": {"failedGraceSeconds": 0}}},
    tells=lambda obj: obj.get("type") == "Warning" or (find_condition(obj, "Complete") or {}).get("status") == "False",
    common=["apiserversources"],
    handover=[RELEASE_MANAGED_BY],
    largest=1000,
    safe=[waits_for_helm],
    watched=(NAMESPACE, CONFIG_MAP, SECRET, HELM_RELEASE, EVENT),
    sources=[locked_source(CONFIG_MAP)],
    installed=lockable("lockable", CONFIG_MAP),
)
SPEC, THERE = {"release": {"name": "r", "namespace": HOME}}, ("ConfigMap", "c1", HOME)
LOCKED, PAUSED = (apply("HelmRelease", LOCK, SYSTEM, spec=spec) for spec in (SPEC, {**SPEC, "suspend": True}))
MADE = [namespace(HOME), makes("1"), says(1, "deployed"), LOCKED]
EDITED = edit(*THERE, "/data/a", "x")
FREEZE = [{"op": "add", "path": path, "value": value} for path, value in (("/data/a", "x"), ("/immutable", True))]
workload.scenario("lock", LOCKED, before=MADE[:3])
workload.scenario("drift", EDITED, before=MADE)
workload.scenario("drift-deleted", delete(*THERE), before=MADE, other=MADE)
workload.scenario("drift-immutable", lambda run: run.edit(*THERE, *FREEZE), before=MADE)
workload.scenario("upgrade", says(2, "pending-upgrade"), makes("2"), says(2, "deployed", "2"), before=MADE)
workload.scenario("work", says(2, "pending-upgrade"), EDITED, says(2, "failed"), before=MADE)
workload.scenario("pause", PAUSED, EDITED, LOCKED, before=MADE)
workload.scenario("unlock", delete("HelmRelease", LOCK, SYSTEM), before=MADE)
