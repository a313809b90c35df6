"""scope-binding, duty paas: permissions of service accounts come and go with capabilities, namespaces and Paas."""

from tenantry.testing.workload import delete, edit, together

from ._paas import P, X, home, story
from ._paas_accounts import CONFIGURED, HOMES, MORE, OFF, ON, READY, TWO, one, permissions_of_paas

workload = permissions_of_paas()
GONE = delete("Namespace", "p-@-c-@", gone=True)
story(workload, "begin", HOMES, before=[CONFIGURED, together(one(), TWO)])
story(workload, "extra", one(MORE), before=READY)
story(workload, "less", one(), before=[*READY[:2], one(MORE), HOMES])
story(workload, "off", one(OFF), GONE, before=READY)
story(workload, "both", one(ON, ON), one(OFF, ON), before=READY)
TAKEN = home("p-@-c-@", X)
story(workload, "name-free", GONE, TAKEN, before=READY, other=[*READY, together(GONE, TAKEN)])
story(workload, "delete", delete("Paas", P, gone=True), before=READY)
story(workload, "delete-other", delete("Paas", X, gone=True), before=READY)
drift = edit("ClusterRoleBinding", "paas-d-@", "", "/subjects/0/name", "eve")
story(workload, "drift", drift, delete("ClusterRoleBinding", "paas-d-@"), before=READY, other=READY, drifts=True)
