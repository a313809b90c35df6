"""The recorded history: every state that every object of some kinds went through, whoever wrote it.

One informer per kind, under the administrator's identity and past the fault proxy, keeps the present (`World.of`) and
tells each change.  Changes are kept per run, in the order of their resource versions, for the safety predicates, which
see each change together with the run's objects as they were before it.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from tenantry.api import Api
from tenantry.local.backlog import Verb
from tenantry.local.reflector import Reflector
from tenantry.model.kinds import Key, Kind, Object, is_terminating
from tenantry.testing.naming import tag_of


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one object, as the watch told it; ``after`` is None when the object is gone."""

    verb: Verb
    key: Key
    before: Object | None
    after: Object | None
    resource_version: int
    at: float


@dataclass(frozen=True, slots=True)
class Moment:
    """A change as a safety predicate sees it.

    ``by`` is the field manager of the function that wrote it, or empty; ``objects`` are the run's objects just before,
    ``past`` every state that each had until then, and ``taken`` those that somebody else deleted and nobody made again.
    """

    change: Change
    by: str
    objects: Mapping[Key, Object]
    past: Mapping[Key, Sequence[Object]] = field(default_factory=dict)
    taken: Set[Key] = frozenset()

    def declared(self, kind: str, name: str, namespace: str = "") -> list[Object]:
        """The declaration that holds and the one before it, newest first, also of an object that is gone.

        A run that is under way may follow the one before: it looks again when it has written.  States that differ in their
        status only are one declaration.
        """
        return next((found for key, found in self.all_declared(kind) if (key.name, key.namespace) == (name, namespace)), [])

    def all_declared(self, kind: str) -> Iterator[tuple[Key, list[Object]]]:
        """The same of every object of a kind that the run ever had."""
        for key, states in self.past.items():
            if key.kind == kind:
                found: list[Object] = []
                for state in reversed(states):
                    if not found or _declaration(state) != _declaration(found[-1]):
                        found.append(state)
                yield key, found[:2]


def _declaration(obj: Object) -> Object:
    labels = (obj["metadata"].get("labels"), obj["metadata"].get("annotations"), is_terminating(obj))
    return {**{name: value for name, value in obj.items() if name not in ("metadata", "status")}, "marks": labels}


def version_of(obj: Mapping[str, Any]) -> int:
    """The resource version as a number (KEP-5504: they are comparable)."""
    return int((obj.get("metadata") or {}).get("resourceVersion") or 0)


def uid_gone(answer: Mapping[str, Any]) -> str:
    """The uid of an object that was deleted for good, from the answer to the deletion, which has no resource version then."""
    details = answer.get("details") if answer.get("kind") == "Status" else None
    return str((details or {}).get("uid") or "")


def _conditions_of(obj: Object, tag: str) -> list[Object]:
    found = (obj.get("status") or {}).get("conditions") or ()
    return [each for each in found if tag_of(each["type"]) == tag]


def is_held(obj: Object) -> bool:
    """Whether an object is on its way out and waits for a finalizer of ours."""
    finalizers = obj["metadata"].get("finalizers") or ()
    return is_terminating(obj) and any(name.startswith("tenantry.dev/") for name in finalizers)


