"""Several reads of a run at the same time: objects by name, and lists that are wanted as one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from typing import TypeVar

from tenantry.api.errors import KindNotServed
from tenantry.engine.reader import Fingerprint, Reader
from tenantry.model.kinds import Kind, Object

Result = TypeVar("Result")


async def by_name(
    kind: Kind, names: Iterable[str], reader: Reader, namespace: str = "", *, verify: Fingerprint | None = None
) -> dict[str, Object | None]:
    """The objects with these names, each read once; None where there is none."""
    wanted = list(dict.fromkeys(names))
    found = await asyncio.gather(*(reader.get(kind, name, namespace, verify=verify) for name in wanted))
    return dict(zip(wanted, found, strict=True))


async def joined(lists: Iterable[Awaitable[list[Object]]]) -> list[Object]:
    """The objects of several lists, which are read at the same time."""
    return [obj for found in await asyncio.gather(*lists) for obj in found]


async def if_served(kind: Kind, reader: Reader, read: Awaitable[Result]) -> Result | None:
    """What is read of a kind that another system brings, or None where that is not installed.

    That a kind is not served is believed when the API server's discovery says so too.
    """
    try:
        return await read
    except KindNotServed:
        if await reader.serves(kind):
            raise
        return None
