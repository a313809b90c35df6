"""scope-binding: a NamespaceScope goes, and with it what was made for it."""

from tenantry.testing.workload import delete, together

from ._namespace_scopes import BEGIN, ON_AB, OPS, namespace_scopes

workload = namespace_scopes()
workload.scenario("scope-gone", delete("NamespaceScope", "s-@", OPS), before=[together(BEGIN, ON_AB)])
