"""A plan: what one run wants to write, as a value that can be printed, diffed and tested.

A plan holds wanted objects beside what was observed.  `Plan.changes` says what would really be written;
over a converged cluster it is empty.  Stages run one after the other, the writes of a stage together: a
namespace comes before what lives in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tenantry.model.difference import Difference, difference, entries_of
from tenantry.model.kinds import Key, Kind, Object, finalizers_of, key_of, labels_of
from tenantry.model.ownership import NewManager

Propagation = Literal["Background", "Foreground", "Orphan"]
"""What becomes of the objects that a deleted one owns."""


@dataclass(frozen=True, slots=True)
class KubernetesEvent:
    """A Kubernetes Event (events.k8s.io/v1) to record on an object, at most 1 KiB of note."""

    regarding: Object
    reason: str
    note: str
    action: str
    type: Literal["Normal", "Warning"] = "Normal"


@dataclass(frozen=True, slots=True)
class Precondition:
    """Objects that must still be exactly what the decision was made on, read right before the write.

    ``versions`` are the (uid, resourceVersion) of all objects of the kind with these labels in the namespace.
    """

    kind: Kind
    namespace: str
    labels: tuple[tuple[str, str], ...]
    versions: frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Apply:
    """Make the object have these fields, and give up those that we own and no longer want.

    ``wanted`` is the complete set of fields of ours.  ``live`` is the object as observed; None means that
    it is to be made, with ``create_only`` never taking over what somebody else makes meanwhile.
    ``event`` is recorded when the apply is really needed: after it, or before it for a status, so that a
    condition never stands without its Event.  ``manager`` is the field manager where two units of one
    function write one object: each owns, and gives up, fields of its own.  Without ``stamp`` conditions get no
    ``lastTransitionTime``, for kinds of others whose schema knows none.  ``adopts``: an object that is ours by its marks, and of
    which our manager owns nothing, is written once although it is equal: somebody made it in the place of ours.
    """

    kind: Kind
    wanted: Object
    live: Object | None
    create_only: bool = False
    subresource: str = ""
    event: KubernetesEvent | None = None
    manager: str = ""
    stamp: bool = True
    adopts: bool = False

    @property
    def key(self) -> Key:
        """The object's key."""
        return key_of(self.wanted)

    def change(self, manager: str) -> Change | None:
        """What of it is really needed, under this field manager where the write names none; None: nothing."""
        manager = self.manager or manager
        why = difference(self.wanted, self.live, manager=manager, subresource=self.subresource)
        if why is None and self.adopts and self.live is not None and not entries_of(self.live, manager, self.subresource):
            why = Difference(changed=("metadata.managedFields",))
        if why is None:
            return None
        return Change("status" if self.subresource else "create" if why.created else "update", self, why)


@dataclass(frozen=True, slots=True)
class _OfLive:
    """A write to an object that is there."""

    kind: Kind
    live: Object

    @property
    def key(self) -> Key:
        """The object's key."""
        return key_of(self.live)


@dataclass(frozen=True, slots=True)
class Delete(_OfLive):
    """Delete exactly the object and state that was observed (uid and resourceVersion).

    With ``Foreground`` it stays, terminating, until what it owns is deleted.
    """

    event: KubernetesEvent | None = None
    propagation: Propagation = "Background"
    precondition: Precondition | None = None

    def change(self, manager: str) -> Change | None:
        """A deletion, always."""
        del manager
        return Change("delete", self)


@dataclass(frozen=True, slots=True)
class RemoveLabel(_OfLive):
    """Take one label off somebody's object, whoever put it there; nothing when it is not there."""

    label: str
    event: KubernetesEvent | None = None

    def change(self, manager: str) -> Change | None:
        """An update, where the label is there."""
        del manager
        if self.label not in labels_of(self.live):
            return None
        return Change("update", self, Difference(given_up=(f"metadata.labels[{self.label}]",)))


@dataclass(frozen=True, slots=True)
class RemoveFinalizers(_OfLive):
    """Take finalizers off an object, whoever put them there; nothing when none of them is there.

    An apply only gives up a finalizer of ours; those of a system that is gone, or that came with a backup, need this.
    """

    finalizers: tuple[str, ...]
    event: KubernetesEvent | None = None

    def change(self, manager: str) -> Change | None:
        """An update, where one of them is there."""
        del manager
        found = [name for name in finalizers_of(self.live) if name in self.finalizers]
        lost = tuple(f"metadata.finalizers[{name}]" for name in found)
        return Change("update", self, Difference(given_up=lost)) if lost else None


