"""scope-binding: a member does not consent, or does so no longer, and then does."""

from tenantry.testing.workload import delete, together

from ._namespace_scopes import BEGIN, CONSENT, MORE, ON_A, C, consent, namespace_scopes, scope

workload = namespace_scopes()
workload.scenario("scope-refused", scope("a-@", "c-@"), ON_A, before=[together(BEGIN, C)])
workload.scenario("scope-withdrawn", delete("Role", CONSENT, "a-@"), consent("a-@", MORE), before=[together(BEGIN, ON_A)])
