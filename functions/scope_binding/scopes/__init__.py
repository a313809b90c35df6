"""Scopes: ScopeTemplates, ScopeInstances, and the ClusterRoles and bindings that follow from them."""

from scope_binding.scopes.unit import Scopes

__all__ = ["Scopes"]
