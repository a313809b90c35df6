"""What scope-binding is."""

from __future__ import annotations

from tenantry.model.descriptor import Command, Descriptor, Service

SCOPES = Service("scope-binding", "scope-binding", "scopes")
NAMESPACE_SCOPES = Service("scope-binding-namespace-scopes", "scope-binding", "namespace-scopes")
OLM = Service("scope-binding-olm", "scope-binding", "olm", rights_folder="olm")
descriptor = Descriptor(
    (SCOPES, NAMESPACE_SCOPES, OLM),
    (Command("authorize-namespace", "scope_binding.command", "Let the operators of another namespace act in a namespace."),),
)
