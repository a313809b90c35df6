"""scope-binding: where a scope gives what, and under which name, changes; nobody loses access on the way (sb-9)."""

from tenantry.testing.workload import together

from ._scopes import BOTH, ONE, PLACES, READY, STANDING, WHOLE, scopes, template

workload = scopes()
AT_ONE, EVERYWHERE, RENAMED = together(STANDING, ONE), together(STANDING, WHOLE), template("u-@")
workload.scenario("to-the-cluster", WHOLE, before=[AT_ONE], other=[STANDING, WHOLE])
workload.scenario("back-to-namespaces", ONE, before=[EVERYWHERE], other=[STANDING, ONE])
workload.scenario("rename-role", RENAMED, before=[READY], other=[PLACES, RENAMED, BOTH])
