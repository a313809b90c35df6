"""What lock-enforcement is."""

from __future__ import annotations

from tenantry.model.descriptor import Command, Descriptor, Service

LOCKS = Service("lock-enforcement", "lock-enforcement")
descriptor = Descriptor(
    (LOCKS,),
    (Command("lock", "lock_enforcement.command", "Locks on Helm releases: list, show, pause, resume, diff."),),
)
