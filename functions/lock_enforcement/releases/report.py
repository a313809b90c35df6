"""What is reported of a lock: the conditions and the state of its HelmRelease, the last drift, and Events."""

from __future__ import annotations

from collections.abc import Sequence

from lock_enforcement.helm import STORAGES, Mark, state_of
from lock_enforcement.locks import ignore_problems, is_ours, is_paused, storage_of
from lock_enforcement.releases.descriptor import LOCKS
from lock_enforcement.releases.seen import COMPLETE, LOCKED, Lock, LockedObject, LockProblem, drifters, kept
from tenantry.model import limits
from tenantry.model.comparison import shown
from tenantry.model.conditions import condition, find_condition
from tenantry.model.config import Config
from tenantry.model.kinds import HELM_RELEASE, Key, Object, is_terminating, name_metadata, object_of
from tenantry.model.names import RELEASE_MANAGED_BY
from tenantry.model.plan import NOTHING, Apply, KubernetesEvent, Plan, Refusal, plan_of
from tenantry.model.refusals import REASONS, fixes, message_of, text_of

_BETWEEN = "; "
_REASONS = {**REASONS, "invalid": "Refused"}
FIXES = fixes(LOCKS)
FIXES_OF_LOCKED = fixes(
    LOCKS,
    quota="raise the ResourceQuota",
    admission="change the admission policy, or pause the lock of this object",
    rights="add the right to the ClusterRole tenantry-lock-enforcement-kinds",
    invalid="correct the chart and upgrade, or pause the lock of this object",
)
"""What mends a refusal of what a release holds, where the rights are the administrator's to give."""
OUTSIDE = {
    "namespaces": "outside of the release namespace {}, in none that spec.allow.namespaces of the HelmRelease names",
    "clusterKinds": "in no namespace, and spec.allow.clusterKinds of the HelmRelease does not name their Kind.group",
}
"""What a manifest may not reach, by the field of ``spec.allow`` that could change it."""


def report_lock(seen: Lock | None, refusals: Sequence[Refusal], config: Config) -> Plan:
    """State, version, conditions and the last drift, in the status of the HelmRelease."""
    if seen is None or not is_ours(seen.helm_release, config):
        return NOTHING
    helm_release = seen.helm_release
    if is_terminating(helm_release):
        return _held_up(helm_release, refusals)
    if not config.helm_project_operator.helm_locker.enabled:
        return NOTHING
    before = helm_release.get("status") or {}
    generation = helm_release["metadata"]["generation"]
    revision = kept(seen, config)
    conditions = [condition(LOCKED, "True" if revision else "False", *_locked(seen, revision, config), generation)]
    if revision or refusals:
        problems = problems_of(seen, refusals)
        conditions.append(condition(COMPLETE, "False" if problems else "True", *_complete(problems), generation))
    status: Object = {
        **_helms(seen, before),
        "lockedVersion": revision,
        "observedGeneration": generation,
        "conditions": conditions,
    }
    if drift := _last_drift(seen, revision, refusals) or before.get("lastDrift"):
        status["lastDrift"] = drift
    return _status(helm_release, status, _event(helm_release, status))


def _status(helm_release: Object, status: Object, event: KubernetesEvent | None) -> Plan:
    wanted = object_of(HELM_RELEASE, name_metadata(helm_release), status=status)
    return plan_of(Apply(HELM_RELEASE, wanted, helm_release, subresource="status", event=event))


def _held_up(helm_release: Object, refusals: Sequence[Refusal]) -> Plan:
    """That a deleted HelmRelease cannot go."""
    if not refusals:
        return NOTHING
    before = helm_release.get("status") or {}
    problem = refused(refusals[0], message_of(helm_release, LOCKED))
    if message_of(helm_release, LOCKED, problem.reason) == problem.text:
        return NOTHING
    held = condition(LOCKED, "False", problem.reason, problem.text)
    event = KubernetesEvent(helm_release, problem.reason, problem.text, "Report", "Warning")
    return _status(helm_release, {**before, "conditions": [held]}, event)


