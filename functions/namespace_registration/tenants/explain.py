"""Where namespaces and accounts of a Tenant come from."""

from __future__ import annotations

from tenantry.model.flux.names import MADE_FOR_TENANT, TENANT
from tenantry.model.flux.tenant import NAMESPACES_MANAGER, is_kept_for
from tenantry.model.kinds import NAMESPACE, SERVICE_ACCOUNT, Object, key_in, key_of, labels_of
from tenantry.model.origin import Because, Looking, Origin, edit, kubectl
from tenantry.model.rbac import BoundSubject

KINDS = frozenset({NAMESPACE, SERVICE_ACCOUNT})


async def explain(obj: Object, subject: BoundSubject | None, look: Looking) -> Origin | None:
    """The Tenant that names it."""
    del subject, look
    name, key = labels_of(obj).get(MADE_FOR_TENANT, ""), key_of(obj)
    if not name or not is_kept_for(obj, name, NAMESPACES_MANAGER):
        return None
    place, about = key.namespace or key.name, key_in(TENANT, name, "")
    because = [Because(about, "spec.namespaces", place)]
    if key.kind == SERVICE_ACCOUNT.kind:
        because.append(Because(about, "spec.serviceAccountName", key.name))
    stays = (
        ""
        if key.kind == SERVICE_ACCOUNT.kind
        else "; with spec.deletionPolicy Delete it is deleted then, else it loses its labels"
    )
    proof = f"label {MADE_FOR_TENANT}, and fields of field manager {NAMESPACES_MANAGER}"
    ends = (edit(TENANT, name, f"take {place} out of spec.namespaces{stays}"), kubectl("delete", TENANT, name))
    return Origin(f"tenant/{name}", proof, tuple(because), ends)