class World:
    """The present and the past of the objects of some kinds.  Runs between ``async with`` and its end."""

    def __init__(self, api: Api, kinds: Iterable[Kind], shared: Iterable[Kind] = ()) -> None:
        self.listeners: list[Callable[[Change], None]] = []
        self._changes: dict[str, list[Change]] = {}
        self._present: dict[str, dict[Key, Object]] = {}
        self._shared = frozenset(kind.kind for kind in shared)
        self._reflectors = {
            kind: Reflector(api, kind, keep_objects=True, on_change=self._teller(kind), on_state=lambda *_: None)
            for kind in dict.fromkeys([*kinds, *shared])
        }
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(each.run()) for each in self._reflectors.values()]
        for each in self._reflectors.values():
            await each.synced.wait()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for task in self._tasks:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def kinds(self) -> list[Kind]:
        """The kinds that are seen."""
        return list(self._reflectors)

    def __len__(self) -> int:
        return sum(len(present) for present in self._present.values())

    def seen(self, plural: str) -> int:
        """The resource version up to which a kind was seen; very large for a kind that is not watched."""
        for kind, reflector in self._reflectors.items():
            if kind.plural == plural:
                return int(reflector._resource_version or 0)
        return 2**62

    def follow(self, tag: str) -> None:
        """Keep the changes of a run from now on."""
        self._changes.setdefault(tag, [])

    def forget(self, tag: str) -> None:
        """Drop what was kept of a run."""
        self._changes.pop(tag, None)

    def count(self, tag: str) -> int:
        """How many changes of a run were seen so far."""
        return len(self._changes.get(tag, ()))

    def changes(self, tag: str) -> list[Change]:
        """The changes of a run so far, oldest first."""
        return sorted(self._changes.get(tag, ()), key=lambda change: change.resource_version)

    def of(self, tag: str) -> dict[Key, Object]:
        """The objects of a run that are there to stay: without those on their way out and what is inside them."""
        found = self._present.get(tag, {})
        leaving = {key.name for key, obj in found.items() if key.kind == "Namespace" and is_terminating(obj)}
        gone = {key.name for key in found if key.kind == "Namespace"}
        return {
            key: obj
            for key, obj in found.items()
            if not is_terminating(obj) and key.namespace not in leaving and (not tag_of(key.namespace) or key.namespace in gone)
        }

    def owned(self, tag: str) -> dict[Key, Object]:
        """The same without what the garbage collector is about to take: what owners, of kinds that are seen, left."""
        found, seen = self.of(tag), {kind.kind for kind in self._reflectors}
        uids = {obj["metadata"]["uid"] for obj in found.values()}

        def is_left(obj: Object) -> bool:
            owners = obj["metadata"].get("ownerReferences") or ()
            return bool(owners) and all(owner["kind"] in seen and owner["uid"] not in uids for owner in owners)

        return {key: obj for key, obj in found.items() if not is_left(obj)}

    def shared(self) -> list[Object]:
        """What all runs share."""
        return [obj for key, obj in self._present.get("", {}).items() if key.kind in self._shared]

    def shared_about(self, tag: str) -> list[Object]:
        """The same with those of their conditions alone whose types name the run."""
        return [{**obj, "status": {"conditions": _conditions_of(obj, tag)}} for obj in self.shared()]

    def every(self, tag: str) -> list[Object]:
        """The objects of a run that are there, those on their way out included."""
        return list(self._present.get(tag, {}).values())

    def moments(self, tag: str, writers: Mapping[tuple[Key, int], str]) -> Iterator[Moment]:
        """The history of a run; ``writers`` tells who made which resource version (negative for a deletion)."""
        objects: dict[Key, Object] = {}
        past: dict[Key, list[Object]] = {}
        taken: set[Key] = set()
        for change in self.changes(tag):
            version = change.resource_version
            by = writers.get((change.key, -1 if change.after is None else version), "")
            yield Moment(change, by, objects, past, taken)
            if change.after is not None:
                past.setdefault(change.key, []).append(change.after)
                objects[change.key] = change.after
                taken.discard(change.key)
            else:
                objects.pop(change.key, None)
                if not by:
                    taken.add(change.key)

    def _teller(self, kind: Kind) -> Callable[[Verb, str, str, Object | None], None]:
        def on_change(verb: Verb, namespace: str, name: str, obj: Object | None) -> None:
            key, tag = Key(kind.api_version, kind.kind, namespace, name), tag_of(namespace, name)
            present = self._present.setdefault(tag, {})
            before = present.get(key)
            after = None if verb == "delete" else obj
            if after is None:
                present.pop(key, None)
            else:
                present[key] = {**after, "apiVersion": kind.api_version, "kind": kind.kind}
            change = Change(verb, key, before, present.get(key), version_of(obj or before or {}), time.monotonic())
            if tag in self._changes:
                self._changes[tag].append(change)
            elif not tag and kind.kind in self._shared:
                for changes in self._changes.values():
                    changes.append(change)
            for listener in self.listeners:
                listener(change)

        return on_change
