"""scope-binding: what a scope gives changes, and nobody loses access on the way (sb-9)."""

from tenantry.testing.workload import together

from ._scopes import BOTH, EVE, ONE, PLACES, READY, STANDING, WHOLE, instance, scopes, template

workload = scopes()
AT_ONE, EVERYWHERE = together(STANDING, ONE), together(STANDING, WHOLE)
SUBJECTS, RENAMED = template("t-@", subject=EVE), template("u-@")
workload.scenario("to-the-cluster", WHOLE, before=[AT_ONE], other=[STANDING, WHOLE])
workload.scenario("back-to-namespaces", ONE, before=[EVERYWHERE], other=[STANDING, ONE])
workload.scenario("rename-role", RENAMED, before=[READY], other=[PLACES, RENAMED, BOTH])
workload.scenario("subjects", SUBJECTS, before=[READY], other=[PLACES, SUBJECTS, BOTH])
workload.scenario("other-template", instance("ci-@", "a-@", of="st9-@"), before=[STANDING, template("u-@", "st9-@"), ONE])
