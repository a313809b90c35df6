"""The wiring of Tenants: which kinds concern them, which owners an event leads to, and what a sweep reads.

A Tenant that changes or goes may set a namespace free: those that wait for one are looked at after it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from namespace_registration.tenants.observe import every_tenant, observe_tenant
from namespace_registration.tenants.plan import TenantSeen, plan_tenant, report_tenant
from tenantry.engine.reader import Reader
from tenantry.engine.snapshot import Prefetch
from tenantry.engine.unit import EVERY, Handler, Owner, Stages, Unit, stage
from tenantry.model.conditions import find_condition
from tenantry.model.flux.names import MADE_FOR_TENANT, TENANCY_PROFILE, TENANT
from tenantry.model.flux.tenant import DeclaredTenant, TenantDefaults
from tenantry.model.flux.tenant_status import READY
from tenantry.model.kinds import NAMESPACE, ROLE_BINDING, SERVICE_ACCOUNT, Key, labels_of
from tenantry.serving import Settings

TENANT_OWNER = "tenant"
NONE_FOR_S = 5.0
"""So long a cluster that had no Tenant is taken to have none; the event of the first one is a run of its own."""
_MARK = ((MADE_FOR_TENANT, ""),)


class TenantNamespaces(Unit):
    """The unit ``tenants`` of namespace-registration."""

    name = "tenants"
    kinds = frozenset({TENANT, TENANCY_PROFILE, NAMESPACE, SERVICE_ACCOUNT, ROLE_BINDING})
    ours = frozenset({TENANT})

    def __init__(self) -> None:
        self._none_until = 0.0  # a hint that saves reads: there was no Tenant a moment ago
        self.handlers = {
            TENANT_OWNER: Handler[TenantSeen](
                observe=lambda owner, reader: observe_tenant(owner.name, reader),
                plan=plan_tenant,
                report=report_tenant,
                rests_on_reads=True,
                pause_s=0.1,  # its own writes come back as an event each
            )
        }

    async def owners(self, key: Key, hint: Mapping[str, str], reader: Reader) -> Stages:
        """The Tenants that a key concerns; a profile concerns every one."""
        if key.kind == TENANCY_PROFILE.kind:
            return EVERY
        marked = hint.get(MADE_FOR_TENANT, "")
        if key.kind == TENANT.kind:
            self._none_until = 0.0
            waiting = (Owner(TENANT_OWNER, each.name) for each in await self._every(reader) if _waits(each))
            own = Owner(TENANT_OWNER, key.name)
            return [[own], *stage(each for each in waiting if each != own)]
        names = [marked]
        if key.kind == NAMESPACE.kind and (marked or time.monotonic() >= self._none_until):
            live = await reader.get(NAMESPACE, key.name)
            names.append(labels_of(live).get(MADE_FOR_TENANT, ""))
            names += [each.name for each in await self._every(reader) if key.name in each.namespaces]
        return stage(Owner(TENANT_OWNER, name) for name in names if name)

    async def _every(self, reader: Reader) -> Sequence[DeclaredTenant]:
        """All Tenants, as they are declared."""
        every = await every_tenant(reader, TenantDefaults())
        self._none_until = 0.0 if every else time.monotonic() + NONE_FOR_S
        return every

    def prefetch(self) -> Sequence[Prefetch]:
        """All Tenants and namespaces, and what is made for Tenants."""
        declared = (Prefetch(kind, optional=True) for kind in (TENANT, TENANCY_PROFILE))
        return [*declared, Prefetch(NAMESPACE), Prefetch(SERVICE_ACCOUNT, _MARK), Prefetch(ROLE_BINDING, _MARK)]

    async def sweep(self, reader: Reader) -> Sequence[Owner]:
        """Every Tenant, and those that are gone and left something."""
        names = [each["metadata"]["name"] for each in await reader.list(TENANT)]
        for kind in (NAMESPACE, SERVICE_ACCOUNT):
            names += [labels_of(each)[MADE_FOR_TENANT] for each in await reader.list(kind, labels=dict(_MARK))]
        owners = (Owner(TENANT_OWNER, name) for name in dict.fromkeys(names))
        return [each for each in owners if self.accepts(each)]


def _waits(tenant: DeclaredTenant) -> bool:
    """Whether a Tenant lacks a namespace that somebody has."""
    return (find_condition(tenant.live, READY) or {}).get("reason") == "NamespaceConflict"


def made(_: Settings) -> TenantNamespaces:
    """The unit of a process."""
    return TenantNamespaces()
