"""NamespaceScopes: member namespaces of operators, the list that the operators read, and their rights there."""

from __future__ import annotations

from scope_binding.namespace_scopes.unit import NamespaceScopes

__all__ = ["NamespaceScopes"]
