"""The newest decisions of the ledger, read as they come while somebody looks."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tenantry.api import Api
from tenantry.api.errors import ApiError
from tenantry.cli.history import decision_causes, decision_head, refused_lines, went_well, write_line
from tenantry.cli.ledger import ledger_of_cluster
from tenantry.kit.console.live import News
from tenantry.model.kinds import Object
from tenantry.serving.ledger.asked import FOREVER, Query, asked_for, decisions, reading
from tenantry.serving.ledger.store import LedgerError

EVERY_S = 1.0
"""How often the file is asked."""
FIND_S = 10.0
"""How often a ledger that is not there is looked for."""
KEPT = 200
"""Decisions that a page which comes later still gets."""
ABOUT = 10
"""Decisions about one object."""


class Decision(NamedTuple):
    """A decision as the page shows it, with its number in this process."""

    number: int
    shown: dict[str, Any]


class Decided:
    """The newest decisions, as long as it follows the ledger (`follow`).

    ``missing`` says why there can be none; empty where the ledger is read.
    """

    def __init__(self, api: Api, ledger: Path | None, news: News) -> None:
        self.missing = "they are being looked for"
        self._api = api
        self._path = ledger
        self._given = ledger is not None
        self._news = news
        self._kept: deque[Decision] = deque(maxlen=KEPT)
        self._seen = 0
        self._number = 0

    def after(self, number: int) -> list[Decision]:
        """Those that came after one, the oldest first."""
        return [each for each in self._kept if each.number > number]

    async def about(self, what: str) -> list[dict[str, Any]]:
        """The newest decisions about an owner or object, the newest first; none where no ledger can be read."""
        try:
            return await asyncio.to_thread(_about, await self._file(), what)
        except (ApiError, LedgerError):
            return []

    async def _file(self) -> Path:
        if self._path is None:
            self._path = await ledger_of_cluster(self._api)
        return self._path

    async def follow(self) -> None:
        """Read what comes while somebody listens to the news, until it is cancelled."""
        while True:
            await self._news.heard.wait()
            try:
                newest, found = await asyncio.to_thread(newer, await self._file(), self._seen)
            except (ApiError, LedgerError) as error:
                if not self._given:
                    self._path = None
                self._say(str(error))
                await asyncio.sleep(FIND_S)
                continue
            self._seen = newest
            self._say("")
            for each in found:
                self._number += 1
                self._kept.append(Decision(self._number, shown(each)))
            if found:
                self._news.tell()
            await asyncio.sleep(EVERY_S)

    def _say(self, missing: str) -> None:
        if missing != self.missing:
            self.missing = missing
            self._news.tell()


def newer(path: Path, seen: int) -> tuple[int, Sequence[Object]]:
    """The number of the newest decision in the file, and those since ``seen``, as many as are kept."""
    with reading(path) as connection:
        newest: int = connection.execute("SELECT COALESCE(MAX(id), 0) FROM decisions").fetchone()[0]
        if newest == seen:
            return newest, ()
        after = seen if newest > seen else 0  # a file that was begun anew counts from one again
        found, _ = decisions(connection, Query("d.id > ?", (after,)), 0, FOREVER, KEPT)
        return newest, found


def _about(path: Path, what: str) -> list[dict[str, Any]]:
    with reading(path) as connection:
        found, _ = decisions(connection, asked_for(what), 0, FOREVER, ABOUT)
    return [shown(each) for each in reversed(found)]


def shown(decision: Object) -> dict[str, Any]:
    """A decision in the words of `tenantry history`; of each write also which object it was."""
    return {
        "text": decision_head(decision),
        "well": went_well(decision),
        "causes": [*decision_causes(decision)],
        "writes": [
            {"text": write_line(each), "kind": each.get("kind", ""), "namespace": each.get("namespace", ""), "name": each["name"]}
            for each in decision["writes"]
        ],
        "refused": [*refused_lines(decision)],
    }
