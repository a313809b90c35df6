"""Reads for Flux tenancy that several functions make: the TenancyProfile."""

from __future__ import annotations

from tenantry.engine.reader import Reader
from tenantry.engine.reads import if_served
from tenantry.model.flux.names import DEFAULT, TENANCY_PROFILE
from tenantry.model.kinds import Object


async def shared_profile(reader: Reader) -> Object | None:
    """The TenancyProfile, read together with the other runs that want it now; without one nothing is enforced."""
    return await if_served(TENANCY_PROFILE, reader, reader.get_shared(TENANCY_PROFILE, DEFAULT))
