"""scope-binding: a member that does not consent is named, and then not any more."""

from tenantry.testing.workload import together

from ._namespace_scopes import BEGIN, ON_A, C, namespace_scopes, scope

workload = namespace_scopes()
workload.scenario("scope-refused", scope("a-@", "c-@"), ON_A, before=[together(BEGIN, C)])
