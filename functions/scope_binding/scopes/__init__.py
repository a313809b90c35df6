"""Scopes: ScopeTemplates, ScopeInstances, and the ClusterRoles and bindings that follow from them."""
