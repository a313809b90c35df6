"""scope-binding: what members consent to comes late and is narrowed; what was given drifts and is put back."""

from tenantry.testing.workload import delete, edit, together

from ._namespace_scopes import BEGIN, GIVEN, HOME, ON_A, ON_AB, OPS, READS, A, B, consent, namespace_scopes

workload = namespace_scopes()
workload.scenario("scope-late", *B, before=[together(*HOME, *A, ON_AB)])
workload.scenario("scope-narrowed", consent("a-@", READS), before=[together(BEGIN, ON_A)])
workload.scenario("scope-drift", edit("Role", GIVEN, "a-@", "/rules", [READS]), before=[together(BEGIN, ON_A)])
workload.scenario("scope-drift-deleted", delete("RoleBinding", GIVEN, "a-@"), before=[together(BEGIN, ON_A)])
workload.scenario(
    "scope-drift-list", edit("ConfigMap", "namespace-scope", OPS, "/data/namespaces", "x"), before=[together(BEGIN, ON_A)]
)
