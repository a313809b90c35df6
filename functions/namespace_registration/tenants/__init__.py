"""Tenants: their namespaces and accounts."""
