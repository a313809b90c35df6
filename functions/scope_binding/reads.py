"""Reads of kinds that OLM brings, where it may not be installed."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

from tenantry.api.errors import KindNotServed
from tenantry.engine.reader import Reader
from tenantry.model.kinds import Kind, Object

Result = TypeVar("Result")


async def if_served(kind: Kind, reader: Reader, read: Awaitable[Result]) -> Result | None:
    """What is read, or None where OLM is not installed.

    That a kind is not served is believed when the API server's discovery says so too.
    """
    try:
        return await read
    except KindNotServed:
        if await reader.serves(kind):
            raise
        return None


async def listed(kind: Kind, reader: Reader, namespace: str = "") -> list[Object]:
    """The objects of a kind; none where OLM is not installed."""
    return await if_served(kind, reader, reader.list(kind, namespace)) or []