@dataclass(frozen=True, slots=True)
class Edit(_OfLive):
    """Change places of somebody's object that an apply cannot own: JSON patch operations (RFC 6902) on exactly the
    object and state that was observed; nothing without operations.
    """

    operations: tuple[Mapping[str, Any], ...]
    event: KubernetesEvent | None = None
    subresource: str = ""

    def change(self, manager: str) -> Change | None:
        """An update of the places that the operations name."""
        del manager
        paths = dict.fromkeys(str(step["path"]) for step in self.operations if step["op"] != "test")
        verb: Literal["status", "update"] = "status" if self.subresource else "update"
        return Change(verb, self, Difference(changed=tuple(paths))) if paths else None


@dataclass(frozen=True, slots=True)
class Replace(_OfLive):
    """Make the spec of an object of ours this one by an update of all of it, on exactly the state that was observed.

    For what is large and whole: the API server reads a JSON patch of it, and what becomes of the object, once more.
    ``live`` has all of its metadata.
    """

    spec: Object
    event: KubernetesEvent | None = None

    def change(self, manager: str) -> Change | None:
        """An update, where the spec is another one."""
        del manager
        return Change("update", self, Difference(changed=("spec",))) if self.spec != self.live.get("spec") else None


@dataclass(frozen=True, slots=True)
class PutBack:
    """Make some fields of somebody's object what they were, and own none of them afterwards.

    ``fields`` are the paths in ``body`` that differ.  Without ``live`` the object is made anew from ``body``; without fields
    only what we still own in it is given to the ``new_manager``.
    """

    kind: Kind
    body: Object
    live: Object | None
    new_manager: NewManager
    fields: tuple[str, ...] = ()
    event: KubernetesEvent | None = None
    precondition: Precondition | None = None

    @property
    def key(self) -> Key:
        """The object's key."""
        return key_of(self.body)

    def change(self, manager: str) -> Change | None:
        """A creation, or an update where fields differ or are ours."""
        if self.live is None:
            return Change("create", self, Difference(created=True))
        if not self.fields and not entries_of(self.live, manager):
            return None
        return Change("update", self, Difference(changed=self.fields))


Write = Apply | Delete | RemoveLabel | RemoveFinalizers | Edit | Replace | PutBack


@dataclass(frozen=True, slots=True)
class Change:
    """One write that is really needed: the verb, the object and why."""

    verb: Literal["create", "update", "status", "delete"]
    write: Write
    why: Difference | None = None

    @property
    def key(self) -> Key:
        """The object's key."""
        return self.write.key

    def __str__(self) -> str:
        why = f": {self.why}" if self.why is not None and not self.why.created else ""
        return f"{self.verb} {self.key}{why}"


Cause = Literal["quota", "admission", "rights", "invalid"]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A write that the API server refused: which, and in its words why."""

    key: Key
    cause: Cause
    message: str

    @property
    def by_our_policy(self) -> bool:
        """Whether an admission policy of ours refused: with the param that it gets now it may not."""
        return self.cause == "admission" and "ValidatingAdmissionPolicy 'tenantry-" in self.message


@dataclass(frozen=True, slots=True)
class Plan:
    """Stages of writes.  An empty plan wants nothing.

    A plan in a stage runs beside what else is in that stage: a refusal stops its own later stages, and those
    of the plan around it, but not those of its neighbours.
    """

    stages: tuple[tuple[Write | Plan, ...], ...] = ()

    def writes(self) -> Iterator[Write]:
        """All writes in order."""
        for stage in self.stages:
            for item in stage:
                if isinstance(item, Plan):
                    yield from item.writes()
                else:
                    yield item

    def taken_away(self) -> frozenset[tuple[str, Key]]:
        """What it takes away: the objects that it deletes, or that it takes labels or finalizers off, each with the write."""
        takes = (write for write in self.writes() if isinstance(write, Delete | RemoveLabel | RemoveFinalizers))
        return frozenset((type(write).__name__, write.key) for write in takes if write.change("") is not None)

    def deleted_uids(self) -> frozenset[str]:
        """The uids of the objects that it deletes: another object of the same name is another one."""
        return frozenset(write.live["metadata"].get("uid") or "" for write in self.writes() if isinstance(write, Delete))

    def created(self) -> frozenset[Key]:
        """The objects that it makes, which were not there."""
        return frozenset(write.key for write in self.writes() if isinstance(write, Apply) and write.live is None)

    def made(self) -> frozenset[Key]:
        """The objects that it makes or changes, whether they are so already or not."""
        return frozenset(write.key for write in self.writes() if isinstance(write, Apply | PutBack | Edit | Replace))

    def changes(self, manager: str) -> list[Change]:
        """What would really be written under this field manager, in order."""
        return [change for write in self.writes() if (change := write.change(manager)) is not None]


NOTHING = Plan()


def plan_of(*writes: Write | Plan) -> Plan:
    """The plan of one stage; without writes it wants nothing."""
    return Plan((writes,)) if writes else NOTHING
