"""What locks bring to their function."""

from __future__ import annotations

from lock_enforcement import NAME
from lock_enforcement.sources.descriptor import LOCKED, RECORDS
from tenantry.model.descriptor import Command, EventsOf, Finalizer, Part, Service, Tells, Trigger
from tenantry.model.kinds import HELM_RELEASE
from tenantry.model.names import LOCK_FINALIZER

LOCKS = Service(
    NAME,
    NAME,
    "releases",
    ("releases",),
    triggers=(
        Trigger(f"{NAME}-releases", (EventsOf(HELM_RELEASE, "release-provisioning"),)),
        Trigger(f"{NAME}-records", mark=RECORDS),
        Trigger(f"{NAME}-locked", mark=LOCKED),
    ),
    finalizers=(Finalizer(HELM_RELEASE, LOCK_FINALIZER),),
    memory_mib=256,
)
part = Part(
    LOCKS,
    settings=(
        "global.cattle.projectLabel",
        *(f"helmProjectOperator.{key}" for key in ("systemNamespace", "controllerName", "helmLocker")),
    ),
    commands=(Command("lock", "lock_enforcement.command", "Locks on Helm releases: list, show, pause, resume, diff."),),
    tells=(
        # a pause is asked for, and the others end by themselves
        Tells(HELM_RELEASE, "Locked", wanted=("Paused", "HelmAtWork", "GracePeriod")),
        Tells(HELM_RELEASE, "Complete"),
    ),
)
