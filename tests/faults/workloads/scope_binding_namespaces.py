"""scope-binding: NamespaceScopes come, grow, and what was given drifts and is put back."""

from tenantry.testing.workload import delete, edit, together

from ._namespace_scopes import BEGIN, GIVEN, ON_A, ON_AB, OPS, READS, namespace_scopes

workload = namespace_scopes()
workload.scenario("scope", ON_A, before=[BEGIN])
workload.scenario("scope-grow", ON_AB, before=[together(BEGIN, ON_A)])
workload.scenario("scope-drift", edit("Role", GIVEN, "a-@", "/rules", [READS]), before=[together(BEGIN, ON_A)])
workload.scenario("scope-drift-deleted", delete("RoleBinding", GIVEN, "a-@"), before=[together(BEGIN, ON_A)])
workload.scenario(
    "scope-drift-list", edit("ConfigMap", "namespace-scope", OPS, "/data/namespaces", "x"), before=[together(BEGIN, ON_A)]
)
