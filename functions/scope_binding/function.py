"""The function: its name and its units."""

from __future__ import annotations

from scope_binding.namespace_scopes import NamespaceScopes
from scope_binding.olm import Olm
from scope_binding.scopes import Scopes
from tenantry.engine import Units
from tenantry.serving import Function, Settings


def _units(settings: Settings) -> Units:
    """OLM before scopes: for an event of what it declared, that is put right before scopes follow it."""
    return [
        (Olm(enabled=settings.config.scope_binding.olm.enabled), Scopes()),
        NamespaceScopes(settings.config),
    ]


function = Function("scope-binding", _units)
