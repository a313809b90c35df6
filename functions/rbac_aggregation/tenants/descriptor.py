"""What the rights of Tenants bring to their function.

They are a duty of their own: who binds any ClusterRole in namespaces of Tenants needs no right on releases.
"""

from __future__ import annotations

from rbac_aggregation import NAME
from tenantry.model.descriptor import Finalizer, Part, Service, Source, Trigger, Watch
from tenantry.model.flux.names import MADE_FOR_TENANT, TENANCY_PROFILE, TENANT
from tenantry.model.flux.onboarding import KUSTOMIZATION
from tenantry.model.flux.tenant import RIGHTS_FINALIZER
from tenantry.model.kinds import ROLE_BINDING, SERVICE_ACCOUNT

_OF = f"{NAME}-tenants"
_MARK = ("watch", _OF)

TENANT_RIGHTS = Service(
    _OF,
    NAME,
    "tenants",
    ("tenants",),
    sources=(
        Source(
            _OF,
            (Watch(TENANT), Watch(TENANCY_PROFILE), *(Watch(kind, MADE_FOR_TENANT) for kind in (SERVICE_ACCOUNT, ROLE_BINDING))),
            whole=True,
            mark=_MARK,
        ),
    ),
    triggers=(Trigger(_OF, mark=_MARK),),
    reads=(TENANT, TENANCY_PROFILE, SERVICE_ACCOUNT, ROLE_BINDING, KUSTOMIZATION),
    writes=(TENANT, ROLE_BINDING),
    finalizers=(Finalizer(TENANT, RIGHTS_FINALIZER),),
)
part = Part(TENANT_RIGHTS)
"""What it makes stays when it is uninstalled: teams go on delivering."""
