"""namespace-registration: namespaces and quotas of two Paas come, are stacked, clash and go."""

from tenantry.model.paas.names import RIGHTS_FINALIZER
from tenantry.testing.workload import delete, edit, together

from ._paas import P, X, story
from ._paas_namespaces import BEGIN, OFF, ON, READY, ask, namespaces_of_paas, one, two

workload = namespaces_of_paas()
HELD, FREED = one("a", finalizers=[RIGHTS_FINALIZER]), edit("Paas", P, "", "/metadata/finalizers/0")
story(workload, "come", one("a", k=ON), two("b"), before=[BEGIN])
story(workload, "other-names", one("n"), one("a", "n"), before=READY)
story(workload, "stack", ask("d", "p-@-a"), ask("e", "p-@-d"), before=READY, other=[*READY, ask("d", "p-@-a"), ask("e", "p-@-d")])
STACKED = [*READY, ask("d", "p-@-a"), ask("e", "p-@-d")]
story(workload, "unstack", delete("PaasNS", "d", "p-@-a"), before=STACKED, other=[*STACKED, delete("PaasNS", "d", "p-@-a")])
story(workload, "name-of-both", one("a", "x-b"), two("b2"), before=READY, other=[*READY, one("a", "x-b"), two("b2")])
story(workload, "off", one("a", c=OFF), two("b", k=OFF), before=READY)
story(workload, "foreign", one("a", "foreign"), before=READY)
GOING = [BEGIN, together(HELD, two("b"))]
story(workload, "delete", delete("Paas", P), FREED, before=GOING, other=[*READY, delete("Paas", P)])
story(workload, "delete-other", delete("Paas", X, gone=True), before=READY)
drift = edit("Namespace", "p-@-a", "", "/metadata/labels/clusterquotagroup", "other")
story(workload, "drift", drift, delete("ClusterResourceQuota", P), before=READY, other=READY, drifts=True)
