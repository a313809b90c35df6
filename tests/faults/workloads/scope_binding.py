"""scope-binding: scopes come, are narrowed and go, and so do the namespaces that they mean."""

from tenantry.testing.workload import delete, together

from ._scopes import BOTH, MARKED, PLACES, READY, STANDING, A, B, T, instance, scopes

workload = scopes()
workload.scenario("bind", T, BOTH, before=[PLACES])
workload.scenario("narrow", instance("si-@", "b-@"), before=[READY], other=[STANDING, instance("si-@", "b-@")])
workload.scenario("delete-instance", delete("ScopeInstance", "si-@"), before=[READY], other=[STANDING])
workload.scenario("missing", B, before=[together(A, T, BOTH)])
workload.scenario("selected", MARKED, B, before=[STANDING, instance("si-@", namespaceSelector={"env": "e-@"})])
