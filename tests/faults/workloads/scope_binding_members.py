"""scope-binding: NamespaceScopes shrink, change their projection and go."""

from tenantry.testing.workload import delete, together

from ._namespace_scopes import BEGIN, ON_A, ON_AB, OPS, namespace_scopes, scope

workload = namespace_scopes()
workload.scenario("scope-shrink", ON_A, before=[together(BEGIN, ON_AB)])
workload.scenario("scope-switch", scope("a-@", projection="own-roles"), before=[together(BEGIN, ON_A)])
workload.scenario("scope-gone", delete("NamespaceScope", "s-@", OPS), before=[together(BEGIN, ON_AB)])
