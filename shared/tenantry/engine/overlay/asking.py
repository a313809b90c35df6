"""Asking the API server about a write before it is laid on: by dry runs, or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from tenantry.api.errors import KindNotServed, NotFound
from tenantry.engine.overlay.store import Overlay, place_of
from tenantry.model.kinds import NAMESPACE, Kind, Object

if TYPE_CHECKING:
    from tenantry.engine.overlay.api import OverlayApi


class ServerAsk(Protocol):
    """Who is asked; raises the refusal of a write, and may know what it would make."""

    async def apply(
        self, over: OverlayApi, kind: Kind, body: Object, live: Object | None, subresource: str, manager: str
    ) -> Object | None:
        """What an apply would make, or None where that is not known from here."""

    async def create(self, over: OverlayApi, kind: Kind, body: Object, manager: str) -> Object | None:
        """What a create would make, or None."""

    async def patch(self, over: OverlayApi, kind: Kind, live: Object, operations: Sequence[Object], subresource: str) -> None:
        """Ask about a JSON patch."""

    async def delete(self, over: OverlayApi, kind: Kind, live: Object, propagation: str) -> None:
        """Ask about a deletion."""


class _Nobody:
    """Nobody is asked: nothing is refused."""

    async def apply(
        self, over: OverlayApi, kind: Kind, body: Object, live: Object | None, subresource: str, manager: str
    ) -> Object | None:
        """None: it is computed."""
        del over, kind, body, live, subresource, manager
        return None

    async def create(self, over: OverlayApi, kind: Kind, body: Object, manager: str) -> Object | None:
        """None: it is computed."""
        del over, kind, body, manager
        return None

    async def patch(self, over: OverlayApi, kind: Kind, live: Object, operations: Sequence[Object], subresource: str) -> None:
        """Nothing."""

    async def delete(self, over: OverlayApi, kind: Kind, live: Object, propagation: str) -> None:
        """Nothing."""


nobody: ServerAsk = _Nobody()


class DryRuns:
    """The API server is asked by a dry run of each write to what is in the cluster as it is; refusals are raised.

    What was laid on it does not know: a write to such an object, or into such a namespace, cannot be asked about, and is counted.
    """

    def __init__(self) -> None:
        self.asked = 0
        self.not_asked: dict[str, str] = {}
        """What could not be asked about, with why."""

    async def apply(
        self, over: OverlayApi, kind: Kind, body: Object, live: Object | None, subresource: str, manager: str
    ) -> Object | None:
        """What the server says that an apply would make."""
        metadata = body["metadata"]
        if not self._may_ask(over.overlay, kind, metadata["name"], metadata.get("namespace", "")):
            return None
        self.asked += 1
        found = await over.asking.apply(kind, body, subresource=subresource, dry_run=True, manager=manager)
        return None if live is None else found  # of what is new the server makes up a uid each time

    async def create(self, over: OverlayApi, kind: Kind, body: Object, manager: str) -> Object | None:
        """None, after the server has said that it would make it."""
        metadata = body["metadata"]
        if self._may_ask(over.overlay, kind, metadata["name"], metadata.get("namespace", "")):
            self.asked += 1
            await over.asking.create(kind, body, dry_run=True, manager=manager)
        return None

    async def patch(self, over: OverlayApi, kind: Kind, live: Object, operations: Sequence[Object], subresource: str) -> None:
        """Ask about the patch; its tests hold, since the object is as it is there."""
        metadata = live["metadata"]
        if self._may_ask(over.overlay, kind, metadata["name"], metadata.get("namespace", "")):
            self.asked += 1
            name, namespace = metadata["name"], metadata.get("namespace", "")
            await over.asking.json_patch(kind, name, namespace, operations, subresource=subresource, dry_run=True)

    async def delete(self, over: OverlayApi, kind: Kind, live: Object, propagation: str) -> None:
        """Ask about the deletion."""
        metadata = live["metadata"]
        name, namespace = metadata["name"], metadata.get("namespace", "")
        if self._may_ask(over.overlay, kind, name, namespace):
            self.asked += 1
            try:
                await over.asking.delete(kind, name, namespace, propagation=propagation, dry_run=True)
            except KindNotServed:
                raise
            except NotFound:
                return

    def _may_ask(self, overlay: Overlay, kind: Kind, name: str, namespace: str) -> bool:
        """Whether the server knows what the write is about; what it does not know is noted."""
        place = place_of(kind, name, namespace)
        where = f"{kind.kind} {namespace}/{name}" if kind.namespaced else f"{kind.kind} {name}"
        if kind.namespaced and place_of(NAMESPACE, namespace, "") in overlay.laid:
            self.not_asked[where] = f"the server does not know namespace {namespace} as it would be"
        elif place in overlay.laid:
            self.not_asked[where] = "the server does not know the object as it would be"
        else:
            return True
        return False
