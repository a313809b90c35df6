"""Tests that platform teams write: given, when and then in YAML, over a control plane with Tenantry on it (`tenantry test`)."""
