"""What the workloads of access locks promise: what is denied is locked and nothing else, and what its user suspended stays so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from tenantry.model.conditions import find_condition
from tenantry.model.flux.consumers import CONSUMERS
from tenantry.model.flux.names import (
    ACCESS_DENIED,
    ACCESS_INDEX,
    LOCK_FINALIZER,
    LOCKED,
    SUSPENDED_BY_LOCK,
    TENANCY_PROFILE,
)
from tenantry.model.flux.onboarding import KUSTOMIZATION
from tenantry.model.flux.policies.references import lock_guard
from tenantry.model.flux.profile import Profile
from tenantry.model.kinds import EVENT, NAMESPACE, Object, annotations_of, finalizers_of, is_terminating, key_of, labels_of
from tenantry.model.pointer import pointer
from tenantry.testing.workload import Run, Step, Workload, apply, edit
from tenantry.testing.world import Moment

from ._flux import EVERYWHERE, OWNER, PROFILE, SOURCE, STANDING, choices, is_granted, of_flux

HOME, K = "n-@", "k-@"
PLAIN = {"read": {STANDING: EVERYWHERE}, "complete": True}
"""The index that runs begin with."""
OWN = "own-@"
"""How the Kustomization is called whose user suspended it."""


def kustomization(of: str = "standing", name: str = K, *, finalizers: Sequence[str] = (), **spec: Any) -> Step:
    """A step that declares a Kustomization of the source in a namespace."""
    name_of = SOURCE if of == OWNER else "app"
    named = {"kind": "GitRepository", "name": name_of, **({"namespace": of} if of else {})}
    spec = {"interval": "1m", "prune": True, "serviceAccountName": "flux", "sourceRef": named, **spec}
    return apply(KUSTOMIZATION.kind, name, HOME, finalizers=list(finalizers), spec=spec)


def by_hand(*steps: str, value: Any = None, name: str = K) -> Step:
    """A step that changes a field of it by hand; without a value the field goes."""
    return edit(KUSTOMIZATION.kind, name, HOME, pointer(*steps), *([value] if value is not None else []))


async def fails(run: Run) -> None:
    """A run of Flux that was under way ends, and its controller writes all conditions."""
    said = {"message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    conditions = [{"type": "Ready", "status": "False", "reason": "HealthCheckFailed", **said}]
    step = {"op": "add", "path": "/status", "value": {"conditions": conditions}}
    await run.edit(KUSTOMIZATION.kind, K, HOME, step, subresource="status")


# -- what is decided ---------------------------------------------------------------------------------------


def verdict(found: Object, index: Object | None, space: Object | None) -> str:
    """``allow``, ``deny``, or nothing where that cannot be said: without the index, or without the labels of the namespace."""
    named = found["spec"]["sourceRef"]
    if named.get("namespace") in (None, "", found["metadata"]["namespace"]):
        return "allow"
    if index is None or space is None:
        return ""
    if is_granted(index, f"GitRepository/{named['namespace']}/{named['name']}", labels_of(space)):
        return "allow"
    return "deny" if index["spec"].get("complete") is True else ""


def verdicts(moment: Moment, found: Object) -> set[str]:
    """What is decided about it now, or was a moment ago."""
    indexes = next(iter(choices(moment, ACCESS_INDEX.kind)), [{"spec": PLAIN}])
    spaces = next(iter(choices(moment, NAMESPACE.kind, found["metadata"]["namespace"])), [None])
    return {verdict(found, index, space) for index, space in product(indexes, spaces)}


def _marked(found: Object | None) -> bool:
    return LOCKED in annotations_of(found or {"metadata": {}})


def _stopped(found: Object) -> bool:
    return found["spec"].get("suspend") is True


def _changes(moment: Moment) -> Iterator[tuple[Object, Object]]:
    """What the function has made of a Kustomization."""
    before, after = moment.change.before, moment.change.after
    if moment.by and moment.change.key.kind == KUSTOMIZATION.kind and before is not None and after is not None:
        yield before, after


def locks_only_what_is_denied(moment: Moment) -> str:
    """Nothing is locked but what is denied, or was a moment ago; never on the word of an index that is away or not complete."""
    for before, after in _changes(moment):
        if _marked(after) and not _marked(before) and "deny" not in verdicts(moment, before):
            return "locked, and it is not denied"
    return ""


def frees_only_what_is_allowed(moment: Moment) -> str:
    """No lock goes but from what is allowed, or was a moment ago, and from what is being deleted."""
    for before, after in _changes(moment):
        if _marked(before) and not _marked(after) and not is_terminating(before) and "allow" not in verdicts(moment, before):
            return "freed, and it is not allowed"
    return ""


def keeps_its_users_suspension(moment: Moment) -> str:
    """A suspension that its user set is never ended, and never called the lock's."""
    for before, after in _changes(moment):
        if not _is_its_users(moment.past.get(moment.change.key, ())):
            continue
        if not _stopped(after):
            return "ended its user's suspension"
        if SUSPENDED_BY_LOCK in annotations_of(after) and SUSPENDED_BY_LOCK not in annotations_of(before):
            return "called its user's suspension the lock's"
    return ""


