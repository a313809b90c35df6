"""What comes and goes in a cluster while somebody acts, and by whom: the API server writes down the managers of fields."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from tenantry.api import Api
from tenantry.local.backlog import Verb
from tenantry.local.reflector import Reflector
from tenantry.model.kinds import (
    CONFIG_MAP,
    HELM_CHART,
    HELM_RELEASE,
    JOB,
    NAMESPACE,
    NETWORK_POLICY,
    PROJECT_HELM_CHART,
    ROLE,
    ROLE_BINDING,
    SECRET,
    Key,
    Object,
    key_of,
)

WATCHED = (
    NAMESPACE,
    CONFIG_MAP,
    NETWORK_POLICY,
    ROLE,
    ROLE_BINDING,
    SECRET,
    PROJECT_HELM_CHART,
    HELM_CHART,
    HELM_RELEASE,
    JOB,
)
_OURS = "tenantry-"
_HELM = "helm"


@dataclass(frozen=True, slots=True)
class Happening:
    """One change of one object: ``what`` is created, changed or deleted, ``by`` a function, Helm, or nobody that is known."""

    at: float
    what: str
    key: Key
    by: str


class Watching:
    """Watches between ``async with`` and its end."""

    def __init__(self, api: Api) -> None:
        self._happened: list[Happening] = []
        self._managers: dict[Key, dict[str, str]] = {}
        self._listed: set[Key] = set()
        """Objects of which only our own managers are known: lists leave out the others."""
        self._reflectors = [
            Reflector(api, kind, keep_objects=True, reduce=_head, on_change=self._note, on_state=lambda *_: None)
            for kind in WATCHED
        ]
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(each.run()) for each in self._reflectors]
        for each in self._reflectors:
            await each.synced.wait()
        self._listed = set(self._managers)
        self._happened.clear()  # what is there already did not come now
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def since(self, moment: float, besides: Collection[Key] = ()) -> list[Happening]:
        """What functions and Helm did since a moment (monotonic seconds), the first change of each object."""
        first: dict[tuple[Key, str], Happening] = {}
        for each in self._happened:
            if each.at >= moment and each.by and each.key not in besides:
                first.setdefault((each.key, each.what), each)
        created = {each.key for each in first.values() if each.what == "created"}
        return [each for each in first.values() if each.what != "changed" or each.key not in created]

    @property
    def last(self) -> float:
        """When something happened last."""
        return self._happened[-1].at if self._happened else 0.0

    def _note(self, verb: Verb, namespace: str, name: str, obj: Object | None) -> None:
        del namespace, name
        assert obj is not None  # objects are kept
        now, key = time.monotonic(), key_of(obj)
        if verb == "delete":
            self._happened.append(Happening(now, "deleted", key, _by(self._managers.pop(key, {}))))
            return
        before, after = self._managers.get(key), _managers(obj)
        self._managers[key] = after
        if before is None:
            self._happened.append(Happening(now, "created", key, _by(after)))
            return
        known = [each for each in after if key not in self._listed or each.startswith(_OURS)]
        self._listed.discard(key)
        changed = [each for each in known if before.get(each) != after[each]]
        self._happened.append(Happening(now, "changed", key, _by(changed)))


def _head(obj: Object) -> Object:
    """What is kept of an object: enough to tell by whom it changes."""
    return {part: obj[part] for part in ("apiVersion", "kind", "metadata")}


def _managers(obj: Object) -> dict[str, str]:
    """Who wrote when, of all but the status: the time of an entry changes when its manager writes, not when it loses a field."""
    entries = obj["metadata"].get("managedFields") or ()
    return {each["manager"]: str(each.get("time")) for each in entries if each.get("subresource") != "status"}


def _by(managers: Iterable[str]) -> str:
    """The first function among them, or Helm; empty when there is none."""
    return next((who for each in managers if (who := _who(each))), "")


def _who(manager: str) -> str:
    if manager.startswith(_OURS):
        return manager.removeprefix(_OURS)
    return "Helm" if manager == _HELM else ""
