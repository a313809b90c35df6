"""namespace-registration: namespaces and quotas of two Paas come, are stacked, clash and go."""

from tenantry.model.paas.names import RIGHTS_FINALIZER
from tenantry.testing.workload import delete, edit, together

from ._paas import P, X, story
from ._paas_namespaces import BEGIN, OFF, ON, READY, ask, namespaces_of_paas, one, two

workload = namespaces_of_paas()
HELD, FREED = one("a", finalizers=[RIGHTS_FINALIZER]), edit("Paas", P, "", "/metadata/finalizers/0")
story(workload, "come", one("a", k=ON), two("b"), before=[BEGIN])
story(workload, "other-names", one("n"), one("n", "m"), before=READY)
D, E = ask("d", "p-@-a"), ask("e", "p-@-d")
STACKED = [*READY, D, E]
story(workload, "stack", D, ask("f", "p-@-a"), before=READY, other=[*READY, ask("f", "p-@-a"), D])
story(workload, "stack-deeper", E, before=[*READY, D], other=STACKED)
story(workload, "unstack", delete("PaasNS", "d", "p-@-a"), before=STACKED, other=[*STACKED, delete("PaasNS", "d", "p-@-a")])
story(workload, "name-of-both", one("a", "x-b"), one("a", "x-c"), before=READY)
story(workload, "off", one("a", c=OFF), two("b", k=OFF), before=READY)
story(workload, "foreign", one("a", "foreign"), before=READY)
GOING = [BEGIN, together(HELD, two("b"))]
story(workload, "delete", delete("Paas", P), FREED, before=GOING, other=[*READY, delete("Paas", P)])
story(workload, "delete-other", delete("Paas", X, gone=True), before=READY)
drift = edit("Namespace", "p-@-a", "", "/metadata/labels/clusterquotagroup", "other")
story(workload, "drift", drift, delete("ClusterResourceQuota", P), before=READY, other=READY, drifts=True)
