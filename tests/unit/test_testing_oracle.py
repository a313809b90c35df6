"""The oracle of the proof kit: what of a run counts."""

from __future__ import annotations

from tenantry.model.kinds import CLUSTER_ROLE, SCOPE_TEMPLATE, Key, Kind, Object
from tenantry.testing.oracle import left_by_owners
from tenantry.testing.world import Change


def state(uid: str, *owners: str, **metadata: str) -> Object:
    return {"metadata": {"name": uid, "uid": uid, "ownerReferences": [{"uid": owner} for owner in owners], **metadata}}


def change(kind: Kind, before: Object | None, after: Object | None) -> Change:
    name = (before or after or {})["metadata"]["name"]
    verb = "delete" if after is None else "add" if before is None else "update"
    return Change(verb, Key(kind.api_version, kind.kind, "", name), before, after, 1, 0.0)  # type: ignore[arg-type]


def test_what_goes_after_its_owners_is_for_the_garbage_collector_to_take() -> None:
    """Also when its owner has only begun to go; not what goes before it, has another owner left, or has none."""
    owner, other, role, free = state("owner"), state("other"), state("role", "owner"), state("free")
    both = state("both", "owner", "other")
    made = [change(SCOPE_TEMPLATE, None, each) for each in (owner, other)]
    made += [change(CLUSTER_ROLE, None, each) for each in (role, both, free)]
    going = [change(CLUSTER_ROLE, each, None) for each in (role, both, free)]
    gone = change(SCOPE_TEMPLATE, owner, None)
    leaving = change(SCOPE_TEMPLATE, owner, state("owner", deletionTimestamp="x"))

    assert left_by_owners([*made, gone, *going]) == {"role"}
    assert left_by_owners([*made, leaving, *going]) == {"role"}
    assert left_by_owners([*made, *going, gone]) == set()
    assert left_by_owners([*made, gone, change(SCOPE_TEMPLATE, other, None), *going]) == {"role", "both"}
    assert left_by_owners([change(CLUSTER_ROLE, None, role), change(CLUSTER_ROLE, role, None)]) == set(), "an owner nobody saw"
