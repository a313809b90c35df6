"""Why a consumer of a source is locked."""

from __future__ import annotations

from tenantry.model.flux.consumers import CONSUMER_KINDS
from tenantry.model.flux.names import DEFAULT, LOCKED, SUSPENDED_BY_LOCK, TENANCY_PROFILE
from tenantry.model.kinds import Object, annotations_of, key_in
from tenantry.model.origin import Because, Looking, Origin
from tenantry.model.rbac import BoundSubject

KINDS = frozenset(CONSUMER_KINDS)


async def explain(obj: Object, subject: BoundSubject | None, look: Looking) -> Origin | None:
    """The profile that asks for locks; what it uses without a grant its status says."""
    del subject, look
    reason = annotations_of(obj).get(LOCKED, "")
    if not reason:
        return None
    because = (Because(key_in(TENANCY_PROFILE, DEFAULT, ""), "spec.onDenied", "a source of another namespace, and no grant"),)
    place = obj["metadata"]["namespace"]
    end = (
        f"have the owner of its source grant it to namespace {place} with a SourceGrant; `tenantry sources -n {place} --try` asks"
    )
    suspended = f", {SUSPENDED_BY_LOCK}" if SUSPENDED_BY_LOCK in annotations_of(obj) else ""
    proof = f"annotation {LOCKED}: {reason}{suspended}"
    group = obj["apiVersion"].rpartition("/")[0]
    row = next(f"{each.plural}.{each.group}" for each in CONSUMER_KINDS if (each.group, each.kind) == (group, obj["kind"]))
    owner = f"consumer/{place}/{row}:{obj['metadata']['name']}"
    return Origin(owner, proof, because, (end,), "keeps it locked")
