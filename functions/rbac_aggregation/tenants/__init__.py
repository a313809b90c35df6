"""Tenants: the RoleBindings of their accounts."""
