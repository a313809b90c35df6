"""What a write makes of an object, by example: what fields have, who owns them, and what goes."""

from __future__ import annotations

from typing import Any

import pytest

from tenantry.model.comparison import Schema
from tenantry.model.difference import difference
from tenantry.model.field_sets import fields_in, leaves
from tenantry.model.kinds import Object
from tenantry.model.written import BadPatchError, applied, created, filled, fixed_change, patched, same_content, updated

US, OTHER = "tenantry-test", "kubectl"
PORTS = Schema(keys=("port",), other=Schema())
SCHEMA = Schema(
    properties={
        "spec": Schema(properties={"ports": PORTS, "names": Schema(keys=()), "ref": Schema(atomic=True)}),
        "status": Schema(properties={"conditions": Schema(keys=("type",), other=Schema())}),
    }
)


def want(**parts: Any) -> Object:
    return {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "x", **parts.pop("metadata", {})}, **parts}


def by(obj: Object, manager: str) -> set[str]:
    """The fields of a manager, as paths."""
    found = [each["fieldsV1"] for each in obj["metadata"].get("managedFields") or () if each["manager"] == manager]
    return {"/".join(path) for each in found for path in leaves(each)}


def test_what_was_applied_before_and_is_left_out_goes() -> None:
    """An apply gives up what it does not name any more; nothing of others goes."""
    live = applied(want(metadata={"labels": {"a": "1", "b": "1"}}), None, SCHEMA, manager=US)
    live = applied(want(metadata={"labels": {"c": "1"}}), live, SCHEMA, manager=OTHER)
    after = applied(want(metadata={"labels": {"a": "2"}}), live, SCHEMA, manager=US)

    assert after["metadata"]["labels"] == {"a": "2", "c": "1"}
    assert (by(after, US), by(after, OTHER)) == ({"f:metadata/f:labels/f:a"}, {"f:metadata/f:labels/f:c"})


def test_what_another_one_owns_too_stays() -> None:
    """A field that two applied with the same value stays when one gives it up."""
    live = applied(want(metadata={"labels": {"a": "1"}}), None, SCHEMA, manager=OTHER)
    live = applied(want(metadata={"labels": {"a": "1"}}), live, SCHEMA, manager=US)
    after = applied(want(), live, SCHEMA, manager=US)

    assert after["metadata"]["labels"] == {"a": "1"}
    assert by(after, US) == set()


def test_a_forced_apply_takes_what_it_changes() -> None:
    """Who changes a field by a forced apply is its only owner."""
    live = applied(want(spec={"ref": {"name": "a"}}), None, SCHEMA, manager=OTHER)
    after = applied(want(spec={"ref": {"name": "b"}}), live, SCHEMA, manager=US)

    assert after["spec"] == {"ref": {"name": "b"}}
    assert (by(after, US), by(after, OTHER)) == ({"f:spec/f:ref"}, set())


def test_keyed_lists_and_sets_are_merged_and_others_replaced() -> None:
    """Entries are known by their keys, values by themselves, and an entry that is given up goes as a whole."""
    live = applied(want(spec={"ports": [{"port": 1, "name": "a"}], "names": ["x"], "plain": [1]}), None, SCHEMA, manager=OTHER)
    live = applied(want(spec={"ports": [{"port": 2, "name": "b"}], "names": ["y"], "plain": [2]}), live, SCHEMA, manager=US)
    assert live["spec"] == {"ports": [{"port": 1, "name": "a"}, {"port": 2, "name": "b"}], "names": ["x", "y"], "plain": [2]}

    after = applied(want(spec={"names": ["y"]}), live, SCHEMA, manager=US)
    assert after["spec"] == {"ports": [{"port": 1, "name": "a"}], "names": ["x", "y"]}


@pytest.mark.parametrize("gives_up", [False, True])
def test_after_an_apply_nothing_differs(gives_up: bool) -> None:
    """The rule that says what has to be written finds nothing in what an apply has made, nor in what gave something up."""
    body = want(metadata={"labels": {"a": "1"}, "finalizers": ["x/y"]}, spec={"ports": [{"port": 1}], "ref": {}})
    made = applied(body, None, SCHEMA, manager=US)
    if gives_up:
        body = want(spec={"ports": []})
        made = applied(body, made, SCHEMA, manager=US)

    assert difference(body, made, manager=US) is None


def test_the_status_is_written_by_itself() -> None:
    """An apply of the status changes nothing else, and is an entry of its own; one of the rest leaves the status."""
    live = applied(want(spec={"a": 1}), None, SCHEMA, manager=US, has_status=True)
    status = {"conditions": [{"type": "Ready", "status": "True"}]}
    told = applied(want(status=status, spec={"a": 2}), live, SCHEMA, manager=US, subresource="status", has_status=True)
    assert (told["spec"], told["status"]) == ({"a": 1}, status)

    after = applied(want(spec={"a": 3}, status={}), told, SCHEMA, manager=US, has_status=True)
    assert (after["spec"], after["status"]) == ({"a": 3}, status)
    over = applied(want(), after, SCHEMA, manager=US, subresource="status", has_status=True)
    assert "status" not in over


def test_a_create_owns_by_an_update() -> None:
    """What is created is owned by an update of its manager, as the API server has it, so a later apply has to migrate it."""
    made = created(want(metadata={"labels": {"a": "1"}}), SCHEMA, manager=US)
    found = difference(want(), made, manager=US)

    assert made["metadata"]["managedFields"][0]["operation"] == "Update"
    assert found is not None
    assert found.migrate