def _helms(seen: Lock, before: Object) -> Object:
    """State, version, description and notes as Helm has them; unchanged while no record can be read."""
    if seen.newest is not None:
        record = seen.newest
        return {
            "state": state_of(record.status),
            "version": record.revision,
            "description": record.description,
            "notes": record.notes,
        }
    if seen.unreadable and before.get("state"):
        return {name: before[name] for name in ("state", "version", "description", "notes") if name in before}
    state = "Unknown" if seen.unreadable else "SecretNotFound"
    return {"state": state, "version": 0, "description": "", "notes": ""}


def why_not_kept(seen: Lock, config: Config) -> str:
    """Why nothing is kept, for people; empty where something is."""
    if kept(seen, config):
        return ""
    if is_terminating(seen.helm_release):
        return "the HelmRelease is being deleted"
    if not is_ours(seen.helm_release, config):
        return f"the HelmRelease is another installation's by its annotation {RELEASE_MANAGED_BY}"
    if not config.helm_project_operator.helm_locker.enabled:
        return "helmProjectOperator.helmLocker.enabled is false"
    return _locked(seen, 0, config)[1]


def _locked(seen: Lock, revision: int, config: Config) -> tuple[str, str]:
    """Reason and message of the condition ``Locked``."""
    newest, helm_release = seen.newest, seen.helm_release
    if revision:
        return "Enforced", f"{seen.count} objects of revision {revision} of release {seen.release} are kept as Helm left them"
    if seen.release is None:
        text = "nothing is locked: write the names of a Helm release and of its namespace into spec.release"
        return "NamesNoRelease", text
    if is_paused(helm_release):
        return "Paused", "changes stay until spec.suspend and the annotation tenantry.dev/lock are gone"
    if seen.older:
        return "Conflict", f"HelmRelease {seen.older} is older and locks release {seen.release}: delete one of the two"
    if newest is None and seen.unreadable:
        return "RecordsUnreadable", f"what release {seen.release} is cannot be read: {_list(seen.unreadable)}"
    if newest is None:
        return "ReleaseNotFound", _not_found(helm_release, seen.release)
    about = f"revision {newest.revision} of release {seen.release} is {newest.status}"
    reason = "HelmAtWork" if state_of(newest.status) == "Transitioning" else "NotDeployed"
    if seen.deployed is None:
        return reason, f"{about}, and no revision is deployed"
    again = f"; revision {seen.deployed.revision} is kept again after"
    locker = config.helm_project_operator.helm_locker
    if newest.status == "failed":
        return "GracePeriod", f"{about}{again} {locker.failed_grace_seconds} s"
    if newest.status.startswith("pending-"):
        return reason, f"{about}{again} {locker.interrupted_grace_seconds} s, if Helm was interrupted"
    return reason, about


def _not_found(helm_release: Object, release: Mark) -> str:
    kind = storage_of(helm_release).kind
    other = next(each.kind for each in STORAGES if each.kind != kind)
    text = f"there is no Helm release {release} in {kind}s; where Helm keeps it in {other}s, write {other} into spec.storage"
    return f"{text} of the HelmRelease"


def _complete(problems: Sequence[LockProblem]) -> tuple[str, str]:
    """Reason and message of the condition ``Complete``."""
    if not problems:
        return "AllKept", "every object of the manifest is kept"
    return problems[0].reason, _list([problem.text for problem in problems])


def _list(texts: Sequence[str]) -> str:
    return limits.few(texts, between=_BETWEEN, last=f"{_BETWEEN}and ")


