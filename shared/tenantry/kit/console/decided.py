"""The newest decisions of the ledger, read as they come while somebody looks."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from tenantry.api import Api
from tenantry.api.errors import ApiError
from tenantry.cli.history import decision_causes, decision_head, refused_lines, went_well, write_line
from tenantry.cli.ledger import ledger_of_cluster
from tenantry.kit.console.deeds import deed
from tenantry.kit.console.live import News
from tenantry.kit.console.story import EPISODES, At, Deed, causes_of, episodes, is_put_right, told
from tenantry.model.kinds import Object
from tenantry.serving.installed import descriptors
from tenantry.serving.ledger.asked import FOREVER, Query, asked_for, decisions, reading
from tenantry.serving.ledger.store import LedgerError

EVERY_S = 1.0
"""How often the file is asked."""
FIND_S = 10.0
"""How often a ledger that is not there is looked for."""
KEPT = 200
"""Decisions that the story is told from."""
ABOUT = 10
"""Decisions about one object."""
ASKED = 60
"""Objects of events that are read for one telling, at most: of a flood the newest episodes are told, with less about each."""


class Decided:
    """The newest decisions as a story, as long as it follows the ledger (`follow`).

    ``told`` has the newest episodes as the page shows them, the newest first, and ``version`` counts what differs in it.
    ``missing`` says why there can be none; empty where the ledger is read.
    """

    def __init__(self, api: Api, ledger: Path | None, news: News, project_label: str = "") -> None:
        self.missing = "they are being looked for"
        self.told: list[dict[str, Any]] = []
        self.version = 0
        self._api = api
        self._path = ledger
        self._given = ledger is not None
        self._news = news
        self._project_label = project_label
        self._kept: deque[Object] = deque(maxlen=KEPT)
        self._deeds: dict[At, Deed] = {}
        self._seen = 0

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
                self._seen = newest
                self._say("")
                if found:
                    self._kept.extend(found)
                    await self._tell()
            except (ApiError, LedgerError) as error:
                await self._later(str(error))
            except Exception as error:  # the page stays, and says what is wrong
                await self._later(f"what was decided could not be told ({error!r}); `tenantry history` may say more")
            await asyncio.sleep(EVERY_S)

    async def _later(self, why: str) -> None:
        if not self._given:
            self._path = None
        self._say(why)
        await asyncio.sleep(FIND_S)

    async def _tell(self) -> None:
        """Tell the story anew: what its events told of is read once for each, which can join two episodes to one."""
        asked: set[At] = set()
        while True:
            newest = episodes(self._kept, self._deeds)[-EPISODES:]
            unknown = [at for each in newest for run in each.decisions for at in causes_of(run) if at not in self._deeds]
            wanted = [at for at in (*(each.began for each in newest), *unknown) if at not in self._deeds][: ASKED - len(asked)]
            if not wanted:
                break
            asked.update(wanted)
            found = await asyncio.gather(*map(self._deed, wanted))
            self._deeds |= zip(wanted, found, strict=True)
        known = {at for run in self._kept for at in causes_of(run)}  # what is older is told no more
        self._deeds = {at: each for at, each in self._deeds.items() if at in known}
        self.told = [
            told(each, self._deeds, about_functions(), [shown(run) for run in each.decisions]) for each in reversed(newest)
        ]
        self.version += 1
        self._news.tell()

    async def _deed(self, at: At) -> Deed:
        return await deed(at, self._api, self._project_label, put_right=is_put_right(at, self._kept))

    def _say(self, missing: str) -> None:
        if missing != self.missing:
            self.missing = missing
            self._news.tell()


@cache
def about_functions() -> dict[str, str]:
    """What each function is for, in the words of its package."""
    packages = {name: each.units[0][0].partition(".")[0] for name, each in descriptors().items() if each.units}
    texts = {name: (import_module(package).__doc__ or "").partition("\n")[0] for name, package in packages.items()}
    return {name: text.partition(": ")[2].rstrip(".") for name, text in texts.items()}


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
