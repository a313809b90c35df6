"""scope-binding: NamespaceScopes come and grow."""

from tenantry.testing.workload import together

from ._namespace_scopes import BEGIN, ON_A, ON_AB, namespace_scopes

workload = namespace_scopes()
workload.scenario("scope", ON_A, before=[BEGIN])
workload.scenario("scope-grow", ON_AB, before=[together(BEGIN, ON_A)])
