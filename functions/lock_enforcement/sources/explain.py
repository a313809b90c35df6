"""Where the sources of locked kinds come from."""

from __future__ import annotations

from lock_enforcement import NAME
from tenantry.model.difference import entries_of
from tenantry.model.kinds import API_SERVER_SOURCE, HELM_RELEASE, Object, key_of
from tenantry.model.names import LOCKED_CLUSTER_SOURCE, LOCKED_SOURCE, field_manager
from tenantry.model.origin import Because, Looking, Origin
from tenantry.model.rbac import BoundSubject

KINDS = frozenset({API_SERVER_SOURCE})


async def explain(obj: Object, subject: BoundSubject | None, look: Looking) -> Origin | None:
    """The HelmReleases whose objects are watched."""
    del subject
    manager = field_manager(NAME)
    if obj["metadata"]["name"] not in (LOCKED_SOURCE, LOCKED_CLUSTER_SOURCE) or not entries_of(obj, manager):
        return None
    releases = await look.list(HELM_RELEASE, look.config.helm_project_operator.system_namespace)
    because = tuple(Because(key_of(each), "spec.release", "its objects are locked") for each in releases)
    proof = f"its name, and fields of field manager {manager}"
    return Origin("sources/locked", proof, because, ("it goes when no HelmRelease locks a kind that it watches",))
