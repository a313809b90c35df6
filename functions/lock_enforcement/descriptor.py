"""What lock-enforcement is."""

from __future__ import annotations

from tenantry.model.descriptor import Command, Descriptor, EventsOf, Finalizer, Product, Service, Source, Trigger, Watch
from tenantry.model.kinds import API_SERVER_SOURCE, CONFIG_MAP, HELM_RELEASE, SECRET
from tenantry.model.names import LOCK_FINALIZER

NAME = "lock-enforcement"
ACCOUNT = "tenantry-lock-source"
"""Of the sources, also of those that the function makes."""
RECORDS = ("locked", "records")
LOCKED = ("locked", "true")
"""The extension attribute on every event of the sources that the function makes: what its Trigger asks for."""

LOCKS = Service(
    NAME,
    NAME,
    sources=(
        Source(f"{NAME}-records", (Watch(SECRET, "owner=helm"), Watch(CONFIG_MAP, "owner=helm")), mark=RECORDS, account=ACCOUNT),
        Source(f"{NAME}-sources", (Watch(API_SERVER_SOURCE),), account=ACCOUNT, own_namespace=True),
    ),
    triggers=(
        Trigger(f"{NAME}-releases", (EventsOf(HELM_RELEASE, "release-provisioning"),)),
        Trigger(f"{NAME}-records", mark=RECORDS),
        Trigger(f"{NAME}-sources", (EventsOf(API_SERVER_SOURCE, NAME),)),
        Trigger(f"{NAME}-locked", mark=LOCKED),
    ),
    finalizers=(Finalizer(HELM_RELEASE, LOCK_FINALIZER),),
)
descriptor = Descriptor(
    (LOCKS,),
    "1-59/5 * * * *",
    settings=tuple(f"helmProjectOperator.{key}" for key in ("systemNamespace", "controllerName", "helmLocker")),
    makes=(Product(API_SERVER_SOURCE, f"app.kubernetes.io/name={NAME}"),),
    commands=(Command("lock", "lock_enforcement.command", "Locks on Helm releases: list, show, pause, resume, diff."),),
)
