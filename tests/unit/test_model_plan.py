"""Plans: what would really be written, and how a person reads it."""

from __future__ import annotations

import pytest

from tenantry.model import limits
from tenantry.model.conditions import condition, find_condition, stamped
from tenantry.model.difference import Difference
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, ROLE_BINDING, Key, Object, key_of
from tenantry.model.names import PROJECT_ID_LIMIT, field_manager
from tenantry.model.plan import NOTHING, Apply, Change, Delete, Edit, KubernetesEvent, Plan, RemoveFinalizers, RemoveLabel, Write

US = field_manager("test")


def namespace(labels: dict[str, str] | None = None, **metadata: object) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a1", "labels": labels or {}, **metadata}}


def config_map(**data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n"}, "data": data}


@pytest.mark.parametrize(
    ("write", "text"),
    [
        (Apply(CONFIG_MAP, config_map(a="1"), None), "create ConfigMap n/c"),
        (Apply(CONFIG_MAP, config_map(a="1"), config_map(a="2")), "update ConfigMap n/c: ~ data[a]"),
        (Apply(CONFIG_MAP, config_map(a="1"), config_map(a="1", b="2")), None),
        (
            Apply(NAMESPACE, {**namespace(), "status": {"x": "1"}}, namespace(), subresource="status"),
            "status Namespace a1: ~ status.x",
        ),
        (Apply(NAMESPACE, {**namespace(), "status": {"x": "1"}}, None, subresource="status"), "status Namespace a1"),
        (Delete(CONFIG_MAP, config_map()), "delete ConfigMap n/c"),
        (RemoveLabel(NAMESPACE, namespace({"team": "x"}), "team"), "update Namespace a1: - metadata.labels[team]"),
        (RemoveLabel(NAMESPACE, namespace({"team": "x"}), "other"), None),
        (
            RemoveFinalizers(NAMESPACE, namespace(finalizers=["a/x", "b/y"]), ("b/y", "c/z")),
            "update Namespace a1: - metadata.finalizers[b/y]",
        ),
        (RemoveFinalizers(NAMESPACE, namespace(finalizers=["a/x"]), ("b/y",)), None),
        (RemoveFinalizers(NAMESPACE, namespace(), ("b/y",)), None),
        (Edit(CONFIG_MAP, config_map(), ({"op": "add", "path": "/data/a", "value": "1"},)), "update ConfigMap n/c: ~ /data/a"),
        (Edit(CONFIG_MAP, config_map(), ()), None),
    ],
)
def test_changes_are_what_would_be_written(write: Write, text: str | None) -> None:
    """A write over an object that is as it should be is no change; any other names verb, object and why."""
    change = write.change(US)
    assert (None if change is None else str(change)) == text
    assert change is None or change.key == write.key


def test_a_plan_renders_its_changes_in_order() -> None:
    """Stages keep their order, and writes that change nothing are not shown."""
    first = Delete(CONFIG_MAP, config_map(), KubernetesEvent(config_map(), "Restored", "note", "Recreate"))
    same = Apply(CONFIG_MAP, config_map(a="1"), config_map(a="1"))
    last = RemoveLabel(NAMESPACE, namespace({"team": "x"}), "team")
    plan = Plan(((first, same), (), (last,)))
    assert list(plan.writes()) == [first, same, last]
    assert plan.changes(US) == [
        Change("delete", first),
        Change("update", last, Difference(given_up=("metadata.labels[team]",))),
    ]
    assert list(map(str, plan.changes(US))) == ["delete ConfigMap n/c", "update Namespace a1: - metadata.labels[team]"]
    assert Plan(((same,),)).changes(US) == NOTHING.changes(US) == []


def test_keys_name_objects() -> None:
    """A key has an empty namespace for what is cluster-scoped, and reads as kind and place."""
    assert key_of(namespace()) == Key("v1", "Namespace", "", "a1")
    assert str(key_of(config_map())) == "ConfigMap n/c"
    assert Apply(CONFIG_MAP, config_map(), None).key == Delete(CONFIG_MAP, config_map()).key == key_of(config_map())


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (NAMESPACE.path(), "/api/v1/namespaces"),
        (NAMESPACE.path("ignored", "a1"), "/api/v1/namespaces/a1"),
        (CONFIG_MAP.path("n", "c"), "/api/v1/namespaces/n/configmaps/c"),
        (CONFIG_MAP.path(), "/api/v1/configmaps"),
        (ROLE_BINDING.path("n", "a:b"), "/apis/rbac.authorization.k8s.io/v1/namespaces/n/rolebindings/a:b"),
        (CONFIG_MAP.path("../x", "a/b?c#d%"), "/api/v1/namespaces/..%2Fx/configmaps/a%2Fb%3Fc%23d%25"),
    ],
)
def test_paths_keep_foreign_names_in_one_segment(path: str, expected: str) -> None:
    """Names from events are quoted, so that none of them reaches another path."""
    assert path == expected
    assert (NAMESPACE.group, ROLE_BINDING.group, str(NAMESPACE)) == ("", "rbac.authorization.k8s.io", "Namespace.v1")


