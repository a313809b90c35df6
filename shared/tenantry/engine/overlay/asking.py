"""Asking the API server about a write before it is laid on, by dry runs: about which writes that can be done."""

from __future__ import annotations

from tenantry.engine.overlay.store import Overlay, place_of
from tenantry.model.kinds import NAMESPACE, Key, Kind


class DryRuns:
    """The API server is asked by a dry run of each write to what is in the cluster as it is; refusals are raised.

    What was laid on it does not know: a write to such an object, or into such a namespace, cannot be asked about, and is counted.
    """

    def __init__(self) -> None:
        self.asked = 0
        self.not_asked: dict[str, str] = {}
        """What could not be asked about, with why."""

    def may_ask(self, overlay: Overlay, kind: Kind, key: Key) -> bool:
        """Whether the server knows what the write is about, and is asked then; what it does not know is noted."""
        if kind.namespaced and place_of(NAMESPACE, key.namespace, "") in overlay.laid:
            self.not_asked[str(key)] = f"the server does not know namespace {key.namespace} as it would be"
        elif place_of(kind, key.name, key.namespace) in overlay.laid:
            self.not_asked[str(key)] = "the server does not know the object as it would be"
        else:
            self.asked += 1
            return True
        return False
