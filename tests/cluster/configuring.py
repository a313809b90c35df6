"""PaasConfigs that a policy or the schema refuses, and such that get in all the same."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from paasing import CONFIG, Paasing
from times import POLICY_S

from tenantry.api import Api
from tenantry.api.errors import AdmissionDenied, RefusedError
from tenantry.model.kinds import ADMISSION_POLICY_BINDING, Object
from tenantry.model.paas.names import PAAS_CONFIG
from tenantry.testing import eventually
from tenantry.testing.objects import obj

CONFIGURED = "tenantry-guard-paas-config"
"""The policy that refuses what makes no sense in a PaasConfig."""
ONE_CONFIG = "tenantry-guard-paas-config-one"
"""The policy that refuses a second PaasConfig."""


@asynccontextmanager
async def got_in(admin: Api, policy: str) -> AsyncIterator[None]:
    """For as long as the block lasts a policy is away: what is made in it got in."""
    binding = await admin.get(ADMISSION_POLICY_BINDING, policy)
    if binding is None:  # this run leaves it out
        yield
        return
    await admin.delete(ADMISSION_POLICY_BINDING, policy)
    try:
        yield
    finally:
        metadata = {part: binding["metadata"].get(part) for part in ("name", "labels")}
        await admin.create(ADMISSION_POLICY_BINDING, {**binding, "metadata": metadata})


async def second(paasing: Paasing, name: str, **spec: Any) -> Object:
    """Make another PaasConfig although a policy refuses it."""

    async def create() -> Object:
        try:
            return await paasing.admin.create(PAAS_CONFIG, obj(PAAS_CONFIG, name, spec={**CONFIG, **spec}))
        except AdmissionDenied:
            return {}

    async with got_in(paasing.admin, ONE_CONFIG):
        return await eventually(create, within=POLICY_S, what="a second PaasConfig gets in")


async def refused(paasing: Paasing, name: str, words: str, **spec: Any) -> None:
    """Wait until a new PaasConfig is refused with these words: a policy comes into force after a moment."""

    async def attempt() -> str:
        try:
            await paasing.admin.create(PAAS_CONFIG, obj(PAAS_CONFIG, name, spec=spec), dry_run=True)
        except RefusedError as error:
            return error.message
        return ""

    await eventually(attempt, lambda said: words in said, within=POLICY_S, what=f"refused: {words}")
