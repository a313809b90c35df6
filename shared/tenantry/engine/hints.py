"""What held of owners when they were looked at last: it saves looks and decides nothing."""

from __future__ import annotations

from tenantry.model import limits


class Hints:
    """The names of which something held; of very many all are forgotten."""

    def __init__(self) -> None:
        self._names: set[str] = set()

    def note(self, name: str, *, holds: bool) -> None:
        """It holds of a name now, or not any more."""
        self._names.discard(name)
        if holds:
            if len(self._names) >= limits.REMEMBERED:
                self._names.clear()
            self._names.add(name)

    def __contains__(self, name: str) -> bool:
        return name in self._names
