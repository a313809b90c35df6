"""What the sources of locked kinds bring to their function."""

from __future__ import annotations

from lock_enforcement import NAME
from tenantry.model.descriptor import EventsOf, Part, Product, Service, Source, Trigger, Watch
from tenantry.model.kinds import API_SERVER_SOURCE, CONFIG_MAP, HELM_RELEASE, SECRET

ACCOUNT = "tenantry-lock-source"
"""Of the sources, also of those that the function makes."""
RECORDS = ("locked", "records")
LOCKED = ("locked", "true")
"""The extension attribute on every event of the sources that the function makes: what its Trigger asks for."""

SOURCES = Service(
    NAME,
    NAME,
    "releases",
    ("sources",),
    sources=(
        Source(f"{NAME}-records", (Watch(SECRET, "owner=helm"), Watch(CONFIG_MAP, "owner=helm")), mark=RECORDS, account=ACCOUNT),
        Source(f"{NAME}-sources", (Watch(API_SERVER_SOURCE),), account=ACCOUNT, own_namespace=True),
    ),
    triggers=(
        Trigger(f"{NAME}-releases", (EventsOf(HELM_RELEASE, "release-provisioning"),)),
        Trigger(f"{NAME}-records", mark=RECORDS),
        Trigger(f"{NAME}-sources", (EventsOf(API_SERVER_SOURCE, NAME),)),
    ),
)
part = Part(SOURCES, makes=(Product(API_SERVER_SOURCE, f"app.kubernetes.io/name={NAME}"),))
