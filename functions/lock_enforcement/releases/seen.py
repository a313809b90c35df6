"""What is observed of one HelmRelease, and which revision is kept."""

from __future__ import annotations

from dataclasses import dataclass

from lock_enforcement.fields import managers_of
from lock_enforcement.helm import HELM_MANAGER, RELEASE_NAME, Mark, Record
from lock_enforcement.locks import is_ours, is_paused
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
class Problem:
    """Why one object or document is not kept: a reason in one word, and a sentence that names the fix.

    What does not block is only told.  ``refusal`` is what the API server refused, in a dry run or in earnest.
    """

    reason: str
    text: str
    blocks: bool = True
    refusal: Refusal | None = None


@dataclass(frozen=True, slots=True)
class LockedObject:
    """One object of the manifest as it is.

    ``body`` is the apply that puts ``drift`` back; with drift and no body the object has to be made anew.
    ``again`` is what was told when we have just deleted it for that.  ``outside`` is the field of ``spec.allow`` that would have
    to name it; nothing of such an object is read.
    """

    key: Key
    kind: Kind | None
    wanted: Object
    live: Object | None = None
    drift: tuple[Path, ...] = ()
    body: Object | None = None
    problem: Problem | None = None
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

    ``release`` is None when it names none.  ``older`` is the name of an older HelmRelease for the same release.  ``whole`` says
    whether all objects were looked at; ``count`` is how many there are.  ``age_s`` is since the newest record was written.
    """

    name: str
    helm_release: Object | None
    release: Mark | None = None
    newest: Record | None = None
    deployed: Record | None = None
    unreadable: tuple[str, ...] = ()
    age_s: float = 0.0
    older: str = ""
    whole: bool = True
    count: int = 0
    objects: tuple[LockedObject, ...] = ()
    bad_documents: tuple[str, ...] = ()
    precondition: Precondition | None = None


def new_manager(record: Record) -> NewManager:
    """Who owns the fields of a release: Helm, in the way that it wrote them."""
    return NewManager(("metadata", "annotations", RELEASE_NAME), HELM_MANAGER, "Apply" if record.server_side else "Update")


def revision_kept(newest: Record | None, deployed: Record | None, age_s: float, config: Config) -> int:
    """The revision whose objects are kept now; 0 for none (hpo-71, hpo-72, hpo-79)."""
    if newest is None or deployed is None:
        return 0
    locker = config.helm_project_operator.helm_locker
    if newest.status == "deployed":
        return newest.revision
    if newest.status == "failed" and age_s >= locker.failed_grace_seconds:
        return deployed.revision
    if newest.status.startswith("pending-") and age_s >= locker.interrupted_grace_seconds:
        return deployed.revision
    return 0


def kept(seen: Lock, config: Config) -> int:
    """The revision that this HelmRelease keeps now; 0 while it is paused, away, or another one's."""
    helm_release = seen.helm_release
    if helm_release is None or is_terminating(helm_release) or not is_ours(helm_release, config):
        return 0
    if seen.older or seen.release is None or is_paused(helm_release):
        return 0
    if not config.helm_project_operator.helm_locker.enabled:
        return 0
    return revision_kept(seen.newest, seen.deployed, seen.age_s, config)


def drifters(each: LockedObject) -> tuple[str, ...]:
    """The field managers that changed an object."""
    if each.live is None:
        return ()
    return managers_of(each.live, each.drift, besides=(LOCK_MANAGER,))
