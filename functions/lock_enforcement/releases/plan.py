"""What locks want: pure functions from what was observed to writes.

Sources of the rules: spec 6, hpo-69 to hpo-84.  An object is put right only while its release is locked: its newest record
says deployed, or a later revision failed or was interrupted long enough ago.
"""

from __future__ import annotations

from lock_enforcement.helm import marked
from lock_enforcement.locks import is_ours
from lock_enforcement.releases.seen import LOCK_MANAGER, Lock, LockedObject, drifters, kept, new_manager
from tenantry.model import limits
from tenantry.model.comparison import shown
from tenantry.model.config import Config
from tenantry.model.difference import entries_of
from tenantry.model.kinds import HELM_RELEASE, Object, is_terminating, name_metadata, object_of
from tenantry.model.names import LOCK_FINALIZER, RELEASE_MANAGED_BY, UPSTREAM_HELM_RELEASE_FINALIZER
from tenantry.model.plan import (
    NOTHING,
    Apply,
    Delete,
    KubernetesEvent,
    Plan,
    Propagation,
    PutBack,
    RemoveFinalizers,
    Write,
    plan_of,
)

NEVER_DELETED = frozenset({"CustomResourceDefinition", "Namespace", "PersistentVolume", "PersistentVolumeClaim"})
"""Kinds that hold what is lost with them: a change that cannot be undone in place is only reported."""

ORPHANING = frozenset({"StatefulSet"})
"""Kinds whose pods stay and are adopted again when the object is made anew."""

REPLACED = frozenset({("Service", "spec.type")})
"""Fields that are put back by making the object anew, though the API would take an update (hpo-83)."""


def plan_lock(seen: Lock | None, config: Config) -> Plan:
    """Claim the HelmRelease, and put right what drifted."""
    if seen is None:
        return NOTHING
    helm_release = seen.helm_release
    if is_terminating(helm_release) and is_ours(helm_release, config):
        ours = (LOCK_FINALIZER, UPSTREAM_HELM_RELEASE_FINALIZER)
        return plan_of(RemoveFinalizers(HELM_RELEASE, helm_release, ours))
    if not is_ours(helm_release, config) or not config.helm_project_operator.helm_locker.enabled:
        return plan_of(RemoveFinalizers(HELM_RELEASE, helm_release, (LOCK_FINALIZER,)))
    objects = seen.objects if kept(seen, config) else ()
    writes = [write for each in objects if (write := _right(each, seen)) is not None]
    return plan_of(_claim(helm_release, config), *writes)


def _claim(helm_release: Object, config: Config) -> Apply:
    annotations = {RELEASE_MANAGED_BY: config.helm_project_operator.controller_name}
    metadata = {**name_metadata(helm_release), "annotations": annotations, "finalizers": [LOCK_FINALIZER]}
    return Apply(HELM_RELEASE, object_of(HELM_RELEASE, metadata), helm_release)


def _right(each: LockedObject, seen: Lock) -> Write | None:
    """What puts an object right, if anything has to."""
    assert seen.deployed is not None
    assert seen.release is not None
    if each.kind is None or is_terminating(each.live):
        return None
    to, fields = new_manager(seen.deployed), tuple(shown(path) for path in each.drift)
    if each.kept and each.live is None:
        body = marked(each.wanted, seen.release)
        event = None if each.again is not None else _event(each, seen, "Recreated", "was deleted and is made again")
        return PutBack(each.kind, body, None, to, event=event, precondition=seen.precondition)
    if each.kept and each.live is not None and fields:
        if each.body is None:
            what = f"{limits.few(fields)} cannot be put back in place, so it is deleted and made anew"
            propagation: Propagation = "Orphan" if each.kind.kind in ORPHANING else "Background"
            return Delete(each.kind, each.live, _event(each, seen, "Recreated", what), propagation, seen.precondition)
        event = _event(each, seen, "Restored", f"{limits.few(fields)} put back")
        return PutBack(each.kind, each.body, each.live, to, fields, event, seen.precondition)
    if each.live is not None and entries_of(each.live, LOCK_MANAGER):
        return PutBack(each.kind, each.wanted, each.live, to)  # a process ended before it could give the fields back
    return None


def _event(each: LockedObject, seen: Lock, reason: str, what: str) -> KubernetesEvent:
    assert seen.deployed is not None
    by = f", changed by {' and '.join(found)}" if (found := drifters(each)) else ""
    note = f"{each.key}: {what}, as in revision {seen.deployed.revision} of release {seen.release}{by}"
    return KubernetesEvent(each.live or each.wanted, reason, note, "KeepRelease")
