"""What scopes of OLM's objects bring to their function."""

from __future__ import annotations

from scope_binding import NAME
from tenantry.model.descriptor import EventsOf, Part, Product, Service, Source, Trigger, Watch
from tenantry.model.kinds import CLUSTER_SERVICE_VERSION, OPERATOR_GROUP, SCOPE_INSTANCE, SCOPE_TEMPLATE
from tenantry.model.names import SCOPE_GENERATED

_FROM_OLM = f"{NAME}-olm"
_WAKING = (CLUSTER_SERVICE_VERSION, OPERATOR_GROUP, SCOPE_TEMPLATE, SCOPE_INSTANCE)

OLM = Service(
    _FROM_OLM,
    NAME,
    "olm",
    ("olm",),
    sources=(Source(_FROM_OLM, (Watch(CLUSTER_SERVICE_VERSION), Watch(OPERATOR_GROUP)), whole=True),),
    triggers=(Trigger(_FROM_OLM, tuple(EventsOf(kind, NAME) for kind in _WAKING)),),
    rights_folder="olm",
)
part = Part(OLM, makes=(Product(SCOPE_INSTANCE, SCOPE_GENERATED), Product(SCOPE_TEMPLATE, SCOPE_GENERATED)))