def test_an_update_owns_what_it_changes() -> None:
    """Of an update by hand the hand owns what it changed, and nobody what it removed."""
    live = applied(want(metadata={"labels": {"a": "1", "b": "1"}}), None, SCHEMA, manager=US)
    after = updated(want(metadata={**live["metadata"], "labels": {"a": "2"}}), live, SCHEMA, manager=OTHER)

    assert (by(after, US), by(after, OTHER)) == (set(), {"f:metadata/f:labels/f:a"})


def test_who_writes_the_owners_has_said_them() -> None:
    """An update of ``managedFields`` themselves is taken as it is."""
    live = applied(want(metadata={"labels": {"a": "1"}}), None, SCHEMA, manager=US)
    entries = [{**live["metadata"]["managedFields"][0], "manager": OTHER}]
    after = updated(want(metadata={**live["metadata"], "managedFields": entries}), live, SCHEMA, manager=US)

    assert (by(after, US), by(after, OTHER)) == (set(), {"f:metadata/f:labels/f:a"})


def test_defaults_are_filled_in_where_there_is_a_map() -> None:
    """A default counts where its map is there, also in entries of lists; what is given stays."""
    schema = Schema(
        properties={
            "spec": Schema(
                properties={"mode": Schema(default="a"), "of": Schema(other=Schema(properties={"n": Schema(default=1)}))}
            )
        }
    )

    assert filled({"spec": {"of": [{}, {"n": 2}]}}, schema) == {"spec": {"mode": "a", "of": [{"n": 1}, {"n": 2}]}}
    assert filled({}, schema) == {}


@pytest.mark.parametrize(
    ("operations", "after"),
    [
        ([{"op": "add", "path": "/metadata/labels/a~1b", "value": "2"}], {"a/b": "2", "c": "1"}),
        (
            [{"op": "test", "path": "/metadata/labels/c", "value": "1"}, {"op": "remove", "path": "/metadata/labels/c"}],
            {"a/b": "1"},
        ),
        ([{"op": "replace", "path": "/metadata/labels", "value": {}}], {}),
    ],
)
def test_a_json_patch_is_carried_out(operations: list[Object], after: Object) -> None:
    """Steps are done in order on a copy."""
    live = want(metadata={"labels": {"a/b": "1", "c": "1"}})

    assert patched(live, operations)["metadata"]["labels"] == after
    assert live["metadata"]["labels"] == {"a/b": "1", "c": "1"}


@pytest.mark.parametrize(
    "step",
    [
        {"op": "test", "path": "/metadata/name", "value": "y"},
        {"op": "remove", "path": "/spec"},
        {"op": "replace", "path": "/spec", "value": 1},
        {"op": "add", "path": "/a/b/c", "value": 1},
        {"op": "replace", "path": "/list/7", "value": 1},
        {"op": "move", "path": "/list", "from": "/x"},
    ],
)
def test_a_json_patch_that_does_not_fit_is_an_error(step: Object) -> None:
    """A test that fails and a place that is not there are named."""
    with pytest.raises(BadPatchError, match=step["path"]):
        patched(want(list=[1]), [step])


def test_entries_of_lists_are_added_and_replaced() -> None:
    """A dash is behind the last entry."""
    steps = [{"op": "add", "path": "/list/-", "value": 3}, {"op": "replace", "path": "/list/0", "value": 0}]
    assert patched(want(list=[1, 2]), [*steps, {"op": "add", "path": "/list/1", "value": 9}])["list"] == [0, 9, 2, 3]


def test_what_nobody_may_change_is_known() -> None:
    """Immutable data, and fields that are fixed once an object is there."""
    fixed = {"kind": "ConfigMap", "immutable": True, "data": {"a": "1"}}
    assert "data" in fixed_change(fixed, {"kind": "ConfigMap", "immutable": True, "data": {"a": "2"}})
    assert "immutable" in fixed_change(fixed, {"kind": "ConfigMap", "data": {"a": "1"}})
    assert not fixed_change(fixed, fixed)
    binding = {"kind": "RoleBinding", "roleRef": {"name": "a"}}
    assert "roleRef" in fixed_change(binding, {"kind": "RoleBinding", "roleRef": {"name": "b"}})
    assert not fixed_change({"kind": "Thing"}, {"kind": "Thing", "roleRef": 1})


def test_times_and_versions_are_no_content() -> None:
    """An apply that changes nothing leaves the same content."""
    live = applied(want(spec={"a": 1}), None, SCHEMA, manager=US)
    live["metadata"]["resourceVersion"] = "1"
    live["metadata"]["managedFields"][0]["time"] = "2024-01-01T00:00:00Z"

    assert same_content(applied(want(spec={"a": 1}), live, SCHEMA, manager=US), live)
    assert not same_content(applied(want(spec={"a": 2}), live, SCHEMA, manager=US), live)


def test_a_list_whose_entries_cannot_be_told_apart_is_one_field() -> None:
    """Keys that are missing, or are there twice, make a list one field."""
    assert fields_in({"ports": [{"name": "a"}]}, Schema(properties={"ports": PORTS})) == {"f:ports": {}}
    assert fields_in({"ports": [{"port": 1}, {"port": 1}]}, Schema(properties={"ports": PORTS})) == {"f:ports": {}}
