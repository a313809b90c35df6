"""Reads for the deliveries of Tenants."""

from __future__ import annotations

import asyncio

from release_provisioning.tenants.plan import TenantDelivery, binds, wanted_of
from tenantry.engine.flux import shared_profile
from tenantry.engine.reader import Reader
from tenantry.engine.reads import if_served
from tenantry.model.flux.names import MADE_FOR_TENANT, TENANT
from tenantry.model.flux.onboarding import GIT_REPOSITORY, KUSTOMIZATION
from tenantry.model.flux.tenant import defaults_of, tenant_of, version_of_tenant
from tenantry.model.kinds import ROLE_BINDING, key_of


async def observe_delivery(name: str, reader: Reader) -> TenantDelivery:
    """Read a Tenant, or what one of this name has left."""
    marks = {MADE_FOR_TENANT: name}
    live, profile, sources, deliveries = await asyncio.gather(
        if_served(TENANT, reader, reader.get(TENANT, name, verify=version_of_tenant)),
        shared_profile(reader),
        if_served(GIT_REPOSITORY, reader, reader.list(GIT_REPOSITORY, labels=marks)),
        if_served(KUSTOMIZATION, reader, reader.list(KUSTOMIZATION, labels=marks)),
    )
    tenant = tenant_of(live, defaults_of(profile)) if live is not None else None
    served = sources is not None and deliveries is not None
    made = {key_of(each): each for each in (*(sources or ()), *(deliveries or ()))}
    wanted = wanted_of(tenant) if tenant is not None else []
    bound = False
    if tenant is not None and wanted:
        place = tenant.namespaces[0]
        bound = binds(await reader.get(ROLE_BINDING, tenant.names.binding, place), tenant)
        for each, kind in zip(wanted, (GIT_REPOSITORY, KUSTOMIZATION), strict=True):
            if key_of(each) in made:
                continue
            found = await if_served(kind, reader, reader.get(kind, name, place))
            made |= {key_of(each): found} if found is not None else {}
    return TenantDelivery(name, tenant, served, made, bound)
