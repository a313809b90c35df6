"""rbac-aggregation, duty tenants: rights of the accounts of two Tenants come, change and go."""

from tenantry.model.flux.tenant import DELIVERY_FINALIZER
from tenantry.testing.workload import delete, edit, together

from ._tenants import SPACES, A, B, T, X, account, delivery, story, tenant, told
from ._tenants_rights import rights_of_tenants

workload = rights_of_tenants()
BOTH, ONE = tenant(T, A, B), tenant(T, A)
READY = [SPACES, BOTH, together(account(A), account(B))]
DONE = together(delete("Kustomization", T, B), told(T))
story(workload, "rights", account(A), account(B, X), before=[SPACES, together(ONE, tenant(X, B))])
story(workload, "leave", ONE, DONE, before=[*READY, delivery(B)], other=[*READY, ONE, told(T)])
story(workload, "role", tenant(T, A, B, clusterRole="view"), before=READY)
story(workload, "role-twice", tenant(T, A, B, clusterRole="view"), tenant(T, A, B, clusterRole="edit"), before=READY)
OTHER = together(account(A, name="deployer"), account(B, name="deployer"))
story(workload, "other-account", tenant(T, A, B, serviceAccountName="deployer"), OTHER, before=READY)
HELD, FREED = tenant(T, A, B, finalizers=[DELIVERY_FINALIZER]), edit("Tenant", T, "", "/metadata/finalizers/0")
GONE = delete("Tenant", T, gone=True)
story(workload, "delete", delete("Tenant", T), FREED, before=[SPACES, HELD, READY[-1]], other=[*READY, GONE])
story(
    workload,
    "delete-other",
    GONE,
    before=[*READY[:2], together(READY[-1], tenant(X, B, serviceAccountName="deployer"), account(B, X, "deployer"))],
)
NAME, EVE = f"{T}-reconciler", [{"kind": "User", "name": "eve"}]
drift = edit("RoleBinding", NAME, A, "/subjects", EVE)
story(workload, "drift", drift, delete("RoleBinding", NAME, B), before=READY, other=READY, drifts=True)
