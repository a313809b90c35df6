"""scope-binding: a template gives its rights to others, is changed for another, or goes."""

from tenantry.testing.workload import delete

from ._scopes import BOTH, EVE, ONE, PLACES, READY, STANDING, instance, scopes, template

workload = scopes()
SUBJECTS = template("t-@", subject=EVE)
workload.scenario("subjects", SUBJECTS, before=[READY], other=[PLACES, SUBJECTS, BOTH])
workload.scenario("other-template", instance("ci-@", "a-@", of="st9-@"), before=[STANDING, template("u-@", "st9-@"), ONE])
workload.scenario("delete-template", delete("ScopeTemplate", "st-@"), before=[READY], other=[PLACES, BOTH])
