"""scope-binding: scopes are made from what OLM knows about operators, and go."""

from ._olm import BOTH, PLACES, SERVED, group, operators, version

workload = operators()
workload.scenario("olm-begin", BOTH, version("secrets"), before=[PLACES])
workload.scenario("olm-targets", group("a-@"), before=[SERVED])
workload.scenario("olm-opt-out", group("a-@", "b-@", opted=False), before=[SERVED])
workload.scenario("olm-two-groups", group("a-@", name="second"), before=[SERVED])
