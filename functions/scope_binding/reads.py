"""Reads of kinds that OLM brings, where it may not be installed."""

from __future__ import annotations

from tenantry.engine.reader import Reader
from tenantry.engine.reads import if_served
from tenantry.model.kinds import Kind, Object


async def listed(kind: Kind, reader: Reader, namespace: str = "") -> list[Object]:
    """The objects of a kind; none where OLM is not installed."""
    return await if_served(kind, reader, reader.list(kind, namespace)) or []
