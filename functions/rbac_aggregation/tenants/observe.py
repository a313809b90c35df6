"""Reads for the rights of Tenants."""

from __future__ import annotations

import asyncio

from rbac_aggregation.tenants.plan import TenantRights, stands_in
from tenantry.engine.flux import shared_profile
from tenantry.engine.reader import Reader
from tenantry.engine.reads import if_served
from tenantry.model.flux.names import MADE_FOR_TENANT, TENANT
from tenantry.model.flux.onboarding import KUSTOMIZATION
from tenantry.model.flux.tenant import DELIVERY_MANAGER, defaults_of, is_kept_for, tenant_of, version_of_tenant
from tenantry.model.kinds import ROLE_BINDING, SERVICE_ACCOUNT, key_of


async def observe_rights(name: str, reader: Reader) -> TenantRights:
    """Read a Tenant, or what one of this name has left."""
    marks = {MADE_FOR_TENANT: name}
    live, profile, accounts, bindings, delivering = await asyncio.gather(
        if_served(TENANT, reader, reader.get(TENANT, name, verify=version_of_tenant)),
        shared_profile(reader),
        reader.list(SERVICE_ACCOUNT, labels=marks),
        reader.list(ROLE_BINDING, labels=marks),
        if_served(KUSTOMIZATION, reader, reader.list(KUSTOMIZATION, labels=marks)),
    )
    tenant = tenant_of(live, defaults_of(profile)) if live is not None else None
    found = {key_of(each): each for each in bindings}
    if tenant is not None and not tenant.deleted:
        there = {key.namespace for key in found if key.name == tenant.names.binding}
        missing = [each for each in stands_in(tenant, accounts) if each not in there]
        read = await asyncio.gather(*(reader.get(ROLE_BINDING, tenant.names.binding, each) for each in missing))
        found |= {key_of(each): each for each in read if each is not None}
    kept = (each for each in delivering or () if is_kept_for(each, name, DELIVERY_MANAGER))
    places = frozenset(each["metadata"]["namespace"] for each in kept)
    return TenantRights(name, tenant, tuple(accounts), found, places)
