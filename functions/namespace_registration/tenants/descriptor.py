"""What Tenants bring to their function."""

from __future__ import annotations

from namespace_registration import NAME
from tenantry.model.descriptor import EventsOf, Finalizer, OwnerMark, Part, Service, Source, Tells, Trigger, Watch
from tenantry.model.flux.names import MADE_FOR_TENANT, TENANCY_PROFILE, TENANT, TENANT_LABEL
from tenantry.model.flux.tenant import NAMESPACES_FINALIZER
from tenantry.model.flux.tenant_status import READY
from tenantry.model.kinds import NAMESPACE, ROLE_BINDING, SERVICE_ACCOUNT

_OF = f"{NAME}-tenants"
_MARK = ("watch", _OF)
"""Of its own: other Triggers hear of ServiceAccounts too."""

TENANT_NAMESPACES = Service(
    NAME,
    NAME,
    sources=(
        Source(
            _OF,
            (Watch(TENANT), Watch(TENANCY_PROFILE), *(Watch(kind, MADE_FOR_TENANT) for kind in (SERVICE_ACCOUNT, ROLE_BINDING))),
            whole=True,
            mark=_MARK,
        ),
    ),
    triggers=(
        Trigger(_OF, mark=_MARK),
        Trigger(f"{NAME}-cluster", (EventsOf(NAMESPACE, NAME),)),
    ),
    finalizers=(Finalizer(TENANT, NAMESPACES_FINALIZER),),
)
part = Part(
    TENANT_NAMESPACES,
    tells=(Tells(TENANT, READY),),  # what the other parts tell is joined into it
    marks=(OwnerMark("tenant", MADE_FOR_TENANT), OwnerMark("tenant", TENANT_LABEL)),
)
"""What it makes stays when it is uninstalled: namespaces of teams, and the accounts that deliver into them."""
