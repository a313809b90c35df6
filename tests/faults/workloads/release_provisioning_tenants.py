"""release-provisioning, duty tenants: sources and Kustomizations of two Tenants come, change and go."""

from tenantry.testing.workload import apply, delete, edit, together

from ._tenants import SOURCE, SPACES, A, B, T, X, binding, story, tenant, told
from ._tenants_deliveries import deliveries_of_tenants

workload = deliveries_of_tenants()
ONE, MOVED, NONE = tenant(T, A, source=SOURCE), tenant(T, B, A, source=SOURCE), tenant(T, A)
BOUND = together(binding(A), binding(B), binding(B, X))
THEIRS = tenant(X, B, source={"url": "ssh://git@example.com/x", "branch": "x"})
READY = [SPACES, together(ONE, THEIRS), BOUND]
story(workload, "deliver", BOUND, before=READY[:2])
OTHER = tenant(T, A, source={**SOURCE, "branch": "other"}, kustomization={"path": "./deploy", "interval": "5m"})
story(workload, "other", OTHER, before=READY)
ACCOUNTS = tenant(T, A, source=SOURCE, serviceAccountName="deployer"), binding(A, name="deployer")
story(workload, "other-account", *ACCOUNTS, before=READY)
story(workload, "moved", MOVED, before=READY)
story(workload, "moved-back", MOVED, ONE, before=READY, other=READY)
HELD = edit("Kustomization", T, A, "/metadata/finalizers", ["finalizers.fluxcd.io"])
PRUNED = edit("Kustomization", T, A, "/metadata/finalizers")
story(workload, "source-gone", NONE, PRUNED, before=[*READY, HELD], other=[*READY, NONE])
story(workload, "delete", delete("Tenant", T), PRUNED, before=[*READY, HELD], other=[*READY, delete("Tenant", T, gone=True)])
FOREIGN = apply("GitRepository", T, A, labels={"team": "one"}, spec={"url": "https://example.com/other"})
ADOPTS = tenant(T, A, source=SOURCE, adoptNamespaces=True)
story(workload, "foreign", told(T), ADOPTS, before=[SPACES, FOREIGN, together(NONE, binding(A), ONE)])
drift = edit("Kustomization", T, A, "/spec/serviceAccountName", "default")
story(workload, "drift", drift, delete("GitRepository", T, A), before=READY, other=READY, drifts=True)
