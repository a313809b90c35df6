"""The function: its name and its units."""

from __future__ import annotations

from lock_enforcement.descriptor import descriptor
from lock_enforcement.index import Index
from lock_enforcement.releases import Releases
from lock_enforcement.sources import Sources
from tenantry.engine import Units
from tenantry.serving import Function, Settings


def _units(settings: Settings) -> Units:
    index = Index(settings.config)
    return [Releases(settings.config, index), Sources(settings.config, index)]


function = Function(descriptor, _units)