def test_the_longest_project_id() -> None:
    """48 characters of project id fit into the name of a registration namespace."""
    assert PROJECT_ID_LIMIT == 48


# -- conditions ----------------------------------------------------------------------------------------------


def with_conditions(*conditions: Object) -> Object:
    return {"status": {"conditions": list(conditions)}}


def test_a_condition_is_made_without_a_clock() -> None:
    """Type, status, reason, a bounded message, and the generation where the object has one."""
    made = condition("Ready", "False", "Why", "x" * 2000, generation=3)
    assert made == {
        "type": "Ready",
        "status": "False",
        "reason": "Why",
        "message": "x" * limits.MESSAGE_CHARACTERS,
        "observedGeneration": 3,
    }
    assert "observedGeneration" not in condition("Ready", "True", "Why", "")


@pytest.mark.parametrize("obj", [None, {}, {"status": None}, {"status": {}}, {"status": {"conditions": None}}, with_conditions()])
def test_no_condition_is_found_where_none_is(obj: Object | None) -> None:
    """Objects without status or conditions have no condition."""
    assert find_condition(obj, "Ready") is None


def test_a_condition_is_found_by_its_type() -> None:
    """The condition of that type, not the first."""
    assert find_condition(with_conditions({"type": "A"}, {"type": "B", "n": 1}), "B") == {"type": "B", "n": 1}


@pytest.mark.parametrize(
    ("live", "since"),
    [
        (None, "now"),
        (with_conditions({"type": "Ready", "status": "True", "lastTransitionTime": "then"}), "now"),
        (with_conditions({"type": "Ready", "status": "False", "lastTransitionTime": "then"}), "then"),
        (with_conditions({"type": "Ready", "status": "False"}), "now"),
        (with_conditions({"type": "Other", "status": "False", "lastTransitionTime": "then"}), "now"),
    ],
)
def test_the_time_changes_with_the_status_only(live: Object | None, since: str) -> None:
    """A condition keeps its time while its status stays; another message does not move it."""
    wanted = with_conditions({"type": "Ready", "status": "False", "message": "new"})
    made = stamped(wanted, live, "now")
    assert made == with_conditions({"type": "Ready", "status": "False", "message": "new", "lastTransitionTime": since})
    assert "lastTransitionTime" not in wanted["status"]["conditions"][0]


@pytest.mark.parametrize("wanted", [{}, {"status": None}, {"status": {"phase": "Active"}}])
def test_objects_without_conditions_are_not_stamped(wanted: Object) -> None:
    """Nothing is added where there is no condition."""
    assert stamped(wanted, None, "now") is wanted


def test_plan_within_a_plan_is_part_of_it() -> None:
    """The writes of a plan that stands in a stage count like any other."""
    first, second, third = (Delete(CONFIG_MAP, {**config_map(), "kind": f"ConfigMap{number}"}) for number in range(3))

    plan = Plan(((first, Plan(((second,), (third,)))),))

    assert [first, second, third] == list(plan.writes())
    assert len(plan.changes(US)) == 3
