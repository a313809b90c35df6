"""Where source and Kustomization of a Tenant come from."""

from __future__ import annotations

from tenantry.model.flux.names import MADE_FOR_TENANT, TENANT
from tenantry.model.flux.onboarding import GIT_REPOSITORY, KUSTOMIZATION
from tenantry.model.flux.tenant import DELIVERY_MANAGER, is_kept_for
from tenantry.model.kinds import Object, key_in, labels_of
from tenantry.model.origin import Because, Looking, Origin, edit, kubectl
from tenantry.model.rbac import BoundSubject

KINDS = frozenset({GIT_REPOSITORY, KUSTOMIZATION})


async def explain(obj: Object, subject: BoundSubject | None, look: Looking) -> Origin | None:
    """The source that the Tenant names."""
    del subject, look
    name = labels_of(obj).get(MADE_FOR_TENANT, "")
    if not name or not is_kept_for(obj, name, DELIVERY_MANAGER):
        return None
    about, line = key_in(TENANT, name, ""), "spec.source" if obj["kind"] == GIT_REPOSITORY.kind else "spec.kustomization"
    ends = (edit(TENANT, name, "take spec.source out"), kubectl("delete", TENANT, name))
    proof = f"label {MADE_FOR_TENANT}, and fields of field manager {DELIVERY_MANAGER}"
    return Origin(f"tenant/{name}", proof, (Because(about, line),), ends)
