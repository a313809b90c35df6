"""What scopes bring to their function."""

from __future__ import annotations

from scope_binding import NAME
from scope_binding.scopes.names import SCOPED, TEMPLATED
from tenantry.model.descriptor import EventsOf, OwnerMark, Part, Product, Service, Source, Tells, Trigger, Watch
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    NAMESPACE,
    ROLE_BINDING,
    SCOPE_INSTANCE,
    SCOPE_INSTANCE_FRAMEWORK,
    SCOPE_TEMPLATE,
    SCOPE_TEMPLATE_FRAMEWORK,
)
from tenantry.model.names import SCOPE_INSTANCE_UID, SCOPE_TEMPLATE_UID

_FAMILIES = (SCOPE_TEMPLATE, SCOPE_INSTANCE, SCOPE_TEMPLATE_FRAMEWORK, SCOPE_INSTANCE_FRAMEWORK)
_WATCHED = (*_FAMILIES, NAMESPACE, CLUSTER_ROLE)

SCOPES = Service(
    NAME,
    NAME,
    "scopes",
    ("scopes",),
    sources=(
        Source(f"{NAME}-cluster", (*map(Watch, _WATCHED), Watch(CLUSTER_ROLE_BINDING, SCOPE_INSTANCE_UID)), whole=True),
        Source(f"{NAME}-owned", (Watch(ROLE_BINDING, SCOPE_INSTANCE_UID),), whole=True),
    ),
    triggers=(
        Trigger(f"{NAME}-cluster", tuple(EventsOf(kind, NAME) for kind in (*_WATCHED, CLUSTER_ROLE_BINDING))),
        Trigger(f"{NAME}-owned", (EventsOf(ROLE_BINDING, NAME),)),
    ),
    memory_mib=256,
)
part = Part(
    SCOPES,
    settings=("global.cattle.projectLabel", "scopeBinding"),
    makes=(
        Product(ROLE_BINDING, SCOPE_INSTANCE_UID),
        Product(CLUSTER_ROLE_BINDING, SCOPE_INSTANCE_UID),
        Product(CLUSTER_ROLE, SCOPE_TEMPLATE_UID),
    ),
    tells=(
        *(Tells(kind, TEMPLATED) for kind in (SCOPE_TEMPLATE, SCOPE_TEMPLATE_FRAMEWORK)),
        *(Tells(kind, SCOPED) for kind in (SCOPE_INSTANCE, SCOPE_INSTANCE_FRAMEWORK)),
    ),
    marks=(OwnerMark("scope", SCOPE_INSTANCE_UID, uid_of=(SCOPE_INSTANCE, SCOPE_INSTANCE_FRAMEWORK)),),
)
