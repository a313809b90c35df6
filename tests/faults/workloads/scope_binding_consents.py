"""scope-binding: what members consent to comes late, is refused, narrowed and withdrawn."""

from tenantry.testing.workload import delete, together

from ._namespace_scopes import BEGIN, CONSENT, HOME, MORE, ON_A, ON_AB, READS, A, B, C, consent, namespace_scopes, scope

workload = namespace_scopes()
workload.scenario("scope-late", *B, before=[together(*HOME, *A, ON_AB)])
workload.scenario("scope-refused", scope("a-@", "c-@"), ON_A, before=[together(BEGIN, C)])
workload.scenario("scope-narrowed", consent("a-@", READS), before=[together(BEGIN, ON_A)])
workload.scenario("scope-withdrawn", delete("Role", CONSENT, "a-@"), consent("a-@", MORE), before=[together(BEGIN, ON_A)])
