"""Where the quota that a clusterwide capability has for all Paas comes from."""

from __future__ import annotations

from namespace_registration.paas_config.seen import SHARED_QUOTA
from tenantry.model.kinds import Object, annotations_of, key_in
from tenantry.model.origin import Because, Looking, Origin, edit
from tenantry.model.paas.looking import config_in_force
from tenantry.model.paas.names import CLUSTER_RESOURCE_QUOTA, PAAS_CONFIG, SHARED
from tenantry.model.rbac import BoundSubject

KINDS = frozenset({CLUSTER_RESOURCE_QUOTA})


async def explain(obj: Object, subject: BoundSubject | None, look: Looking) -> Origin | None:
    """The capability of the PaasConfig."""
    del subject
    if annotations_of(obj).get(SHARED) != SHARED_QUOTA:
        return None
    capability, config = obj["metadata"]["name"].removeprefix("paas-"), await config_in_force(look)
    line, name = f"spec.capabilities.{capability}.quotas.clusterwide", config.name if config is not None else ""
    because = (Because(key_in(PAAS_CONFIG, name, ""), line, "true"),) if name else ()
    ends = (edit(PAAS_CONFIG, name, f"set {line} to false"),) if name else ("it goes when a PaasConfig is there",)
    return Origin(f"quota/{capability}", f"annotation {SHARED}: {SHARED_QUOTA}", because, ends)
