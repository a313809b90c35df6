"""What comes and goes in a cluster while somebody acts, and by whom: the API server writes down the managers of fields."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from tenantry.api import Api
from tenantry.api.errors import ApiError, KindNotServed
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
    Kind,
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
_AGAIN_S = 0.2


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
        self._api = api
        self._happened: list[Happening] = []
        self._managers: dict[Key, dict[str, str]] = {}
        self._listed: set[Key] = set()
        """Objects of which only our own managers are known: lists leave out the others."""
        self._tasks: list[asyncio.Task[None]] = []
        self._ready: list[asyncio.Event] = []

    async def __aenter__(self) -> Self:
        for kind in WATCHED:
            ready = asyncio.Event()
            self._ready.append(ready)
            self._tasks.append(asyncio.create_task(self._watch(kind, ready)))
        for ready in self._ready:
            await ready.wait()
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

    async def _watch(self, kind: Kind, ready: asyncio.Event) -> None:
        while True:
            with suppress(ApiError):
                try:
                    listing = await self._api.list(kind)
                except KindNotServed:
                    ready.set()
                    return
                for obj in listing.items:
                    self._managers[key_of(obj)] = _managers(obj)
                    self._listed.add(key_of(obj))
                version = listing.resource_version
                ready.set()
                while True:
                    async for verb, obj in self._api.watch(kind, resource_version=version):
                        version = obj["metadata"]["resourceVersion"]
                        if verb != "BOOKMARK":
                            self._note(verb, obj)
            await asyncio.sleep(_AGAIN_S)

    def _note(self, verb: str, obj: Object) -> None:
        now, key = time.monotonic(), key_of(obj)
        if verb == "DELETED":
            by = next((_who(each) for each in self._managers.pop(key, {}) if _who(each)), "")
            self._happened.append(Happening(now, "deleted", key, by))
            return
        before, after = self._managers.get(key), _managers(obj)
        self._managers[key] = after
        if before is None:
            by = next((_who(each) for each in after if _who(each)), "")
            self._happened.append(Happening(now, "created", key, by))
            return
        known = [each for each in after if key not in self._listed or each.startswith(_OURS)]
        self._listed.discard(key)
        changed = [each for each in known if before.get(each) != after[each]]
        by = next((_who(each) for each in changed if _who(each)), "")
        self._happened.append(Happening(now, "changed", key, by))


def _managers(obj: Object) -> dict[str, str]:
    """Who wrote when, of all but the status: the time of an entry changes when its manager writes, not when it loses a field."""
    entries = obj["metadata"].get("managedFields") or ()
    return {each["manager"]: str(each.get("time")) for each in entries if each.get("subresource") != "status"}


def _who(manager: str) -> str:
    if manager.startswith(_OURS):
        return manager.removeprefix(_OURS)
    return "Helm" if manager == _HELM else ""
