"""scope-binding: NamespaceScopes shrink and change their projection."""

from tenantry.testing.workload import together

from ._namespace_scopes import BEGIN, ON_A, ON_AB, namespace_scopes, scope

workload = namespace_scopes()
workload.scenario("scope-shrink", ON_A, before=[together(BEGIN, ON_AB)])
workload.scenario("scope-switch", scope("a-@", projection="own-roles"), before=[together(BEGIN, ON_A)])
