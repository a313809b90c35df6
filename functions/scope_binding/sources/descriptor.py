"""What grants of sources bring to their function."""

from __future__ import annotations

from scope_binding import NAME
from tenantry.model.descriptor import EventsOf, Part, Service, Source, Tells, Trigger, Watch
from tenantry.model.flux.names import (
    ACCESS_INDEX,
    ACL_VALID,
    IMAGE_REPOSITORIES,
    NEARLY_FULL,
    SOURCE_GRANT,
    SOURCE_KINDS,
    TENANCY_PROFILE,
)
from tenantry.model.kinds import NAMESPACE

_OF = f"{NAME}-sources"
_MARK = ("watch", _OF)
"""Not that of the function: who scopes has nothing to do with sources."""

ACCESS = Service(
    _OF,
    NAME,
    "sources",
    ("sources",),
    sources=(
        Source(
            _OF,
            (Watch(SOURCE_GRANT), Watch(TENANCY_PROFILE), Watch(ACCESS_INDEX)),
            mark=_MARK,
        ),
        # a source ends while the group of one of its kinds is not served: Flux without image automation has no ImageRepositories
        Source(f"{_OF}-flux", tuple(map(Watch, SOURCE_KINDS)), mark=_MARK, folder="flux"),
        Source(f"{_OF}-images", (Watch(IMAGE_REPOSITORIES),), mark=_MARK, folder="flux-images"),
    ),
    # of the function's own source, which sends namespaces whole: most have nothing to do with sources, and their events say so
    triggers=(Trigger(_OF, mark=_MARK), Trigger(f"{_OF}-namespaces", (EventsOf(NAMESPACE, NAME),))),
)
part = Part(
    ACCESS,
    settings=("flux",),
    tells=(Tells(SOURCE_GRANT, ACL_VALID), Tells(ACCESS_INDEX, NEARLY_FULL, bad="True", warns=True)),
)
