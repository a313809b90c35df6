"""What the deliveries of Tenants bring to their function."""

from __future__ import annotations

from release_provisioning import NAME
from tenantry.model.descriptor import Finalizer, Part, Service, Source, Trigger, Watch
from tenantry.model.flux.names import MADE_FOR_TENANT, TENANCY_PROFILE, TENANT
from tenantry.model.flux.onboarding import GIT_REPOSITORY, KUSTOMIZATION
from tenantry.model.flux.tenant import DELIVERY_FINALIZER
from tenantry.model.kinds import ROLE_BINDING

FLUX = "flux-tenants"
"""The folder of ``knative/`` for what comes with Flux: a source ends while one of its kinds is not served."""
_OF = f"{NAME}-tenants"
_MARK = ("watch", _OF)
_MADE = (GIT_REPOSITORY, KUSTOMIZATION)

TENANT_DELIVERIES = Service(
    _OF,
    NAME,
    "tenants",
    ("tenants",),
    sources=(
        Source(_OF, (Watch(TENANT), Watch(TENANCY_PROFILE), Watch(ROLE_BINDING, MADE_FOR_TENANT)), whole=True, mark=_MARK),
        Source(f"{_OF}-flux", tuple(Watch(kind, MADE_FOR_TENANT) for kind in _MADE), whole=True, mark=_MARK, folder=FLUX),
    ),
    triggers=(Trigger(_OF, mark=_MARK),),
    reads=(TENANT, TENANCY_PROFILE, ROLE_BINDING, *_MADE),
    writes=(TENANT, *_MADE),
    finalizers=(Finalizer(TENANT, DELIVERY_FINALIZER),),
)
part = Part(TENANT_DELIVERIES)
"""What it makes stays when it is uninstalled: teams go on delivering."""
