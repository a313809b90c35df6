"""Tenants: the source and the Kustomization of their repository."""
