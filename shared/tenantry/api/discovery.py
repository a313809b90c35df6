"""Which kinds the API server serves, read one group version at a time and cached for a bounded time.

That a kind is served is cached for `SERVED_S`; that it is missing only for `MISSING_S`, because its CRD
may be created meanwhile.  Concurrent calls for one group version share one request.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable

from tenantry.api.errors import NotFound
from tenantry.model.kinds import Kind, Object

SERVED_S = 300.0
MISSING_S = 2.0

_API_VERSION = re.compile(r"(?:[a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?v[0-9][a-z0-9]*")

Request = Callable[[str, str], Awaitable[Object]]


class Discovery:
    """The kinds of an API server; ``request`` makes a request as (method, path)."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._known: dict[str, tuple[float, dict[str, Kind]]] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def find(self, api_version: str, kind: str, *, again: bool = False) -> Kind | None:
        """The kind as it is served, or None, without a request for a text that is no group and version.

        With ``again`` the cache does not count.
        """
        if _API_VERSION.fullmatch(api_version) is None:
            return None
        async with self._locks.setdefault(api_version, asyncio.Lock()):
            asked, kinds = self._known.get(api_version, (float("-inf"), {}))
            if again or time.monotonic() - asked > (SERVED_S if kind in kinds else MISSING_S):
                kinds = await self._ask(api_version)
                self._known[api_version] = time.monotonic(), kinds
            return kinds.get(kind)

    async def _ask(self, api_version: str) -> dict[str, Kind]:
        path = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        try:
            served = (await self._request("GET", path)).get("resources") or []
        except NotFound:
            return {}
        return {
            found["kind"]: Kind(api_version, found["kind"], found["name"], bool(found["namespaced"]))
            for found in served
            if "/" not in found["name"]
        }
