"""What a reader knows of the event that it reads for."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from tenantry.engine.last_runs import is_ended

Knew = Callable[[object], bool]


class Heard:
    """What an event tells of its object, and whether the last run for an owner knew that; nothing, where there was none."""

    def __init__(self) -> None:
        self.told: Hashable = None
        """Of the reader of an event that has the whole object: the hash of its state (`Unit.states`); else None."""
        self.tells_nothing_new: Knew = lambda _: False
        """Whether the last run for an owner knew the object as the event has it; of one that is no more that is never said: its
        name is free, for which others may wait."""
        self.tells_known_end: Knew = lambda _: False
        """Whether the event is of the end of an object that the last runs for an owner had deleted, and knew to be gone: there is
        nothing new for this owner, but may be for others."""

    def hear(self, told: Hashable, knew: Knew) -> None:
        """There was an event that told this state."""
        if is_ended(told):
            self.tells_known_end = knew
        else:
            self.told, self.tells_nothing_new = told, knew
