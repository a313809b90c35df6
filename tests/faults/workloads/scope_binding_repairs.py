"""scope-binding: what NamespaceScopes gave drifts and is put back."""

from tenantry.testing.workload import delete, edit, together

from ._namespace_scopes import BEGIN, GIVEN, ON_A, OPS, READS, namespace_scopes

workload = namespace_scopes()
GIVING = together(BEGIN, ON_A)
workload.scenario("scope-drift", edit("Role", GIVEN, "a-@", "/rules", [READS]), before=[GIVING])
workload.scenario("scope-drift-deleted", delete("RoleBinding", GIVEN, "a-@"), before=[GIVING])
workload.scenario("scope-drift-list", edit("ConfigMap", "namespace-scope", OPS, "/data/namespaces", "x"), before=[GIVING])
