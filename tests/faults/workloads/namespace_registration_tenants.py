"""namespace-registration: namespaces and accounts of two Tenants come, clash and go."""

from tenantry.model.flux.tenant import RIGHTS_FINALIZER
from tenantry.testing.workload import delete, edit, namespace, together

from ._tenants import ACCOUNT, A, B, T, X, binding, story, tenant
from ._tenants_namespaces import namespaces_of_tenants

workload = namespaces_of_tenants()
BOTH, ONE, TEAM = tenant(T, A, B), tenant(T, A), namespace(A, {"team": "one"})
FREE, FREED = delete("RoleBinding", f"{T}-reconciler", B), edit("Tenant", T, "", "/metadata/finalizers/0")
BOUND = [BOTH, binding(B)]
story(workload, "come", tenant(T, A, labels={"stage": "dev"}), tenant(X, B))
story(workload, "leave", ONE, FREE, before=BOUND, other=[*BOUND, FREE, ONE])
AGAIN = tenant(T, A, B, adoptNamespaces=True)
story(workload, "return", ONE, FREE, AGAIN, before=BOUND, other=[AGAIN])
GOES, WENT = tenant(T, A, deletionPolicy="Delete"), tenant(T, A, B, deletionPolicy="Delete")
story(workload, "leave-for-good", GOES, before=[WENT], other=[BOTH, WENT, GOES])
OTHER = [tenant(T, A, serviceAccountName="deployer"), binding(A, name="deployer")]
story(workload, "other-account", *OTHER, before=[ONE, binding(A)], other=OTHER)
TAKES, GONE = tenant(X, A, B, adoptNamespaces=True), delete("Tenant", T, gone=True)
story(workload, "taken", TAKES, GONE, before=[ONE], other=[ONE, GONE, TAKES])
story(workload, "adopt", ONE, tenant(T, A, adoptNamespaces=True), before=[TEAM])
story(workload, "skip", tenant(T, A, skipNamespace=True), TEAM)
HELD = tenant(T, A, B, finalizers=[RIGHTS_FINALIZER])
story(workload, "delete", delete("Tenant", T), FREED, before=[HELD], other=[BOTH, GONE])
LAST = tenant(T, A, deletionPolicy="Delete")
story(workload, "delete-all", GONE, before=[LAST], other=[ONE, LAST, GONE])
story(workload, "rebuild", delete("Namespace", A, gone=True), before=[ONE], other=[ONE])
LABEL = "/metadata/labels/toolkit.fluxcd.io~1tenant"
EDITED = together(edit("Namespace", A, "", LABEL, "other"), edit("ServiceAccount", ACCOUNT, A, LABEL))
story(workload, "drift", EDITED, delete("ServiceAccount", ACCOUNT, A), before=[ONE], other=[ONE], drifts=True)
