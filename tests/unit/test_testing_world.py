"""The recorded history of the proof kit: what counts as there to stay."""

from __future__ import annotations

from typing import Any, cast

from tenantry.api import Api
from tenantry.local.backlog import Verb
from tenantry.model.kinds import CLUSTER_ROLE, SCOPE_TEMPLATE, Key, Kind, Object
from tenantry.testing.world import World, uid_gone

TAG = "r000001r"


def told(world: World, verb: Any, kind: Kind, name: str, uid: str, *owners: Object) -> None:
    metadata: Object = {"name": f"{name}-{TAG}", "uid": uid, "resourceVersion": "1", "ownerReferences": list(owners)}
    world._teller(kind)(verb, "", metadata["name"], {"metadata": metadata})


def test_what_the_garbage_collector_takes_is_not_owned() -> None:
    """An object whose owner is gone is left out; one of an owner of another kind, or of none, is not."""
    world = World(cast(Api, None), [SCOPE_TEMPLATE, CLUSTER_ROLE])
    told(world, "add", SCOPE_TEMPLATE, "st", "t")
    told(world, "add", CLUSTER_ROLE, "ours", "1", {"kind": "ScopeTemplate", "uid": "t"})
    told(world, "add", CLUSTER_ROLE, "other", "2", {"kind": "Deployment", "uid": "d"})
    told(world, "add", CLUSTER_ROLE, "free", "3")
    assert sorted(obj["metadata"]["uid"] for obj in world.owned(TAG).values()) == ["1", "2", "3", "t"]
    told(world, "delete", SCOPE_TEMPLATE, "st", "t")
    assert sorted(obj["metadata"]["uid"] for obj in world.owned(TAG).values()) == ["2", "3"]
    assert sorted(obj["metadata"]["uid"] for obj in world.of(TAG).values()) == ["1", "2", "3"]


def test_what_the_answer_to_a_deletion_says_is_gone() -> None:
    """A Status names the uid of what is gone; an object that waits for its finalizers is no Status, and an error has no uid."""
    assert uid_gone({"kind": "Status", "status": "Success", "details": {"name": "n", "uid": "u"}}) == "u"
    assert uid_gone({"kind": "ConfigMap", "metadata": {"uid": "u"}}) == ""
    assert uid_gone({"kind": "Status", "status": "Failure"}) == uid_gone({}) == ""


def test_what_somebody_else_deleted_is_taken_until_it_is_made_again() -> None:
    """A deletion by the function takes nothing from it."""
    world = World(cast(Api, None), [CLUSTER_ROLE])
    world.follow(TAG)
    key = Key(CLUSTER_ROLE.api_version, CLUSTER_ROLE.kind, "", f"ours-{TAG}")
    for version, verb in enumerate(("add", "delete", "add", "update"), 1):
        metadata: Object = {"name": key.name, "uid": "1", "resourceVersion": str(version)}
        world._teller(CLUSTER_ROLE)(cast(Verb, verb), "", key.name, {"metadata": metadata})

    def taken(writers: dict[tuple[Key, int], str]) -> list[bool]:
        """Before each of the four changes."""
        return [key in moment.taken for moment in world.moments(TAG, writers)]

    assert taken({}) == [False, False, True, False]
    assert taken({(key, -1): "function"}) == [False] * 4


def test_what_all_runs_share_is_in_the_history_of_each() -> None:
    """And in the end it is told apart: it belongs to no run."""
    world = World(cast(Api, None), [CLUSTER_ROLE], [SCOPE_TEMPLATE])
    other = "r000002r"
    for tag in (TAG, other):
        world.follow(tag)
    metadata: Object = {"name": "shared", "uid": "1", "resourceVersion": "1"}
    for kind in (SCOPE_TEMPLATE, CLUSTER_ROLE):
        world._teller(kind)("add", "", "shared", {"metadata": metadata})
    assert [[change.key.kind for change in world.changes(tag)] for tag in (TAG, other)] == [[SCOPE_TEMPLATE.kind]] * 2
    assert [obj["kind"] for obj in world.shared()] == [SCOPE_TEMPLATE.kind]
    assert not world.of(TAG)
