"""The function: its name and its units."""

from __future__ import annotations

from scope_binding.namespace_scopes import NamespaceScopes
from scope_binding.olm import Olm
from scope_binding.scopes import Scopes
from tenantry.engine import Unit, Units
from tenantry.serving import Function, Settings


def _units(settings: Settings) -> Units:
    units: dict[str, Unit] = {
        "scopes": Scopes(),
        "namespace-scopes": NamespaceScopes(settings.config),
        "olm": Olm(enabled=settings.config.scope_binding.olm.enabled),
    }
    return [unit for duty, unit in units.items() if settings.has(duty)]


function = Function("scope-binding", _units)
