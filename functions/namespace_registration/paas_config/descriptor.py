"""What PaasConfigs and shared quotas bring to their function."""

from __future__ import annotations

from namespace_registration import NAME
from tenantry.model.descriptor import Command, EventsOf, Part, Service, Source, Tells, Trigger, Watch
from tenantry.model.paas.names import ACTIVE, CLUSTER_RESOURCE_QUOTA, HAS_ERRORS, PAAS, PAAS_CONFIG, WARNINGS

_PAAS = f"{NAME}-paas"
_QUOTAS = f"{NAME}-quotas"

CONFIGS = Service(
    NAME,
    NAME,
    sources=(
        Source(_PAAS, (Watch(PAAS), Watch(PAAS_CONFIG))),
        Source(_QUOTAS, (Watch(CLUSTER_RESOURCE_QUOTA),), folder="openshift"),
    ),
    triggers=(
        Trigger(_PAAS, (EventsOf(PAAS, NAME), EventsOf(PAAS_CONFIG, NAME))),
        Trigger(_QUOTAS, (EventsOf(CLUSTER_RESOURCE_QUOTA, NAME),), folder="openshift"),
    ),
)
part = Part(
    CONFIGS,
    commands=(Command("paas", "namespace_registration.command", "Paas: show, check, convert, adopt."),),
    tells=(
        Tells(PAAS_CONFIG, ACTIVE),
        Tells(PAAS_CONFIG, HAS_ERRORS, bad="True"),
        Tells(PAAS_CONFIG, WARNINGS, bad="True", warns=True),
    ),
)
