"""Faults of time: reads answered from the past, and a gate that decides the order of requests."""

from __future__ import annotations

import asyncio
from dataclasses import KW_ONLY, dataclass, field

from tenantry.testing.fault import Fault, Forward, gets, lists
from tenantry.testing.wire import Request, Response


@dataclass(eq=False)
class StaleGet(Fault, name="stale get", concerns=gets):
    """A read of one object is answered from the past: as of ``version``, or just before the object's last change.

    The API server itself answers, from the history that etcd keeps (compacted every five minutes), so the past is real.
    Where there is none (no object now and no version named, compacted, no right to list) the request is left alone.
    """

    _: KW_ONLY
    version: str = ""

    async def act(self, request: Request, forward: Forward) -> Response | None:
        """Forward, then answer from before."""
        assert request.as_of is not None
        answer = await forward()
        version = self.version or _before(answer)
        if not version or answer.status not in (200, 404):
            return None
        past = await request.as_of(version)
        return past if past.status in (200, 404) else None


@dataclass(eq=False)
class StaleList(StaleGet, name="stale list", concerns=lists):
    """A list is answered from the past: as of ``version``, or just before the last change of any item that it has now.

    Items that are gone now do not tell when they went; to see them again, name a version.
    """


def _before(answer: Response) -> str:
    body = answer.body if isinstance(answer.body, dict) and answer.status == 200 else {}
    metadata = [(each.get("metadata") or {}) for each in body.get("items", [body]) or ()]
    versions = [int(each["resourceVersion"]) for each in metadata if each.get("resourceVersion")]
    return str(max(versions) - 1) if versions else ""


@dataclass(eq=False)
class Held:
    """A request at a gate: it goes on after `release`; ``answered`` is set when it has its answer."""

    request: Request
    answered: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)

    def release(self) -> None:
        """Let it go on."""
        self.released.set()


@dataclass(eq=False)
class Gate(Fault, name="gate"):
    """Holds requests until they are released one by one, so that a schedule can interleave those of several functions.

    It holds all that concern it unless ``times`` says otherwise.  `disarm` lets all go.
    """

    _: KW_ONLY
    times: int = 0
    held: list[Held] = field(default_factory=list, init=False)
    _arrival: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    async def act(self, request: Request, forward: Forward) -> Response | None:
        """Hold, then forward."""
        held = Held(request)
        self.held.append(held)
        self._arrival.set()
        try:
            await held.released.wait()
            return await forward()
        finally:
            held.answered.set()
            self.held.remove(held)

    async def next(self) -> Held:
        """The request that has been held longest; waits until there is one."""
        while not (waiting := [each for each in self.held if not each.released.is_set()]):
            self._arrival.clear()
            await self._arrival.wait()
        return waiting[0]

    def disarm(self) -> None:
        """Concern nothing any more, and let all go."""
        super().disarm()
        for held in self.held:
            held.release()
