"""scope-binding: what members consent to comes late and is narrowed."""

from tenantry.testing.workload import together

from ._namespace_scopes import BEGIN, HOME, ON_A, ON_AB, READS, A, B, consent, namespace_scopes

workload = namespace_scopes()
workload.scenario("scope-late", *B, before=[together(*HOME, *A, ON_AB)])
workload.scenario("scope-narrowed", consent("a-@", READS), before=[together(BEGIN, ON_A)])
