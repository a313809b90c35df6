"""The wiring of the deliveries of Tenants: which owners an event leads to, and what a sweep reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from release_provisioning.tenants.observe import observe_delivery
from release_provisioning.tenants.plan import TenantDelivery, doubtful, plan_delivery, report_delivery
from tenantry.api.errors import KindNotServed
from tenantry.engine.reader import Reader
from tenantry.engine.snapshot import Prefetch
from tenantry.engine.unit import EVERY, Handler, Owner, Stages, Unit, stage
from tenantry.model.flux.names import MADE_FOR_TENANT, TENANCY_PROFILE, TENANT
from tenantry.model.flux.onboarding import GIT_REPOSITORY, KUSTOMIZATION
from tenantry.model.kinds import ROLE_BINDING, Key, labels_of
from tenantry.serving import Settings

TENANT_OWNER = "tenant"
_MARK = ((MADE_FOR_TENANT, ""),)
_KINDS = {each.kind: each for each in (GIT_REPOSITORY, KUSTOMIZATION, ROLE_BINDING)}


class TenantDeliveries(Unit):
    """The unit ``tenants`` of release-provisioning."""

    name = "tenants"
    kinds = frozenset({TENANT, TENANCY_PROFILE, GIT_REPOSITORY, KUSTOMIZATION, ROLE_BINDING})
    ours = frozenset({TENANT})

    def __init__(self) -> None:
        self.handlers = {
            TENANT_OWNER: Handler[TenantDelivery](
                observe=lambda owner, reader: observe_delivery(owner.name, reader),
                plan=plan_delivery,
                report=report_delivery,
                doubtful=doubtful,
                step_by_step=True,  # a source is marked, then deleted
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
        try:
            live = await reader.get(_KINDS[key.kind], key.name, key.namespace)
        except KindNotServed:
            live = None
        names = (hint.get(MADE_FOR_TENANT, ""), labels_of(live).get(MADE_FOR_TENANT, ""))
        return stage(Owner(TENANT_OWNER, name) for name in names if name)

    def prefetch(self) -> Sequence[Prefetch]:
        """All Tenants, and what is made for them."""
        declared = (Prefetch(kind, optional=True) for kind in (TENANT, TENANCY_PROFILE))
        made = (Prefetch(kind, _MARK, optional=True) for kind in (GIT_REPOSITORY, KUSTOMIZATION))
        return [*declared, *made, Prefetch(ROLE_BINDING, _MARK)]

    async def sweep(self, reader: Reader) -> Sequence[Owner]:
        """Every Tenant, and those that are gone and left something."""
        names = [each["metadata"]["name"] for each in await reader.list(TENANT)]
        for kind in (GIT_REPOSITORY, KUSTOMIZATION):
            names += [labels_of(each)[MADE_FOR_TENANT] for each in await reader.list(kind, labels=dict(_MARK))]
        owners = (Owner(TENANT_OWNER, name) for name in dict.fromkeys(names))
        return [each for each in owners if self.accepts(each)]


def made(_: Settings) -> TenantDeliveries:
    """The unit of a process."""
    return TenantDeliveries()