def problems_of(seen: Lock, refusals: Sequence[Refusal]) -> list[LockProblem]:
    """Why objects are not kept, in a stable order."""
    standing = message_of(seen.helm_release, COMPLETE)
    found = [
        out_of_reach(field, seen.release, keys)
        for field in OUTSIDE
        if seen.release is not None and (keys := [each.key for each in seen.objects if each.outside == field])
    ]
    own = [each.problem for each in seen.objects if each.problem is not None and not each.outside]
    found += [each if each.refusal is None else refused(each.refusal, standing) for each in own]
    found += [LockProblem("BadDocument", text) for text in seen.bad_documents]
    found += [LockProblem("BadIgnoreRule", text) for text in ignore_problems(seen.helm_release)]
    ordered = sorted(refusals, key=lambda each: (each.key, each.cause, each.message))
    return found + [refused(each, standing) for each in ordered]


def out_of_reach(field: str, release: Mark, keys: Sequence[Key]) -> LockProblem:
    """The problem of objects that the manifest names and the HelmRelease does not allow; the way out comes before the names."""
    where = OUTSIDE[field].format(release.namespace)
    return LockProblem("OutsideRelease", f"neither read nor written, because {where}: {limits.few(list(map(str, keys)))}")


def refused(refusal: Refusal, standing: str = "") -> LockProblem:
    """The problem of a write that the API server refuses, with its words."""
    known = FIXES if refusal.key.kind == HELM_RELEASE.kind else FIXES_OF_LOCKED
    return LockProblem(_REASONS[refusal.cause], text_of(refusal, known, standing, separator=_BETWEEN), refusal=refusal)


def _last_drift(seen: Lock, revision: int, refusals: Sequence[Refusal]) -> Object | None:
    """What this run has put right, the first of it; None when nothing."""
    not_done = {refusal.key for refusal in refusals}
    for each in seen.objects if revision else ():
        if each.kept and each.key not in not_done and (each.live is None or each.drift):
            return each.again or last_drift_of(each)
    return None


def last_drift_of(each: LockedObject) -> Object:
    """What the status reports of an object that is put right: fields and managers, never a value."""
    return {
        "object": str(each.key),
        "action": "Restored" if each.body is not None else "Recreated",
        "fields": [shown(path) for path in each.drift[: limits.PROBLEMS_SHOWN]],
        "managers": list(drifters(each)),
    }


def _event(helm_release: Object, status: Object) -> KubernetesEvent | None:
    """The Event for what changed in the status, if anything that people wait for did."""
    before = helm_release.get("status") or {}
    locked = find_condition({"status": status}, LOCKED) or {}
    complete = find_condition({"status": status}, COMPLETE) or {}
    was_locked = find_condition(helm_release, LOCKED) or {}
    was_complete = find_condition(helm_release, COMPLETE) or {}
    names = ("state", "version", "lockedVersion")
    if complete.get("status") == "False" and complete.get("message") != was_complete.get("message"):
        return KubernetesEvent(helm_release, str(complete["reason"]), str(complete["message"]), "Report", "Warning")
    if any(status.get(name) != before.get(name) for name in names) or locked.get("reason") != was_locked.get("reason"):
        return _turned(helm_release, status, locked)
    if was_complete.get("status") == "False" and complete.get("status") == "True":
        return KubernetesEvent(helm_release, "Healed", "every object of the manifest is kept again", "Report")
    return None


def _turned(helm_release: Object, status: Object, locked: Object) -> KubernetesEvent:
    reason, message = str(locked["reason"]), str(locked["message"])
    if locked["status"] == "True":
        return KubernetesEvent(helm_release, "Locked", message, "Lock")
    if reason in ("NamesNoRelease", "Conflict", "RecordsUnreadable"):
        return KubernetesEvent(helm_release, reason, message, "Report", "Warning")
    if status["state"] == "Transitioning" and reason != "Paused":
        return KubernetesEvent(helm_release, "Transitioning", message, "Unlock")
    return KubernetesEvent(helm_release, "Unlocked" if reason != "Paused" else "Paused", message, "Unlock")
