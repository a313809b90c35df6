"""The wiring of the rights of Tenants: which owners an event leads to, and what a sweep reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rbac_aggregation.tenants.observe import observe_rights
from rbac_aggregation.tenants.plan import TenantRights, doubtful, plan_rights, report_rights
from tenantry.engine.reader import Reader
from tenantry.engine.snapshot import Prefetch
from tenantry.engine.unit import EVERY, Handler, Owner, Stages, Unit, stage
from tenantry.model.flux.names import MADE_FOR_TENANT, TENANCY_PROFILE, TENANT
from tenantry.model.flux.onboarding import KUSTOMIZATION
from tenantry.model.kinds import ROLE_BINDING, SERVICE_ACCOUNT, Key, labels_of
from tenantry.serving import Settings

TENANT_OWNER = "tenant"
_MARK = ((MADE_FOR_TENANT, ""),)
_KINDS = {each.kind: each for each in (SERVICE_ACCOUNT, ROLE_BINDING)}


class TenantRightsUnit(Unit):
    """The unit ``tenants`` of rbac-aggregation."""

    name = "tenants"
    kinds = frozenset({TENANT, TENANCY_PROFILE, SERVICE_ACCOUNT, ROLE_BINDING})
    ours = frozenset({TENANT})

    def __init__(self) -> None:
        self.handlers = {
            TENANT_OWNER: Handler[TenantRights](
                observe=lambda owner, reader: observe_rights(owner.name, reader),
                plan=plan_rights,
                report=report_rights,
                doubtful=doubtful,
                rests_on_reads=True,
                pause_s=0.1,  # its own writes come back as an event each
            )
        }

    async def owners(self, key: Key, hint: Mapping[str, str], reader: Reader) -> Stages:
        """The Tenants that a key concerns; a profile concerns every one."""
        if key.kind == TENANCY_PROFILE.kind:
            return EVERY
        if key.kind == TENANT.kind:
            return [[Owner(TENANT_OWNER, key.name)]]
        live = await reader.get(_KINDS[key.kind], key.name, key.namespace)
        names = (hint.get(MADE_FOR_TENANT, ""), labels_of(live).get(MADE_FOR_TENANT, ""))
        return stage(Owner(TENANT_OWNER, name) for name in names if name)

    def prefetch(self) -> Sequence[Prefetch]:
        """All Tenants, and what is made for them."""
        optional = (Prefetch(TENANT, optional=True), Prefetch(TENANCY_PROFILE, optional=True))
        delivered = Prefetch(KUSTOMIZATION, _MARK, optional=True)
        return [*optional, Prefetch(SERVICE_ACCOUNT, _MARK), Prefetch(ROLE_BINDING, _MARK), delivered]

    async def sweep(self, reader: Reader) -> Sequence[Owner]:
        """Every Tenant, and those that are gone and left something."""
        names = [each["metadata"]["name"] for each in await reader.list(TENANT)]
        names += [labels_of(each)[MADE_FOR_TENANT] for each in await reader.list(ROLE_BINDING, labels=dict(_MARK))]
        owners = (Owner(TENANT_OWNER, name) for name in dict.fromkeys(names))
        return [each for each in owners if self.accepts(each)]


def made(_: Settings) -> TenantRightsUnit:
    """The unit of a process."""
    return TenantRightsUnit()
