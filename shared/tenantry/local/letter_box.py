"""The dead-letter sink of one machine: the HTTP entry of a cluster, under the identity of a cluster, in this process.

The store is the ConfigMap of a cluster, too, so `tenantry dead-letters` works alike.  Beside it this one remembers what it was
sent since its start.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tenantry.api import Api
from tenantry.local.loopback import OnLoopback
from tenantry.model.names import field_manager
from tenantry.serving.dead_letters import NAME
from tenantry.serving.dead_letters.book import Book
from tenantry.serving.dead_letters.entry import LettersEntry, make_server
from tenantry.serving.dead_letters.letter import Letter
from tenantry.serving.dead_letters.store import Collector, Store


class LetterBox(OnLoopback):
    """Open between `open` and `close`; ``url`` is where a function's path is added to.  ``say`` gets a line for each new key."""

    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__()
        self._say = say
        self._taken = Book()
        self._said: set[tuple[str, str]] = set()
        self._api: Api | None = None
        self._collector: Collector | None = None

    @property
    def letters(self) -> list[Letter]:
        """What was sent here since the start, also what the cluster could not store yet."""
        return list(self._taken)

    def exists(self) -> bool:
        """Whether anything was sent here."""
        return bool(self._taken)

    def read_text(self) -> str:
        """What was sent here: a line of JSON for each key of a function."""
        return "".join(json.dumps(letter.document()) + "\n" for letter in self._taken)

    async def open(self, kubeconfig: Path) -> None:
        """Serve on a free port of loopback, with the identity of this kubeconfig."""
        self._api = await Api.connect(field_manager=field_manager(NAME), kubeconfig=kubeconfig)
        self._collector = Collector(Store(self._api))
        self._serve(partial(make_server, LettersEntry(self._collector, self._take)))

    async def close(self) -> None:
        """Store what is left, and end."""
        if self._collector is not None:
            self._collector.hurry()
        await self._end()
        if self._collector is not None:
            await self._collector.close()
        if self._api is not None:
            await self._api.close()

    def _take(self, letter: Letter) -> None:
        if letter.name not in self._said and len(self._said) < 1000:
            self._said.add(letter.name)
            self._say(f"dead letter: {letter.function} gave {letter.key} up: {letter.status} {letter.reason}")
        self._taken.add(letter)
