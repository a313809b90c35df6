"""What locks want: pure functions from what was observed to writes.

Sources of the rules: spec 6, hpo-69 to hpo-84.  An object is put right only while its release is locked: its newest record
says deployed, or a later revision failed or was interrupted long enough ago.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lock_enforcement.helm import marked
from lock_enforcement.locks import is_ours
from lock_enforcement.releases.seen import LOCK_MANAGER, Lock, LockedObject, drifters, kept, new_manager
from tenantry.model import limits
from tenantry.model.comparison import Path, shown
from tenantry.model.config import Config
from tenantry.model.difference import entries_of
from tenantry.model.kinds import HELM_RELEASE, Object, is_terminating
from tenantry.model.names import LOCK_FINALIZER, RELEASE_MANAGED_BY, UPSTREAM_HELM_RELEASE_FINALIZER
from tenantry.model.plan import NOTHING, Apply, Delete, KubernetesEvent, Plan, Propagation, PutBack, RemoveFinalizers, Write

NEVER_DELETED = frozenset({"CustomResourceDefinition", "Namespace", "PersistentVolume", "PersistentVolumeClaim"})
"""Kinds that hold what is lost with them: a change that cannot be undone in place is only told."""

ORPHANING = frozenset({"StatefulSet"})
"""Kinds whose pods stay and are adopted again when the object is made anew."""

REPLACED = frozenset({("Service", "spec.type")})
"""Fields that are put back by making the object anew, though the API would take an update (hpo-83)."""


def plan_lock(seen: Lock, config: Config) -> Plan:
    """Claim the HelmRelease, and put right what drifted."""
    helm_release = seen.helm_release
    if helm_release is None:
        return NOTHING
    if is_terminating(helm_release) and is_ours(helm_release, config):
        ours = (LOCK_FINALIZER, UPSTREAM_HELM_RELEASE_FINALIZER)
        return Plan(((RemoveFinalizers(HELM_RELEASE, helm_release, ours),),))
    if not is_ours(helm_release, config) or not config.helm_project_operator.helm_locker.enabled:
        return Plan(((RemoveFinalizers(HELM_RELEASE, helm_release, (LOCK_FINALIZER,)),),))
    writes: list[Write] = [_claim(helm_release, config)]
    if kept(seen, config):
        for each in seen.objects:
            writes += _right(each, seen)
    return Plan((tuple(writes),))


def _claim(helm_release: Object, config: Config) -> Apply:
    metadata = helm_release["metadata"]
    wanted: Object = {
        "apiVersion": HELM_RELEASE.api_version,
        "kind": HELM_RELEASE.kind,
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "annotations": {RELEASE_MANAGED_BY: config.helm_project_operator.controller_name},
            "finalizers": [LOCK_FINALIZER],
        },
    }
    return Apply(HELM_RELEASE, wanted, helm_release)


def _right(each: LockedObject, seen: Lock) -> Iterator[Write]:
    assert seen.deployed is not None
    assert seen.release is not None
    if each.kind is None or is_terminating(each.live):
        return
    to = new_manager(seen.deployed)
    if each.kept:
        if each.live is None:
            body = marked(each.wanted, seen.release)
            event = None if each.again is not None else _event(each, seen, "Recreated", "was deleted and is made again")
            yield PutBack(each.kind, body, None, to, event=event, precondition=seen.precondition)
            return
        if each.drift and each.body is None:
            what = f"{_fields(each.drift)} cannot be put back in place, so it is deleted and made anew"
            propagation: Propagation = "Orphan" if each.kind.kind in ORPHANING else "Background"
            event = _event(each, seen, "Recreated", what)
            yield Delete(each.kind, each.live, event, propagation, seen.precondition)
            return
        if each.drift:
            assert each.body is not None
            fields = tuple(shown(path) for path in each.drift)
            event = _event(each, seen, "Restored", f"{_fields(each.drift)} put back")
            yield PutBack(each.kind, each.body, each.live, to, fields, event, seen.precondition)
            return
    if each.live is not None and entries_of(each.live, LOCK_MANAGER):
        yield PutBack(each.kind, each.wanted, each.live, to)  # a process ended before it could hand the fields back


def _fields(paths: Sequence[Path]) -> str:
    texts = [shown(path) for path in paths]
    more = f" and {len(texts) - limits.PROBLEMS_SHOWN} more" if len(texts) > limits.PROBLEMS_SHOWN else ""
    return ", ".join(texts[: limits.PROBLEMS_SHOWN]) + more


def _event(each: LockedObject, seen: Lock, reason: str, what: str) -> KubernetesEvent:
    assert seen.deployed is not None
    by = f", changed by {' and '.join(found)}" if (found := drifters(each)) else ""
    note = f"{each.key}: {what}, as in revision {seen.deployed.revision} of release {seen.release}{by}"
    return KubernetesEvent(each.live or each.wanted, reason, note, "KeepRelease")
