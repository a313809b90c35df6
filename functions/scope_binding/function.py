"""The function: its name and its units."""

from __future__ import annotations

from scope_binding.descriptor import NAMESPACE_SCOPES, OLM, SCOPES, descriptor
from scope_binding.namespace_scopes import NamespaceScopes
from scope_binding.olm import Olm
from scope_binding.scopes import Scopes
from tenantry.engine import Unit, Units
from tenantry.model.descriptor import Service
from tenantry.serving import Function, Settings


def _units(settings: Settings) -> Units:
    units: dict[Service, Unit] = {
        SCOPES: Scopes(),
        NAMESPACE_SCOPES: NamespaceScopes(settings.config),
        OLM: Olm(enabled=settings.config.scope_binding.olm.enabled),
    }
    return [unit for service, unit in units.items() if settings.has(service)]


function = Function(descriptor, _units)
