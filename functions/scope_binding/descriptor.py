"""What scope-binding is."""

from __future__ import annotations

from tenantry.model.descriptor import Command, Descriptor, EventsOf, Finalizer, Product, Service, Source, Trigger, Watch
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    CLUSTER_SERVICE_VERSION,
    CONFIG_MAP,
    MUTATING_WEBHOOKS,
    NAMESPACE,
    NAMESPACE_SCOPE,
    OPERATOR_GROUP,
    POD,
    ROLE,
    ROLE_BINDING,
    SCOPE_INSTANCE,
    SCOPE_INSTANCE_FRAMEWORK,
    SCOPE_TEMPLATE,
    SCOPE_TEMPLATE_FRAMEWORK,
    SERVICE_ACCOUNT,
    VALIDATING_WEBHOOKS,
    Kind,
)
from tenantry.model.names import (
    GIVEN_FROM,
    NAMESPACE_LIST,
    NAMESPACE_SCOPE_FINALIZER,
    OLM_OWNER_NAMESPACE,
    SCOPE_GENERATED,
    SCOPE_INSTANCE_UID,
    SCOPE_TEMPLATE_UID,
)

NAME = "scope-binding"
_FROM_NAMESPACES = f"{NAME}-namespace-scopes"
_FROM_OLM = f"{NAME}-olm"
_FAMILIES = (SCOPE_TEMPLATE, SCOPE_INSTANCE, SCOPE_TEMPLATE_FRAMEWORK, SCOPE_INSTANCE_FRAMEWORK)
_WEBHOOKS = (VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS)


def _trigger(name: str, *kinds: Kind) -> Trigger:
    return Trigger(name, tuple(EventsOf(kind, NAME) for kind in kinds))


SCOPES = Service(
    NAME,
    NAME,
    "scopes",
    "scopes",
    sources=(
        Source(
            f"{NAME}-cluster",
            (*map(Watch, (*_FAMILIES, NAMESPACE, CLUSTER_ROLE)), Watch(CLUSTER_ROLE_BINDING, SCOPE_INSTANCE_UID)),
            whole=True,
        ),
        Source(f"{NAME}-owned", (Watch(ROLE_BINDING, SCOPE_INSTANCE_UID),), whole=True),
    ),
    triggers=(
        _trigger(f"{NAME}-cluster", *_FAMILIES, NAMESPACE, CLUSTER_ROLE, CLUSTER_ROLE_BINDING),
        _trigger(f"{NAME}-owned", ROLE_BINDING),
    ),
    memory_mib=256,
)
NAMESPACE_SCOPES = Service(
    _FROM_NAMESPACES,
    NAME,
    "namespace-scopes",
    "namespace-scopes",
    sources=(
        Source(
            _FROM_NAMESPACES,
            (
                Watch(NAMESPACE_SCOPE),
                Watch(CONFIG_MAP, f"{NAMESPACE_LIST}=true"),
                Watch(SERVICE_ACCOUNT),
                Watch(POD, "intent=projected"),
                Watch(ROLE),
                Watch(ROLE_BINDING, f"!{SCOPE_INSTANCE_UID}"),
            ),
        ),
        Source(f"{NAME}-webhooks", tuple(Watch(kind, OLM_OWNER_NAMESPACE) for kind in _WEBHOOKS)),
    ),
    triggers=(
        _trigger(
            _FROM_NAMESPACES,
            *(NAMESPACE_SCOPE, CONFIG_MAP, SERVICE_ACCOUNT, POD, ROLE),
            *_WEBHOOKS,
            *(ROLE_BINDING, NAMESPACE, CLUSTER_SERVICE_VERSION),
        ),
    ),
    finalizers=(Finalizer(NAMESPACE_SCOPE, NAMESPACE_SCOPE_FINALIZER, shared=True),),
    memory_mib=256,
)
OLM = Service(
    _FROM_OLM,
    NAME,
    "olm",
    "olm",
    sources=(Source(_FROM_OLM, (Watch(CLUSTER_SERVICE_VERSION), Watch(OPERATOR_GROUP)), whole=True),),
    triggers=(_trigger(_FROM_OLM, CLUSTER_SERVICE_VERSION, OPERATOR_GROUP, SCOPE_TEMPLATE, SCOPE_INSTANCE),),
    rights_folder="olm",
)
descriptor = Descriptor(
    (SCOPES, NAMESPACE_SCOPES, OLM),
    "7-59/10 * * * *",
    settings=("scopeBinding",),
    makes=(
        Product(SCOPE_INSTANCE, SCOPE_GENERATED),
        Product(SCOPE_TEMPLATE, SCOPE_GENERATED),
        Product(ROLE_BINDING, SCOPE_INSTANCE_UID),
        Product(CLUSTER_ROLE_BINDING, SCOPE_INSTANCE_UID),
        Product(CLUSTER_ROLE, SCOPE_TEMPLATE_UID),
        Product(ROLE_BINDING, GIVEN_FROM),
        Product(ROLE, GIVEN_FROM),
    ),
    commands=(
        Command("authorize-namespace", "scope_binding.command", "Let the operators of another namespace act in a namespace."),
    ),
)
