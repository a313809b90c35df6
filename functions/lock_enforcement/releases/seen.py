"""What is observed of one HelmRelease, and which revision is kept."""

from __future__ import annotations

from dataclasses import dataclass

from lock_enforcement.fields import managers_of
from lock_enforcement.helm import HELM_MANAGER, RELEASE_NAME, Mark, Record
from lock_enforcement.locks import claim_of, is_paused
from tenantry.model.comparison import Path
from tenantry.model.config import Config
from tenantry.model.kinds import Key, Kind, Object, is_terminating
from tenantry.model.names import field_manager
from tenantry.model.ownership import NewManager
from tenantry.model.plan import Precondition, Refusal

LOCK_MANAGER = field_manager("lock-enforcement")
LOCKED = "Locked"
COMPLETE = "Complete"


@dataclass(frozen=True, slots=True)
class LockProblem:
    """Why one object or document is not kept: a reason in one word, and a sentence that names the fix.

    What does not block is only reported.  ``refusal`` is what the API server refused, in a dry run or in earnest.
    """

    reason: str
    text: str
    blocks: bool = True
    refusal: Refusal | None = None


@dataclass(frozen=True, slots=True)
class LockedObject:
    """One object of the manifest as it is.

    ``body`` is the apply that puts ``drift`` back; with drift and no body the object has to be made anew.
    ``again`` is what was reported when we have just deleted it for that.  ``outside`` is the field of ``spec.allow`` that would
    have to name it; nothing of such an object is read.
    """

    key: Key
    kind: Kind | None
    wanted: Object
    live: Object | None = None
    drift: tuple[Path, ...] = ()
    body: Object | None = None
    problem: LockProblem | None = None
    paused: bool = False
    again: Object | None = None
    outside: str = ""

    @property
    def kept(self) -> bool:
        """Whether the object is to be as the manifest has it."""
        blocked = self.problem is not None and self.problem.blocks
        return self.kind is not None and not blocked and not self.paused and not is_terminating(self.live)


@dataclass(frozen=True, slots=True)
class Lock:
    """A HelmRelease and what it locks, as they are.

    ``release`` is None when it names none.  ``older`` is the name of an older HelmRelease for the same release.  ``objects`` are
    those that were observed, of ``count`` in the manifest.  ``age_s`` is since the newest record was written.
    """

    helm_release: Object
    release: Mark | None = None
    newest: Record | None = None
    deployed: Record | None = None
    unreadable: tuple[str, ...] = ()
    age_s: float = 0.0
    older: str = ""
    count: int = 0
    objects: tuple[LockedObject, ...] = ()
    bad_documents: tuple[str, ...] = ()
    precondition: Precondition | None = None


def new_manager(record: Record) -> NewManager:
    """Who owns the fields of a release: Helm, in the way that it wrote them."""
    return NewManager(("metadata", "annotations", RELEASE_NAME), HELM_MANAGER, "Apply" if record.server_side else "Update")


def kept(seen: Lock, config: Config) -> int:
    """The revision whose objects are kept now (hpo-71, hpo-72, hpo-79); 0 for none: paused, being deleted, or another's."""
    locker, newest, deployed = config.helm_project_operator.helm_locker, seen.newest, seen.deployed
    if not locker.enabled or claim_of(seen.helm_release, config) is None or seen.older or is_paused(seen.helm_release):
        return 0
    if newest is None or deployed is None:
        return 0
    if newest.status == "deployed":
        return newest.revision
    if newest.status == "failed" and seen.age_s >= locker.failed_grace_seconds:
        return deployed.revision
    if newest.status.startswith("pending-") and seen.age_s >= locker.interrupted_grace_seconds:
        return deployed.revision
    return 0


def drifters(each: LockedObject) -> tuple[str, ...]:
    """The field managers that changed an object."""
    if each.live is None:
        return ()
    return managers_of(each.live, each.drift, besides=(LOCK_MANAGER,))
