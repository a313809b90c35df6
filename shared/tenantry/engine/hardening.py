"""Reads of what hardens a namespace; none where hardening is off."""

from __future__ import annotations

import asyncio

from tenantry.engine.reader import Reader
from tenantry.engine.snapshot import Prefetch
from tenantry.model.config import Config
from tenantry.model.hardening import HARDENED_BY, Hardening
from tenantry.model.names import OPERATED


async def observe_hardening(namespace: str, config: Config, reader: Reader) -> Hardening:
    """Read what hardens a namespace."""
    if not config.helm_project_operator.hardened_namespaces.enabled:
        return Hardening()
    return Hardening(*await asyncio.gather(*(reader.get(kind, name, namespace) for kind, name in HARDENED_BY.items())))


def hardening_lists(config: Config) -> list[Prefetch]:
    """What hardens any namespace, for a sweep."""
    enabled = config.helm_project_operator.hardened_namespaces.enabled
    return [Prefetch(kind, ((OPERATED, "true"),), name) for kind, name in HARDENED_BY.items() if enabled]
