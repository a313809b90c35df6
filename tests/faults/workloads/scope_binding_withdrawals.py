"""scope-binding: a member takes its consent back, and gives it again."""

from tenantry.testing.workload import delete, together

from ._namespace_scopes import BEGIN, CONSENT, MORE, ON_A, consent, namespace_scopes

workload = namespace_scopes()
workload.scenario("scope-withdrawn", delete("Role", CONSENT, "a-@"), consent("a-@", MORE), before=[together(BEGIN, ON_A)])
