"""What follows from a failed request, and from a lost race."""

from __future__ import annotations

import asyncio
import logging
import random

from tenantry.api import Api
from tenantry.api.errors import ApiError, Forbidden, KindNotServed, Unauthorized
from tenantry.engine import recorder
from tenantry.engine.verdict import Verdict, verdict_for
from tenantry.model.descriptor import Service

log = logging.getLogger("tenantry")

CONFLICT_PAUSE_S = 0.02


async def failed(error: ApiError, api: Api, service: Service) -> Verdict:
    """The verdict on a failed request, which is logged; of a missing right an Event tells besides."""
    level = logging.ERROR if isinstance(error, KindNotServed | Unauthorized) else logging.WARNING
    log.log(level, "%s: %s", type(error).__name__, error.message)
    verdict = verdict_for(error)
    if isinstance(error, Forbidden):
        await recorder.record_missing_right(api, service, verdict.reason)
    return verdict


async def step_aside(attempt: int) -> None:
    """After a lost race: let the other finish, the longer the more often it happened."""
    await asyncio.sleep(CONFLICT_PAUSE_S * 2**attempt * (0.5 + random.random()))  # noqa: S311 - jitter
