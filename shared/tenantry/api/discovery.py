"""Which kinds the API server serves, read one group version at a time and cached for a bounded time.

That a kind is served is cached for `SERVED_S`; that it is missing only for `MISSING_S`, because its CRD
may be created meanwhile; the same holds of a kind of ours that is served by a CRD of another system, which may be
replaced.  A sweep begins with doubts about what is missing (`Discovery.doubt`).  Concurrent calls for one group
version share one request.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Collection
from typing import NamedTuple

from tenantry.api.errors import NotFound
from tenantry.model.kinds import Kind, Object

SERVED_S = 300.0
MISSING_S = 2.0
OURS = "tenantry"
"""The category of kinds whose CRDs are ours, which discovery tells everybody: nobody needs the right to read CRDs for it."""

_API_VERSION = re.compile(r"(?:[a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?v[0-9][a-z0-9]*")

Request = Callable[[str, str], Awaitable[Object]]


class _Served(NamedTuple):
    """A kind as it is served, whether the CRD is ours, and whether its status is written by itself."""

    kind: Kind
    ours: bool
    status: bool


class Discovery:
    """The kinds of an API server; ``request`` makes a request as (method, path)."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._known: dict[str, tuple[float, dict[str, _Served]]] = {}
        self._versions: dict[str, tuple[float, list[str]]] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._doubted = float("-inf")

    def doubt(self) -> None:
        """What was missing so far is asked for again: a server that starts may not have known it."""
        self._doubted = time.monotonic()

    def _is_known(self, asked: float, *, wanted: bool) -> bool:
        """Whether what was read then is good enough still: that it is as wanted, or that it is not."""
        age = time.monotonic() - asked
        return age <= SERVED_S if wanted else age <= MISSING_S and asked > self._doubted

    async def find(self, api_version: str, kind: str, *, again: bool = False) -> Kind | None:
        """The kind as it is served, or None, without a request for a text that is no group and version.

        With ``again`` the cache does not count.
        """
        found = await self._find(api_version, kind, again=again)
        return found.kind if found is not None else None

    async def preferred(self, group: str, kind: str, *, again: bool = False) -> Kind | None:
        """A kind, by its name or its plural, in the first version of its group that has it; None: none does.

        The order of versions is that which the server prefers.
        """
        async with self._locks.setdefault(group, asyncio.Lock()):
            asked, versions = self._versions.get(group, (float("-inf"), []))
            if again or not self._is_known(asked, wanted=bool(versions)):
                versions = await self._ask_group(group)
                self._versions[group] = time.monotonic(), versions
        for version in versions:
            if (found := await self.find(version, kind, again=again)) is not None:
                return found
        return None

    async def _ask_group(self, group: str) -> list[str]:
        """The versions of a group, the preferred one first; none where there is no such group."""
        if not group:
            return ["v1"]
        try:
            served = await self._request("GET", f"/apis/{group}")
        except NotFound:
            return []
        first = (served.get("preferredVersion") or {}).get("groupVersion")
        versions = [str(each["groupVersion"]) for each in served.get("versions") or ()]
        return sorted(versions, key=lambda each: each != first)

    async def is_foreign(self, kind: Kind) -> bool:
        """Whether a kind that we have a CRD for is served by one of another system."""
        found = await self._find(kind.api_version, kind.kind, ours=True)
        return found is not None and not found.ours

    async def has_status(self, kind: Kind) -> bool:
        """Whether the status of a kind is written by itself."""
        found = await self._find(kind.api_version, kind.kind)
        return found is not None and found.status

    async def _find(self, api_version: str, kind: str, *, again: bool = False, ours: bool = False) -> _Served | None:
        """As last read, or read now: what is not as wanted (served, ``ours``) is known for a short time only."""
        if _API_VERSION.fullmatch(api_version) is None:
            return None
        async with self._locks.setdefault(api_version, asyncio.Lock()):
            asked, kinds = self._known.get(api_version, (float("-inf"), {}))
            wanted = kind in kinds and (kinds[kind].ours or not ours)
            if again or not self._is_known(asked, wanted=wanted):
                kinds = await self._ask(api_version)
                self._known[api_version] = time.monotonic(), kinds
            return kinds.get(kind)

    async def _ask(self, api_version: str) -> dict[str, _Served]:
        path = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        try:
            served = (await self._request("GET", path)).get("resources") or []
        except NotFound:
            return {}
        names = {each["name"] for each in served}
        kinds = [_served(api_version, each, names) for each in served if "/" not in each["name"]]
        # A name begins with a capital letter and a plural does not, so none is taken for the other.
        return {name: each for each in kinds for name in (each.kind.kind, each.kind.plural)}


def _served(api_version: str, found: Object, names: Collection[str]) -> _Served:
    kind = Kind(api_version, found["kind"], found["name"], bool(found["namespaced"]))
    return _Served(kind, OURS in (found.get("categories") or ()), f"{kind.plural}/status" in names)
