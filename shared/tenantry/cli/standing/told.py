"""What `tenantry up` on this machine tells of itself, where the kit is installed; else that nobody can ask it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tenantry.api import Api
from tenantry.api.errors import RefusedError
from tenantry.cli import has_kit


@dataclass(frozen=True, slots=True)
class Told:
    """One `tenantry up`: ``document`` is as `tenantry.local.told` has it, or empty, and ``why`` says why."""

    holder: str
    document: Mapping[str, Any]
    why: str = ""


async def here(api: Api, unread: dict[str, str]) -> tuple[Told, ...]:
    """Each `tenantry up` that serves the cluster; none in a cluster that runs the functions itself."""
    if not has_kit():
        return ()
    from tenantry.local.told import told_of

    try:
        return tuple(Told(each.holder, each.document, each.why) for each in await told_of(api))
    except RefusedError as error:
        unread["leases of `tenantry up`"] = " ".join(error.message.split())
        return ()
