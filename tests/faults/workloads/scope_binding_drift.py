"""scope-binding: what was made drifts, or has its name taken, and is put right."""

from tenantry.model.kinds import CLUSTER_ROLE, ROLE_BINDING
from tenantry.testing.workload import Run, Step, apply, delete, edit, together

from ._scopes import BOTH, PLACES, READY, RULE, T, scopes

KINDS = {kind.kind: kind for kind in (CLUSTER_ROLE, ROLE_BINDING)}


def drift(kind: str, path: str, *value: object) -> Step:
    """Edit what is there of a kind by hand, wherever it is and whatever its name."""

    async def step(run: Run) -> None:
        for found in (await run._api.list(KINDS[kind])).items:
            name, where = found["metadata"]["name"], found["metadata"].get("namespace", "")
            if run.tag in name:
                await (edit(kind, name, where, path, *value) if path else delete(kind, name, where))(run)

    return step


workload = scopes()
OCCUPIED = together(PLACES, apply("ClusterRole", "t-@", rules=[RULE]), BOTH)
workload.scenario("taken", T, delete("ClusterRole", "t-@"), before=[OCCUPIED])
workload.scenario("drift-deleted", drift("RoleBinding", ""), before=[READY])
workload.scenario("drift-subjects", drift("RoleBinding", "/subjects", []), before=[READY])
workload.scenario("drift-owner", drift("RoleBinding", "/metadata/ownerReferences"), before=[READY])
workload.scenario("drift-rules", drift("ClusterRole", "/rules", []), before=[READY])
workload.scenario("drift-role-deleted", drift("ClusterRole", ""), before=[READY])