def _is_its_users(states: Sequence[Object]) -> bool:
    """Whether the suspension that an object has began without the mark of a lock."""
    its_users, stopped = False, False
    for each in states:
        if _stopped(each) and not stopped:
            its_users = SUSPENDED_BY_LOCK not in annotations_of(each)
        stopped = _stopped(each)
    return stopped and its_users


def is_one_update(moment: Moment) -> str:
    """A lock comes whole and goes whole: mark, finalizer and suspension together (2.2)."""
    for before, after in _changes(moment):
        if _marked(after) and not _marked(before):
            by_lock = SUSPENDED_BY_LOCK in annotations_of(after)
            if LOCK_FINALIZER not in finalizers_of(after) or not _stopped(after) or by_lock == _stopped(before):
                return "locked by halves"
        if _marked(before) and not _marked(after):
            left = SUSPENDED_BY_LOCK in annotations_of(after) or LOCK_FINALIZER in finalizers_of(after)
            if left or (SUSPENDED_BY_LOCK in annotations_of(before) and _stopped(after)):
                return "freed by halves"
    return ""


def says_only_what_is(moment: Moment) -> str:
    """A condition says AccessDenied only of what is locked already."""
    for before, after in _changes(moment):
        if _says_denied(after) and not _says_denied(before) and not _marked(before):
            return "says AccessDenied, and is not locked"
    return ""


def _says_denied(found: Object) -> bool:
    return any((find_condition(found, each) or {}).get("reason") == ACCESS_DENIED for each in ("Ready", "Stalled"))


def locks_are_as_decided(objects: list[Object]) -> str:
    """In the end what is denied is locked, says so and is listed, all else is free; who suspended his own finds it so."""
    index = next((each for each in objects if each["kind"] == ACCESS_INDEX.kind), None)
    spaces = {each["metadata"]["name"]: each for each in objects if each["kind"] == NAMESPACE.kind}
    profile = next(each for each in objects if each["kind"] == TENANCY_PROFILE.kind)
    status = profile.get("status") or {}
    listed = {(each["namespace"], each["name"]) for each in status.get("violations") or ()}
    for each in (one for one in objects if one["kind"] == KUSTOMIZATION.kind):
        denied = verdict(each, index, spaces.get(each["metadata"]["namespace"])) == "deny"
        marks = {_marked(each), LOCK_FINALIZER in finalizers_of(each), _says_denied(each)}
        if marks != {denied}:
            return f"{key_of(each)}: denied {denied}, locked {marks}"
        if _stopped(each) != (denied or each["metadata"]["name"].startswith("own")):
            return f"{key_of(each)}: suspended {_stopped(each)}, denied {denied}"
        place = each["metadata"]["namespace"], each["metadata"]["name"]
        if (place in listed) != denied and status.get("violationCount", 0) <= len(listed):
            return f"{key_of(each)}: denied {denied}, listed {place in listed}"
    return ""


def _is_about_the_lock(step: Object) -> bool:
    return step.get("path") == pointer("metadata", "annotations", LOCKED)


def access_locks() -> Workload:
    """A workload of lock-enforcement for access, without scenarios; the guard of locked objects is in force."""
    guard = lock_guard(next(each for each in CONSUMERS if each.resource == KUSTOMIZATION.plural), ("v1",))
    return of_flux(
        "lock-enforcement",
        "lock-enforcement-access",
        PLAIN,
        tells=lambda obj: obj.get("type") == "Warning" and obj.get("reason") == "AccessLockRefused",
        safe=[
            locks_only_what_is_denied,
            frees_only_what_is_allowed,
            keeps_its_users_suspension,
            is_one_update,
            says_only_what_is,
        ],
        ends=[locks_are_as_decided],
        destroys=_is_about_the_lock,
        # Marks are of the platform, who may take them off (2.2); who sets suspend in the moment in which a lock goes has set it.
        handover=[LOCKED, SUSPENDED_BY_LOCK, "suspend"],
        watched=(KUSTOMIZATION,),
        said_once=[EVENT.kind],  # a sweep reads conditions only: Events expire
        begins=[guard.manifest(), guard.binding(Profile.of({"spec": PROFILE}))],
    )
