"""What NamespaceScopes bring to their function."""

from __future__ import annotations

from scope_binding import NAME
from tenantry.model.descriptor import (
    Command,
    EventsOf,
    Finalizer,
    OwnerMark,
    Part,
    Product,
    Service,
    Source,
    Tells,
    Trigger,
    Watch,
)
from tenantry.model.kinds import (
    CLUSTER_SERVICE_VERSION,
    CONFIG_MAP,
    MUTATING_WEBHOOKS,
    NAMESPACE,
    NAMESPACE_SCOPE,
    POD,
    ROLE,
    ROLE_BINDING,
    SERVICE_ACCOUNT,
    VALIDATING_WEBHOOKS,
)
from tenantry.model.names import (
    GIVEN_FROM,
    NAMESPACE_LIST,
    NAMESPACE_SCOPE_FINALIZER,
    OLM_OWNER_NAMESPACE,
    SCOPE_INSTANCE_UID,
)

_FROM_NAMESPACES = f"{NAME}-namespace-scopes"
_WEBHOOKS = (VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS)
_WAKING = (
    *(NAMESPACE_SCOPE, CONFIG_MAP, SERVICE_ACCOUNT, POD, ROLE),
    *_WEBHOOKS,
    *(ROLE_BINDING, NAMESPACE, CLUSTER_SERVICE_VERSION),
)

NAMESPACE_SCOPES = Service(
    _FROM_NAMESPACES,
    NAME,
    "namespace-scopes",
    ("namespace-scopes",),
    sources=(
        Source(
            _FROM_NAMESPACES,
            (
                Watch(NAMESPACE_SCOPE),
                Watch(CONFIG_MAP, f"{NAMESPACE_LIST}=true"),
                Watch(SERVICE_ACCOUNT),
                Watch(POD, "intent=projected"),
                Watch(ROLE),
            ),
        ),
        # whole: by its labels most of them concern nobody
        Source(f"{_FROM_NAMESPACES}-bindings", (Watch(ROLE_BINDING, f"!{SCOPE_INSTANCE_UID}"),), whole=True),
        Source(f"{NAME}-webhooks", tuple(Watch(kind, OLM_OWNER_NAMESPACE) for kind in _WEBHOOKS)),
    ),
    triggers=(Trigger(_FROM_NAMESPACES, tuple(EventsOf(kind, NAME) for kind in _WAKING)),),
    finalizers=(Finalizer(NAMESPACE_SCOPE, NAMESPACE_SCOPE_FINALIZER, shared=True),),
    memory_mib=256,
)
part = Part(
    NAMESPACE_SCOPES,
    makes=(Product(ROLE_BINDING, GIVEN_FROM), Product(ROLE, GIVEN_FROM)),
    tells=(Tells(NAMESPACE_SCOPE, "Ready"),),
    marks=(OwnerMark("namespace-scopes", GIVEN_FROM),),
    commands=(
        Command("authorize-namespace", "scope_binding.command", "Let the operators of another namespace act in a namespace."),
    ),
)
