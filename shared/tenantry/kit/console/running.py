"""What runs the functions, as `tenantry status` shows it, asked for while somebody looks."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

from tenantry.api.errors import ApiError
from tenantry.cli.standing.services import read_system
from tenantry.cli.standing.told import here
from tenantry.cli.standing.watch import AGAIN_S
from tenantry.kit.console.live import Live


class Running:
    """Functions with their last sweep, backlog and dead letters, as long as it follows them (`follow`).

    ``told`` is as JSON of `tenantry status` has it, with ``unread`` for what could not be seen; ``version`` counts what differs
    in it, but for ages.
    """

    def __init__(self, live: Live) -> None:
        self.told: dict[str, Any] = {}
        self.version = 0
        self._live = live

    async def follow(self) -> None:
        """Ask every few seconds while somebody listens to the news, until it is cancelled."""
        while True:
            await self._live.news.heard.wait()
            try:
                self._say(await self._asked())
            except ApiError as error:
                self._say({"error": error.message})
            await asyncio.sleep(AGAIN_S)

    async def _asked(self) -> dict[str, Any]:
        unread: dict[str, str] = {}
        told = await here(self._live.api, unread)
        now, system = datetime.now(UTC), await read_system(self._live.api, self._live.followed.served, told, unread)
        services = [{**each.document(now), "well": each.is_well(now) and not each.failed} for each in system.services]
        for each in services:
            del each["ageSeconds"]  # the page counts it
        return {**system.document(now), "services": services, "unread": unread}

    def _say(self, told: dict[str, Any]) -> None:
        if told != self.told:
            self.told = told
            self.version += 1
            self._live.news.tell()
