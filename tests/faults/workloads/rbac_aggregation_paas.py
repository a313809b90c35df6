"""rbac-aggregation, duty paas: groups and rights of two Paas come, change and go."""

from tenantry.testing.workload import apply, delete, edit, together

from ._paas import P, X, home, story
from ._paas_rights import ALL, HOMES, MAPPED, OTHERS, READY, THEM, US, group, one, rights_of_paas, two

workload = rights_of_paas()
story(workload, "rights", HOMES, before=[MAPPED, together(one(), two())])
story(workload, "role-gone", one(**{**ALL, "us": group("edit-@")}), before=READY)
story(workload, "group-gone", one(us=US, others=OTHERS), before=READY)
story(workload, "to-query", one(**{**ALL, "them": group("edit-@", query="CN=t-@")}), before=READY)
story(workload, "name-of-both", one(**{"x-us": THEM}), delete("Paas", X, gone=True), before=READY)
DEEP, DEEPER = apply("PaasNS", "d", "p-@-a", spec={"groups": ["them"]}), apply("PaasNS", "e", "p-@-d", spec={})
STACK = together(DEEP, home("p-@-d", P, "p-@-a/d"), DEEPER, home("p-@-e", P, "p-@-d/e"))
story(workload, "stacked", STACK, apply("PaasNS", "d", "p-@-a", spec={"groups": ["us"]}), before=READY)
story(workload, "delete", delete("Paas", P, gone=True), before=READY)
drift = edit("RoleBinding", "paas-edit", "p-@-a", "/subjects", [{"kind": "User", "name": "eve"}])
story(workload, "drift", drift, delete("Group", "p-@-us"), before=READY, other=READY, drifts=True)
