"""What access locks bring to their function."""

from __future__ import annotations

from lock_enforcement import NAME
from tenantry.model.descriptor import Finalizer, Part, Service, Source, Tells, Trigger, Watch
from tenantry.model.flux.consumers import APPLIED, CONSUMER_KINDS, GENERATED, IMAGES, OPERATED
from tenantry.model.flux.names import ACCESS_DENIED, ACCESS_INDEX, LOCK_FINALIZER, TENANCY_PROFILE
from tenantry.model.kinds import NAMESPACE

_OF = f"{NAME}-access"
_MARK = ("watch", _OF)

LOCKS = Service(
    _OF,
    NAME,
    "access",
    ("access",),
    sources=(
        Source(_OF, (Watch(TENANCY_PROFILE), Watch(ACCESS_INDEX), Watch(NAMESPACE)), mark=_MARK),
        # a source ends while one of its kinds is not served: Flux can be there without its controllers of images and others
        Source(f"{_OF}-flux", tuple(map(Watch, APPLIED)), mark=_MARK, folder="flux"),
        Source(f"{_OF}-images", tuple(map(Watch, IMAGES)), mark=_MARK, folder="flux-images"),
        Source(f"{_OF}-generators", tuple(map(Watch, GENERATED)), mark=_MARK, folder="flux-watcher"),
        Source(f"{_OF}-operator", tuple(map(Watch, OPERATED)), mark=_MARK, folder="flux-operator"),
    ),
    triggers=(Trigger(_OF, mark=_MARK),),
    finalizers=tuple(Finalizer(kind, LOCK_FINALIZER) for kind in CONSUMER_KINDS),
)
part = Part(LOCKS, tells=tuple(Tells(kind, "Ready", reasons=(ACCESS_DENIED,)) for kind in CONSUMER_KINDS))
