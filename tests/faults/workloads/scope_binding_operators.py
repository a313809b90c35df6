"""scope-binding: operators that OLM runs are given other rights, upgraded, and what was made for them drifts."""

from tenantry.testing.workload import delete, edit, together

from ._olm import CSV, OPS, SERVED, operators, version

INSTANCE, NEXT = f"ns.{OPS}.{CSV}", version("secrets", "op2-@")
workload = operators()
workload.scenario("olm-permissions", version("configmaps"), before=[SERVED])
workload.scenario("olm-upgrade", delete("ClusterServiceVersion", CSV, OPS), before=[together(SERVED, NEXT)])
workload.scenario("olm-drift", edit("ScopeInstance", INSTANCE, "", "/spec/namespaces", ["a-@"]), before=[SERVED], drifts=True)
