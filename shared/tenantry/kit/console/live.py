"""The map of a cluster as it is now, drawn anew when something has changed and somebody looks."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any, Self

from tenantry.api import Api
from tenantry.api.errors import ApiError
from tenantry.cli.standing.page import data_text, page_data
from tenantry.cli.standing.read import Standing
from tenantry.cli.standing.watch import AGAIN_S, TOGETHER_S, Followed
from tenantry.model.map import map_of

REST = 4
"""Drawing may take one part in so many and one of the time, so that a busy cluster of ten thousand namespaces leaves room."""


class News:
    """Wakes all who wait when there is something new; ``heard`` is set while somebody listens."""

    def __init__(self) -> None:
        self.heard = asyncio.Event()
        self.ended = False
        self._told = asyncio.Event()
        self._listeners = 0

    def next(self) -> asyncio.Event:
        """What is set by the next news."""
        return self._told

    def tell(self) -> None:
        """There is something new."""
        told, self._told = self._told, asyncio.Event()
        told.set()

    def end(self) -> None:
        """No more news."""
        self.ended = True
        self.tell()

    def __enter__(self) -> Self:
        self._listeners += 1
        self.heard.set()
        return self

    def __exit__(self, *_: object) -> None:
        self._listeners -= 1
        if not self._listeners:
            self.heard.clear()


@asynccontextmanager
async def beside(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Work that goes on beside a block, and is cancelled with its end."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


class Live:
    """The newest map, as long as it follows the cluster (`following`).

    ``version`` counts maps that differ, ``text`` is the newest as JSON that can stand in a page.  ``old`` says why what is shown
    may be old; empty when it is not.
    """

    def __init__(self, api: Api, standing: Standing) -> None:
        self.api = api
        self.news = News()
        self.version = 0
        self.text = ""
        self.old = ""
        self.followed = Followed(api, standing, self._heard_of_state)
        self._first = standing
        self._key = ""

    @asynccontextmanager
    async def following(self) -> AsyncIterator[Self]:
        """Draw the map, and draw it anew until the end of the block."""
        await self._draw(self._first)
        async with self.followed, beside(self._follow()):
            yield self

    async def _follow(self) -> None:
        took = 0.0
        while True:
            await self.followed.changed.wait()
            await self.news.heard.wait()
            await asyncio.sleep(max(TOGETHER_S, REST * took))
            self.followed.changed.clear()
            began = time.monotonic()
            try:
                await self._draw(await self.followed.now())
                self._say(self._lost())
            except ApiError as error:
                await self._later(error.message)
            except Exception as error:  # the page stays, and says what is wrong
                await self._later(f"it could not be drawn ({error!r}); `tenantry tree` may say more")
            took = time.monotonic() - began

    async def _later(self, why: str) -> None:
        self._say(why)
        self.followed.changed.set()
        await asyncio.sleep(AGAIN_S)

    async def _draw(self, standing: Standing) -> None:
        text, key = await asyncio.to_thread(drawn, standing, self.version + 1, datetime.now(UTC))
        if key != self._key:
            self.text, self._key, self.version = text, key, self.version + 1
            self.news.tell()

    def _heard_of_state(self) -> None:
        self._say(self._lost())

    def _lost(self) -> str:
        return next(iter(self.followed.lost.values()), "")

    def _say(self, old: str) -> None:
        if old != self.old:
            self.old = old
            self.news.tell()


def drawn(standing: Standing, version: int, at: datetime) -> tuple[str, str]:
    """The text of a map, and a digest of it without what changes by itself: times and ages."""
    data = page_data(map_of(standing.seen), at)
    lasting = {**data, "at": "", "problems": [{**each, "concerns": ""} for each in data["problems"]]}
    key = hashlib.sha256(json.dumps(lasting).encode()).hexdigest()
    numbered: dict[str, Any] = {"version": version, **data}
    return data_text(numbered), key
