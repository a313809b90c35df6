"""The local broker with the Triggers of a test, and an event for it."""

from __future__ import annotations

from typing import Any

from local_subscriber import Subscriber

from tenantry.local.broker import Broker
from tenantry.local.sinks import Poster
from tenantry.local.specs import BrokerSpec, TriggerSpec
from tenantry.model.event import Event

BROKER = {"name": "tenantry", "namespace": "system"}
QUICK = {"retry": 3, "backoffPolicy": "exponential", "backoffDelay": "PT0.02S", "timeout": "PT5S"}


def event(**changes: Any) -> Event:
    """An event, like all others but for these attributes."""
    fields = {"id": "1", "source": "/test", "type": "request", "datacontenttype": "application/json", "data": {"a": 1}}
    return Event(**{**fields, **changes})


def trigger(
    name: str = "all", *, delivery: dict[str, Any] | None = QUICK, filters: Any = None, dls: str = "", to: str = "function"
) -> TriggerSpec:
    """A Trigger, which sends to the function what its filters let through, and gives up after three more tries."""
    if dls and delivery is not None:
        delivery = {**delivery, "deadLetterSink": {"uri": dls}}
    document = {
        "name": name,
        "namespace": "system",
        "broker": "tenantry",
        "subscriber": {"ref": {"kind": "Service", "name": to}},
        **({"delivery": delivery} if delivery is not None else {}),
        **({"filters": filters} if filters is not None else {}),
    }
    return TriggerSpec.model_validate(document)


def broker_of(poster: Poster, function: Subscriber, *triggers: TriggerSpec, spec: Any = None, **options: Any) -> Broker:
    """A broker with these Triggers, which runs between ``async with`` and its end."""
    addresses = {"function": function.url, **options.pop("addresses", {})}
    return Broker(BrokerSpec.model_validate({**BROKER, **(spec or {})}), triggers, addresses=addresses, poster=poster, **options)
