"""What a reader knows of the event that it reads for."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from tenantry.engine.last_runs import LastRuns, is_ended
from tenantry.model.kinds import Key

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
        self.tells_echo: Knew = lambda _: False
        """Whether the event has the object as the run for an owner has written it, which is under way or was the last one."""

    def hear(self, key: Key, told: Hashable, last: LastRuns, name_of: Callable[[object], str]) -> None:
        """There was an event of this key, that told this state; owners have these names in ``last``."""
        self.tells_echo = lambda owner: last.is_echo(name_of(owner), key, told)
        knew: Knew = lambda owner: last.knows(name_of(owner), key, told)  # noqa: E731
        if is_ended(told):
            self.tells_known_end = knew
        else:
            self.told, self.tells_nothing_new = told, knew
