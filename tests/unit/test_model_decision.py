"""A decision as an event's data: names of objects, fields and subjects, no values, and bounded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tenantry.model import limits
from tenantry.model.decision import Cause, DecisionMade, WriteMade, subject_name, write_made
from tenantry.model.kinds import CONFIG_MAP, ROLE_BINDING, SECRET, Key, Object, object_of
from tenantry.model.plan import Apply, Change, Delete, RemoveLabel
from tenantry.testing.objects import obj

RBAC = "rbac.authorization.k8s.io"
STORED = {"metadata": {"resourceVersion": "7"}}


def binding(*users: str, **metadata: Any) -> Object:
    subjects = [{"kind": "User", "name": each, "apiGroup": RBAC} for each in users]
    made = object_of(ROLE_BINDING, {"name": "b", "namespace": "n", **metadata})
    return {**made, "roleRef": {"kind": "Role", "name": "r", "apiGroup": RBAC}, "subjects": subjects}


def change(write: Any) -> Change:
    found = write.change("ours")
    assert found is not None
    return found  # type: ignore[no-any-return]


def decision(*writes: WriteMade) -> DecisionMade:
    return DecisionMade("u", "o/1", (Cause(),), 0, {}, 0, writes, (), 204, "done", True, 1.5, 20)


def test_a_write_has_no_values() -> None:
    """Of a Secret the names of its fields are told; what they hold is not."""
    secret = object_of(SECRET, {"name": "s", "namespace": "n", "annotations": {"a": "v4lue"}}) | {
        "data": {"password": "djRsdWU="}
    }
    made = write_made(change(Apply(SECRET, secret, None)), STORED)
    text = json.dumps(made.document())

    assert made.changed == ("metadata.annotations[a]", "data[password]")
    assert (made.verb, made.version) == ("create", "7")
    assert "v4lue" not in text
    assert "djRsdWU" not in text


@pytest.mark.parametrize(
    ("write", "added", "removed"),
    [
        (Apply(ROLE_BINDING, binding("alice", "bob"), None), ("User/alice", "User/bob"), ()),
        (Apply(ROLE_BINDING, binding("alice"), binding("bob", uid="1", resourceVersion="6")), ("User/alice",), ("User/bob",)),
        (Delete(ROLE_BINDING, binding("bob", uid="1", resourceVersion="6")), (), ("User/bob",)),
        (RemoveLabel(ROLE_BINDING, binding("bob", uid="1", resourceVersion="6", labels={"l": "v"}), "l"), (), ()),
    ],
)  # fmt: skip
def test_of_a_binding_who_came_and_who_went_is_told(write: Any, added: tuple[str, ...], removed: tuple[str, ...]) -> None:
    """Made, changed, deleted, or changed elsewhere: the role, and the subjects that have it now or no more."""
    made = write_made(change(write), STORED)

    assert (made.role, made.added, made.removed) == ("Role/r", added, removed)


def test_what_is_deleted_has_no_version() -> None:
    """The version that an object was deleted in is none that it is left with."""
    live = obj(CONFIG_MAP, "c", "n", uid="1", resourceVersion="6")
    assert write_made(change(Delete(CONFIG_MAP, live)), live).version == ""


def test_subjects_have_names() -> None:
    """A ServiceAccount has its namespace in it; a name that somebody made very long is cut."""
    assert subject_name({"kind": "ServiceAccount", "namespace": "n", "name": "a"}) == "ServiceAccount/n/a"
    assert len(subject_name({"kind": "User", "name": "u" * 100_000})) == limits.DECISION_NAME_CHARACTERS + len("User/")


def test_a_decision_of_very_many_writes_is_several_events() -> None:
    """Each names no more than fits, together they have every write once, in order, and each says which part it is."""
    key = Key("v1", "ConfigMap", "n", "c")
    writes = [WriteMade("update", key, str(number), ("data",) * 9) for number in range(1000)]
    documents = list(decision(*writes).documents())

    assert [(each["part"], each["parts"]) for each in documents] == [(n, len(documents)) for n in range(1, len(documents) + 1)]
    assert [write["resourceVersion"] for each in documents for write in each["writes"]] == [str(n) for n in range(1000)]
    assert {len(each["writes"]) for each in documents} == {limits.DECISION_TEXTS // 10}


def test_one_write_that_names_too_much_is_cut_and_says_so() -> None:
    """Fields and subjects beyond the limit are counted; the write itself is always there."""
    data = {f"k{number}": "v" for number in range(limits.DECISION_FIELDS + 5)}
    made = write_made(
        change(Apply(CONFIG_MAP, object_of(CONFIG_MAP, {"name": "c", "namespace": "n"}) | {"data": data}, None)), STORED
    )
    many = write_made(change(Apply(ROLE_BINDING, binding(*map(str, range(limits.DECISION_SUBJECTS + 3))), None)), STORED)

    assert (len(made.changed), made.left_out) == (limits.DECISION_FIELDS, 5)
    assert (len(many.added), many.subjects_left_out) == (limits.DECISION_SUBJECTS, 3)
    assert [each["part"] for each in decision(made, many, many).documents()] == [1, 2]


def test_without_writes_there_is_one_event() -> None:
    """A run that ended otherwise than the one before is told, too."""
    (document,) = decision().documents()
    assert (document["writes"], document["causes"], document["beganMs"]) == ([], [{"sweep": True}], 1500)
