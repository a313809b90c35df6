"""Executing a plan: only differences, never a resurrection, deletions only of what was observed.

Every update carries the uid of the object that the decision was made on, so that one which vanished is
not made again; creations that must not take over somebody else's object are plain creates; deletions
carry uid and resourceVersion.  Refusals are collected, not raised: what else the plan wants still
happens, except in later stages, which need the stage before them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from tenantry.api import Api, Listing
from tenantry.api.errors import (
    ApiError,
    ConflictError,
    KindNotServed,
    NamespaceTerminating,
    NotFound,
    RefusedError,
    TransientError,
)
from tenantry.engine import recorder, telemetry
from tenantry.engine.decisions import Note
from tenantry.engine.items import selector, versions_in
from tenantry.engine.last_runs import ABSENT, States, ended, state_in
from tenantry.engine.shared import Shared
from tenantry.model import limits
from tenantry.model.conditions import stamped
from tenantry.model.difference import as_apply_entries, entries_of
from tenantry.model.kinds import Key, Kind, Object
from tenantry.model.ownership import handed_back
from tenantry.model.plan import (
    Apply,
    Change,
    Delete,
    Edit,
    KubernetesEvent,
    Plan,
    Precondition,
    PutBack,
    Refusal,
    RemoveFinalizers,
    RemoveLabel,
    Replace,
    Write,
)
from tenantry.model.pointer import pointer

log = logging.getLogger("tenantry")

HAND_BACK_ATTEMPTS = 5

OnWrite = Callable[[Change], None]


@dataclass(slots=True)
class Outcome:
    """What became of a plan."""

    writes: int = 0
    written: dict[Key, Hashable] = field(default_factory=dict)
    """The states in which what was written is stored; of what was deleted `ended`, or `ABSENT` while it may be there still."""
    refusals: list[Refusal] = field(default_factory=list)
    conflict: bool = False
    deleted: bool = False
    transient: ApiError | None = None
    note: Note | None = None

    def add(self, other: Outcome) -> None:
        """Take in what became of a plan within this one."""
        self.writes += other.writes
        self.written |= other.written
        self.refusals += other.refusals
        self.conflict = self.conflict or other.conflict
        self.deleted = self.deleted or other.deleted
        self.transient = self.transient or other.transient


class Writer:
    """Writes plans under one identity; ``on_write`` sees every change that was made."""

    def __init__(self, api: Api, function: str, on_write: OnWrite | None = None) -> None:
        self._api = api
        self._function = function
        self._on_write = on_write
        self._shared = Shared()
        self._by: Mapping[type[Write], Callable[[Any], Awaitable[Object]]] = {
            RemoveLabel: self._remove_label,
            RemoveFinalizers: self._remove_finalizers,
            Edit: self._edit,
            Replace: self._replace,
            PutBack: self._put_back,
        }

    async def write(
        self, plan: Plan, gate: asyncio.Semaphore | None = None, states: States = MappingProxyType({}), note: Note | None = None
    ) -> Outcome:
        """Make the changes of the plan, stage by stage; stop at a stage that did not succeed whole.

        ``states`` say in what state something is written, where that is not its version.  In the ``note`` stands what was done.

        At most `limits.WRITES_AT_ONCE` are under way: thousands of one plan would keep all others' requests waiting behind them.
        """
        outcome, gate = Outcome(note=note), gate or asyncio.Semaphore(limits.WRITES_AT_ONCE)
        for stage in plan.stages:
            within = [item for item in stage if isinstance(item, Plan)]
            writes = [item for item in stage if not isinstance(item, Plan)]
            changes = [change for item in writes if (change := item.change(self._api.field_manager)) is not None]
            if len(changes) == 1 and not within:
                await self._attempt(changes[0], outcome, gate, states)
            elif changes or within:
                await asyncio.gather(
                    *(self._attempt(change, outcome, gate, states) for change in changes),
                    *(self._within(inner, outcome, gate, states) for inner in within),
                )
            if outcome.conflict or outcome.transient or outcome.refusals:
                break
        return outcome

    async def _within(self, plan: Plan, outcome: Outcome, gate: asyncio.Semaphore, states: States) -> None:
        """Write a plan that stands in a stage of another."""
        outcome.add(await self.write(plan, gate, states, outcome.note))

    async def _attempt(self, change: Change, outcome: Outcome, gate: asyncio.Semaphore, states: States) -> None:
        precondition = change.write.precondition if isinstance(change.write, PutBack | Delete) else None
        try:
            async with gate:
                if precondition is not None and not await self._holds(precondition):
                    raise ConflictError(f"{change.key}: what the decision was made on has changed")
                stored, is_gone = await self._make(change)
        except KindNotServed as error:
            outcome.transient = error
        except (ConflictError, NamespaceTerminating, NotFound):
            outcome.conflict = True  # also where the object or its namespace was deleted meanwhile: observe again
        except RefusedError as error:
            refusal = Refusal(change.key, error.cause, error.message)
            outcome.refusals.append(refusal)
            if outcome.note is not None:
                outcome.note.was_refused(refusal)
            telemetry.refusals.add(1, {"function": self._function, "cause": refusal.cause})
            log.warning("refused: %s: %s", change, error.message)
        except ApiError as error:
            outcome.transient = error
        else:
            outcome.writes += 1
            if outcome.note is not None:
                outcome.note.wrote(change, stored)
            if change.verb == "delete":
                outcome.deleted = True
                outcome.written[change.key] = ended(stored["metadata"]["uid"]) if is_gone else ABSENT
            else:
                outcome.written[change.key] = state_in(states, change.key, stored)

    async def _make(self, change: Change) -> tuple[Object, bool]:
        """Make a change; the object as stored, or as it was deleted, and whether its deletion has ended it."""
        write, is_gone = change.write, False
        early = isinstance(write, Apply) and bool(write.subresource)
        if early and write.event is not None:
            await self._announce(write.event)
        if isinstance(write, Delete):
            stored, is_gone = write.live, await self._delete(write)
        else:
            stored = await (self._apply(write, change) if isinstance(write, Apply) else self._by[type(write)](write))
        telemetry.writes.add(1, {"function": self._function, "kind": change.key.kind, "verb": change.verb})
        log.info("%s", change)
        if self._on_write is not None:
            self._on_write(change)
        if not early and write.event is not None:
            event = write.event
            same = event.regarding["metadata"].get("name") == stored["metadata"]["name"]
            if same and event.regarding["kind"] == stored["kind"]:
                event = replace(event, regarding=stored)
            await self._announce(event)
        return stored, is_gone

    async def _apply(self, write: Apply, change: Change) -> Object:
        live = write.live
        if live is None and write.create_only:
            return await self._api.create(write.kind, write.wanted, manager=write.manager)
        if change.why is not None and change.why.migrate and live is not None:
            live = await self._own_by_apply(write, live)
        body = stamped(write.wanted, live, recorder.now_seconds()) if write.stamp else write.wanted
        if live is not None:
            body = {**body, "metadata": {**body["metadata"], "uid": live["metadata"]["uid"]}}
        stored = await self._api.apply(write.kind, body, subresource=write.subresource, manager=write.manager)
        if live is not None and stored["metadata"]["resourceVersion"] == live["metadata"]["resourceVersion"]:
            telemetry.futile_writes.add(1, {"function": self._function, "kind": change.key.kind})
            log.warning("the write changed nothing: %s", change)
        return stored

    async def _delete(self, write: Delete) -> bool:
        metadata = write.live["metadata"]
        where = metadata["name"], metadata.get("namespace", "")
        seen = {"uid": metadata["uid"], "resource_version": metadata["resourceVersion"]}
        return await self._api.delete(write.kind, *where, **seen, propagation=write.propagation)

    async def _holds(self, wanted: Precondition) -> bool:
        """Whether what the decision was made on is still so, by a read that begins after this call; many writes share it."""
        where, labels = (wanted.kind, wanted.namespace), selector(dict(wanted.labels))
        found: Listing = await self._shared.read(
            (where, labels), lambda: self._api.list(*where, label_selector=labels, metadata_only=True)
        )
        return versions_in(found.items) == wanted.versions

    async def _put_back(self, write: PutBack) -> Object:
        """Put the fields back, then give them to their new manager; a lost race for the second leaves it to the next run."""
        kind, live = write.kind, write.live
        if live is None:
            stored: Object | None = await self._api.create(kind, write.body)
        elif write.fields:
            seen = {part: live["metadata"][part] for part in ("uid", "resourceVersion")}
            stored = await self._api.apply(kind, {**write.body, "metadata": {**write.body["metadata"], **seen}})
        else:
            stored = None  # one from a list lacks the entries of others
        key = write.key
        for _ in range(HAND_BACK_ATTEMPTS):
            if stored is None:
                stored = await self._api.get(kind, key.name, key.namespace)
            if stored is None or not entries_of(stored, self._api.field_manager):
                break
            entries = handed_back(stored, self._api.field_manager, write.new_manager)
            step = {"op": "replace", "path": "/metadata/managedFields", "value": entries}
            try:
                return await self._patch(kind, stored, ("resourceVersion",), step)
            except ConflictError:
                stored = None
        return stored or live or write.body

    async def _remove_label(self, write: RemoveLabel) -> Object:
        path = pointer("metadata", "labels", write.label)
        there = {"op": "test", "path": path, "value": write.live["metadata"]["labels"][write.label]}
        return await self._patch(write.kind, write.live, ("uid",), there, {"op": "remove", "path": path})

    async def _remove_finalizers(self, write: RemoveFinalizers) -> Object:
        left = [name for name in write.live["metadata"]["finalizers"] if name not in write.finalizers]
        step = {"op": "replace", "path": "/metadata/finalizers", "value": left}
        return await self._patch(write.kind, write.live, ("uid", "finalizers"), step)

    async def _edit(self, write: Edit) -> Object:
        same = ("uid", "resourceVersion")
        return await self._patch(write.kind, write.live, same, *map(dict, write.operations), subresource=write.subresource)

    async def _replace(self, write: Replace) -> Object:
        # Without managed fields they stay as they are, but for those of this update.
        metadata = {part: value for part, value in write.live["metadata"].items() if part != "managedFields"}
        return await self._api.replace(write.kind, {**write.live, "metadata": metadata, "spec": write.spec})

    async def _patch(self, kind: Kind, live: Object, same: Iterable[str], *operations: Object, subresource: str = "") -> Object:
        """A JSON patch of an object whose metadata still have these values."""
        metadata = live["metadata"]
        tests: list[Object] = [{"op": "test", "path": f"/metadata/{part}", "value": metadata[part]} for part in same]
        where = metadata["name"], metadata.get("namespace", "")
        return await self._api.json_patch(kind, *where, [*tests, *operations], subresource=subresource)

    async def _own_by_apply(self, write: Apply, live: Object) -> Object:
        """Turn our plain updates of an object that we created into an apply, so that fields can be given up.

        Reads the object once more: one from a list lacks the entries of others, which must stay.
        """
        seen = live["metadata"]
        fresh = await self._api.get(write.kind, seen["name"], seen.get("namespace", ""))
        if fresh is None or fresh["metadata"]["uid"] != seen["uid"]:
            raise ConflictError(f"{write.key} is another object now")
        entries = as_apply_entries(fresh, write.manager or self._api.field_manager)
        step = {"op": "replace", "path": "/metadata/managedFields", "value": entries}
        return await self._patch(write.kind, fresh, ("resourceVersion",), step)

    async def _announce(self, event: KubernetesEvent) -> None:
        """Record an Event; only a transient failure matters to the run, since trying again helps then."""
        try:
            await recorder.record(self._api, event)
        except TransientError:
            raise
        except ApiError as error:
            log.warning("could not record the Event %s: %s", event.reason, error.message)
