"""The ConfigMap that keeps dead letters, and its writer: one write a second at most, however many letters arrive.

Several processes may write it: replicas of the sink, and people with `tenantry dead-letters`.  So each write has the resource
version that was read as its precondition, and is made again on a conflict: no write loses a letter that was stored.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable
from functools import partial

from tenantry.api import Api
from tenantry.api.errors import ConflictError
from tenantry.model import limits
from tenantry.model.kinds import CONFIG_MAP, Object, object_of
from tenantry.model.names import SYSTEM_NAMESPACE
from tenantry.serving.dead_letters.book import Book
from tenantry.serving.dead_letters.letter import Letter

log = logging.getLogger("tenantry")

CONFIG_MAP_NAME = "tenantry-dead-letters"
FIELD = "letters.json"
PAUSE_S = 1.0
"""Between two writes of one process."""
LONGEST_PAUSE_S = 30.0
"""Between two attempts while the API server does not answer."""
CLOSE_S = 10.0
_ATTEMPTS = 8


class Store:
    """The book in the cluster that ``api`` talks to."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def read(self) -> Book:
        """What is stored."""
        return _book(await self._api.get(CONFIG_MAP, CONFIG_MAP_NAME, SYSTEM_NAMESPACE))

    async def change(self, edit: Callable[[Book], None]) -> Book:
        """Change what is stored; ``edit`` may be called several times, each time with a book that was just read.

        Raises:
            ConflictError: others were faster every time.
            ApiError: the API server refuses, or does not answer.
        """
        for attempt in range(_ATTEMPTS):
            live = await self._api.get(CONFIG_MAP, CONFIG_MAP_NAME, SYSTEM_NAMESPACE)
            book = _book(live)
            edit(book)
            text = book.text()
            if live is None:
                if text == Book().text():
                    return book
                # An apply, since a right to create can be bound to a name only there.  Whoever makes it writes no data with it.
                await self._api.apply(CONFIG_MAP, _EMPTY)
                continue
            if (live.get("data") or {}).get(FIELD) == text:
                return book
            seen = {"op": "test", "path": "/metadata/resourceVersion", "value": live["metadata"]["resourceVersion"]}
            put = {"op": "add", "path": "/data", "value": {FIELD: text}}
            try:
                await self._api.json_patch(CONFIG_MAP, CONFIG_MAP_NAME, SYSTEM_NAMESPACE, [seen, put])
            except ConflictError:
                await asyncio.sleep(0.02 * 2**attempt * random.random())  # noqa: S311 - jitter
                continue
            return book
        raise ConflictError("others write the dead letters all the time", status=409)


_LABELS = {"app.kubernetes.io/part-of": "tenantry", "app.kubernetes.io/name": "dead-letters"}
_EMPTY = object_of(CONFIG_MAP, {"name": CONFIG_MAP_NAME, "namespace": SYSTEM_NAMESPACE, "labels": _LABELS})


def _book(live: Object | None) -> Book:
    return Book.of(((live or {}).get("data") or {}).get(FIELD, ""))


class Collector:
    """Takes letters and stores them together.  `close` writes what is left."""

    def __init__(self, store: Store, pause_s: float = PAUSE_S) -> None:
        self._store = store
        self._pause_s = pause_s
        self._pending = Book()
        self._waiting: list[asyncio.Future[None]] = []
        self._writing: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    async def take(self, letter: Letter) -> None:
        """Keep a letter, and wait until it is stored; beyond `limits.DEAD_LETTER_SENDERS` waiting senders, return at once.

        Raises:
            ApiError: it could not be stored yet.  It is kept in memory and tried again all the same.
        """
        self._pending.add(letter)
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write())
        if len(self._waiting) < limits.DEAD_LETTER_SENDERS:
            waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiting)
            await waiting

    def hurry(self) -> None:
        """Write without a pause from now on: the process ends."""
        self._closing.set()

    async def close(self) -> None:
        """Write what is left, once; returns when that ended, well or not."""
        self.hurry()
        if self._writing is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._writing, CLOSE_S)

    async def _write(self) -> None:
        """Write what is pending; it ends after a pause in which nothing came."""
        failures = 0
        while self._pending:
            pending, self._pending = self._pending, Book()
            waiting, self._waiting = self._waiting, []
            problem: Exception | None = None
            try:
                await self._store.change(partial(Book.merge, other=pending))
            except Exception as error:  # also a bug of ours: no sender may wait for ever
                problem = error
                failures += 1
                pending.merge(self._pending)
                self._pending = pending
                log.warning("%d dead letters are not stored yet: %s", len(pending), error)
            else:
                failures = 0
                *_, last = pending
                log.warning("stored dead letters of %d keys; the last: %s", len(pending), last)
            for each in waiting:
                if not each.done():
                    each.set_result(None) if problem is None else each.set_exception(problem)
            if problem is not None and self._closing.is_set():
                return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), min(self._pause_s * 2**failures, LONGEST_PAUSE_S))
