"""Reads for Tenants: the Tenant and all others, the profile, and what is made for it."""

from __future__ import annotations

import asyncio

from namespace_registration.tenants.plan import TenantSeen
from tenantry.engine.flux import shared_profile
from tenantry.engine.reader import Reader
from tenantry.engine.reads import by_name, if_served
from tenantry.model.flux.names import MADE_FOR_TENANT, TENANT
from tenantry.model.flux.tenant import DeclaredTenant, TenantDefaults, defaults_of, tenant_of, version_of_tenant
from tenantry.model.kinds import NAMESPACE, ROLE_BINDING, SERVICE_ACCOUNT, Object


async def tenant_defaults(reader: Reader) -> TenantDefaults:
    """What the profile says of Tenants."""
    return defaults_of(await shared_profile(reader))


async def every_tenant(reader: Reader, defaults: TenantDefaults) -> tuple[DeclaredTenant, ...]:
    """All of them."""
    found = await if_served(TENANT, reader, reader.list_shared(TENANT)) or ()
    return tuple(tenant_of(each, defaults) for each in found)


async def observe_tenant(name: str, reader: Reader) -> TenantSeen:
    """Read a Tenant, or what one of this name has left."""
    marks = {MADE_FOR_TENANT: name}
    live, defaults, labelled, accounts, bindings = await asyncio.gather(
        if_served(TENANT, reader, reader.get(TENANT, name, verify=version_of_tenant)),
        tenant_defaults(reader),
        reader.list(NAMESPACE, labels=marks),
        reader.list(SERVICE_ACCOUNT, labels=marks),
        reader.list(ROLE_BINDING, labels=marks),
    )
    tenant = tenant_of(live, defaults) if live is not None else None
    namespaces: dict[str, Object | None] = {each["metadata"]["name"]: each for each in labelled}
    # Who else wrote labels of those that leave only a read of each tells.
    leave = [each for each in namespaces if tenant is None or tenant.deleted or each not in tenant.namespaces]
    namespaces |= await by_name(NAMESPACE, leave, reader)
    found = {(each["metadata"]["namespace"], each["metadata"]["name"]): each for each in accounts}
    others: tuple[DeclaredTenant, ...] = ()
    if tenant is not None and not tenant.deleted:
        others = await every_tenant(reader, defaults)
        namespaces |= await by_name(NAMESPACE, tenant.namespaces, reader)
        missing = [each for each in tenant.namespaces if (each, tenant.account) not in found and namespaces[each] is not None]
        read = await asyncio.gather(*(reader.get(SERVICE_ACCOUNT, tenant.account, each) for each in missing))
        found |= {(where, tenant.account): each for where, each in zip(missing, read, strict=True) if each is not None}
    ordered = tuple(found[each] for each in sorted(found))
    return TenantSeen(name, tenant, defaults, others, namespaces, ordered, tuple(bindings))
