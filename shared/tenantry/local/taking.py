"""Taking things out of a cluster: what each step of an uninstallation does, and what is told of it.

With a dry run nothing is changed, and everything is told.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from tenantry.api import Api
from tenantry.api.errors import KindNotServed
from tenantry.local.install import INSTALL_MANAGER, Say
from tenantry.local.kinds import kind_of
from tenantry.local.policies import PART_OF
from tenantry.model.difference import entries_of
from tenantry.model.kinds import Kind, Object, is_terminating, key_of, labels_of
from tenantry.model.pointer import pointer

POLL_S = 1.0


@dataclass
class Uninstallation:
    """What was done, or with a dry run would be: objects as ``Kind namespace/name``."""

    cleaned_up: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    remaining: list[str] = field(default_factory=list)
    dry_run: bool = False

    def as_dict(self) -> dict[str, Any]:
        """For output."""
        return asdict(self)


class Taking:
    """One uninstallation's hands; what is not served has no objects."""

    def __init__(self, api: Api, say: Say, *, dry_run: bool, timeout_s: float) -> None:
        self._api = api
        self._say = say
        self._dry_run = dry_run
        self._timeout_s = timeout_s
        self.done = Uninstallation(dry_run=dry_run)

    async def _list(self, kind: Kind, namespace: str = "", selector: str = "") -> list[Object]:
        try:
            return (await self._api.list(kind, namespace, label_selector=selector)).items
        except KindNotServed:
            return []

    async def _are_gone(self, look: Callable[[], Awaitable[list[str]]]) -> bool:
        give_up_at = time.monotonic() + self._timeout_s
        told: list[str] = []
        while left := await look():
            if left != told:
                self._say(f"waiting for {len(left)} to go: {', '.join(left[:5])}{' ...' if len(left) > 5 else ''}")
                told = left
            if time.monotonic() > give_up_at:
                self.done.remaining = left
                return False
            await asyncio.sleep(POLL_S)
        return True

    async def _take_finalizer_off(self, kind: Kind, seen: Object, finalizer: str) -> None:
        name, namespace = seen["metadata"]["name"], seen["metadata"].get("namespace", "")
        if self._dry_run or finalizer not in (seen["metadata"].get("finalizers") or ()):
            return
        live = await self._api.get(kind, name, namespace) or {"metadata": {}}
        finalizers = live["metadata"].get("finalizers") or []
        if finalizer not in finalizers:
            return
        path = f"/metadata/finalizers/{finalizers.index(finalizer)}"
        test = {"op": "test", "path": path, "value": finalizer}
        await self._api.json_patch(kind, name, namespace, [test, {"op": "remove", "path": path}])
        self._say(f"took the finalizer off {key_of(seen)}")

    async def _remove_file(self, document: Object, propagation: str = "Background") -> None:
        """Delete an object of our files, if it is there and carries our label or was applied by our installer."""
        kind, _ = kind_of(document["apiVersion"], document["kind"])
        metadata = document["metadata"]
        try:
            live = await self._api.get(kind, metadata["name"], metadata.get("namespace", ""))
        except KindNotServed:
            return
        if live is None:
            return
        if not is_part_of(live):
            self.done.kept.append(f"{key_of(live)}: not made by Tenantry")
            return
        await self._delete(kind, live, propagation)

    async def _delete(self, kind: Kind, live: Object, propagation: str = "Background") -> None:
        if is_terminating(live):
            return
        if (name := str(key_of(live))) not in self.done.removed:
            self.done.removed.append(name)
        if self._dry_run:
            return
        metadata = live["metadata"]
        where = metadata.get("namespace", "")
        await self._api.delete(kind, metadata["name"], where, uid=metadata["uid"], propagation=propagation)
        self._say(f"removed {key_of(live)}")

    async def _take_off(self, kind: Kind, live: Object, part: Literal["labels", "annotations"], key: str) -> None:
        """Remove a label or an annotation of ours from what is somebody's."""
        self.done.removed.append(f"{part.removesuffix('s')} {key} of {key_of(live)}")
        if self._dry_run:
            return
        metadata, path = live["metadata"], pointer("metadata", part, key)
        steps = [{"op": "test", "path": path, "value": metadata[part][key]}, {"op": "remove", "path": path}]
        await self._api.json_patch(kind, metadata["name"], metadata.get("namespace", ""), steps)


def is_part_of(live: Object) -> bool:
    """Whether an object carries our label or was applied by our installer."""
    return labels_of(live).items() >= PART_OF.items() or bool(entries_of(live, INSTALL_MANAGER))
