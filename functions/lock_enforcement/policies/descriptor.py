"""What the look at policies brings to its function: it runs with access locks, and has no right to write a policy."""

from __future__ import annotations

from lock_enforcement import NAME
from lock_enforcement.access.descriptor import LOCKS
from tenantry.model.descriptor import Part, Service, Source, Tells, Trigger, Watch
from tenantry.model.flux.names import TENANCY_PROFILE
from tenantry.model.kinds import ADMISSION_POLICY, ADMISSION_POLICY_BINDING, CUSTOM_RESOURCE_DEFINITION

_MARK = ("watch", LOCKS.name)

POLICIES = Service(
    LOCKS.name,
    NAME,
    LOCKS.duty,
    ("policies",),
    sources=(
        # mutations are seen by the sweep: older API servers do not serve them, and a source ends there
        Source(
            f"{NAME}-policies",
            (Watch(ADMISSION_POLICY), Watch(ADMISSION_POLICY_BINDING), Watch(CUSTOM_RESOURCE_DEFINITION)),
            mark=_MARK,
        ),
    ),
    triggers=(Trigger(LOCKS.name, mark=_MARK),),
)
part = Part(
    POLICIES,
    tells=(Tells(TENANCY_PROFILE, "Ready"), Tells(TENANCY_PROFILE, "Enforced", wanted=("SingleTenant", "Audit"))),
)
