"""What lists of sources bring to their function: they run with what makes the index."""

from __future__ import annotations

from scope_binding import NAME
from scope_binding.sources.descriptor import ACCESS
from tenantry.model.descriptor import Part, Product, Service, Source, Trigger, Watch
from tenantry.model.flux.names import SHOWN_MARK
from tenantry.model.kinds import CONFIG_MAP

_MARK = ("watch", ACCESS.name)

SHOWN = Service(
    ACCESS.name,
    NAME,
    ACCESS.duty,
    ("shown",),
    sources=(Source(f"{ACCESS.name}-shown", (Watch(CONFIG_MAP, SHOWN_MARK),), mark=_MARK),),
    triggers=(Trigger(ACCESS.name, mark=_MARK),),
)
part = Part(SHOWN, makes=(Product(CONFIG_MAP, SHOWN_MARK),))
