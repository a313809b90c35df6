"""What one apply would change and give up, and who owns a field, by example."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from tenantry.model.difference import Difference, as_apply_entries, difference, entries_of, is_shared, is_sole_owner, owns
from tenantry.model.kinds import Object

US = "tenantry-test"
OTHER = "kubectl"


def thing(*entries: Object, **fields: Any) -> Object:
    metadata = {"name": "x", "uid": "u", **fields.pop("metadata", {}), "managedFields": list(entries)}
    return {"apiVersion": "v1", "kind": "Thing", "metadata": metadata, **fields}


def entry(fields: Object, operation: str = "Apply", manager: str = US, subresource: str = "") -> Object:
    made = {"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields}
    return {**made, "subresource": subresource} if subresource else made


def want(**fields: Any) -> Object:
    return {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "x", **fields.pop("metadata", {})}, **fields}


def test_an_object_that_is_not_there_is_created() -> None:
    """Without a live object every field is listed, but not the name, and the difference says created."""
    wanted = want(metadata={"namespace": "n", "labels": {"team": "a"}}, data={"values.yaml": ""}, spec={"ingress": []})
    assert difference(wanted, None, manager=US) == Difference(
        ("metadata.labels[team]", "data[values.yaml]", "spec.ingress"), created=True
    )


@pytest.mark.parametrize(
    ("wanted", "live", "changed"),
    [
        (want(data={"a": "1"}), thing(data={"a": "1", "b": "2"}), ()),
        (want(data={"a": "1"}), thing(data={"a": "2"}), ("data[a]",)),
        (want(data={"a": ""}), thing(), ("data[a]",)),
        (want(data={"a": ""}), thing(data=None), ("data[a]",)),
        (want(metadata={"labels": {"a.b/c": "1"}}), thing(), ("metadata.labels[a.b/c]",)),
        (want(metadata={"labels": {"a.b/c": "1"}}), thing(metadata={"labels": {"a.b/c": "2"}}), ("metadata.labels[a.b/c]",)),
        (want(metadata={"annotations": {"x": "1"}}), thing(metadata={"labels": {"x": "1"}}), ("metadata.annotations[x]",)),
        (want(metadata={"uid": "other", "resourceVersion": "7", "namespace": "n"}), thing(), ()),
        (want(flag=False), thing(), ("flag",)),
        (want(flag=False), thing(flag=True), ("flag",)),
        (want(spec={"ingress": []}), thing(spec={}), ()),
        (want(spec={"ingress": []}), thing(spec={"ingress": [{}]}), ("spec.ingress",)),
        (want(spec={"ingress": [{"a": 1}]}), thing(spec={"ingress": [{"a": 1, "b": 2}]}), ("spec.ingress",)),
        (want(spec={"types": ["A", "B"]}), thing(spec={"types": ["B", "A"]}), ("spec.types",)),
        (want(spec={"a": {}}), thing(spec={"a": {"b": 1}}), ()),
        (want(spec={"a": {}, "b": []}), thing(), ()),
        (want(spec={"a": {"b": "1"}}), thing(), ("spec.a.b",)),
        (want(spec={"a": None}), thing(spec={}), ()),
        (want(spec={"podSelector": {}}), thing(spec={"podSelector": {}}), ()),
        (want(spec={"podSelector": {}}), thing(spec={"podSelector": {"matchLabels": {"a": "b"}}}), ("spec.podSelector",)),
        (want(spec={"podSelector": {}}), thing(spec={}), ("spec.podSelector",)),
        (want(roleRef={"name": "a"}), thing(roleRef={"name": "a", "kind": "Role"}), ("roleRef",)),
        (want(metadata={"finalizers": ["a"]}), thing(metadata={"finalizers": ["b", "a"]}), ()),
        (want(metadata={"finalizers": ["a"]}), thing(metadata={"finalizers": ["b"]}), ("metadata.finalizers[a]",)),
        (want(metadata={"finalizers": ["a"]}), thing(), ("metadata.finalizers[a]",)),
        (want(secrets=[{"name": "a"}]), thing(secrets=[{"name": "b"}, {"name": "a", "more": 1}]), ()),
        (want(secrets=[{"name": "a"}]), thing(secrets=[{"name": "b"}]), ("secrets[a]",)),
        (
            want(metadata={"ownerReferences": [{"uid": "1", "name": "n"}]}),
            thing(metadata={"ownerReferences": [{"uid": "1", "name": "o"}]}),
            ("metadata.ownerReferences[1].name",),
        ),
        (want(imagePullSecrets=[{"name": "a"}]), thing(imagePullSecrets=[{"name": "a"}, {"name": "b"}]), ("imagePullSecrets",)),
        # Names with a meaning elsewhere are plain keys in labels and data.
        (want(data={"lastTransitionTime": "1"}), thing(data={"lastTransitionTime": "2"}), ("data[lastTransitionTime]",)),
        (want(data={"conditions": "1"}), thing(data={"conditions": "2"}), ("data[conditions]",)),
        (want(metadata={"labels": {"name": "1"}}), thing(metadata={"labels": {"name": "2"}}), ("metadata.labels[name]",)),
        (
            want(spec={"selector": {"matchLabels": {"a": "1"}}}),
            thing(spec={"selector": {"matchLabels": {}}}),
            ("spec.selector.matchLabels[a]",),
        ),
    ],
)
def test_changed_fields(wanted: Object, live: Object, changed: tuple[str, ...]) -> None:
    """Values, missing fields, whole lists, merged lists and atomic maps differ as the API would treat them."""
    found = difference(wanted, live, manager=US)
    assert (found.changed if found else ()) == changed
    assert found is None or (found.given_up, found.created, found.migrate) == ((), False, False)


def of_kind(kind: str, **spec: Any) -> Object:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}, "spec": spec}


@pytest.mark.parametrize(
    ("wanted", "live", "changed"),
    [
        (of_kind("ResourceQuota", hard={"cpu": "1000m"}), of_kind("ResourceQuota", hard={"cpu": "1", "pods": "9"}), ()),
        (of_kind("ResourceQuota", hard={"cpu": 2}), of_kind("ResourceQuota", hard={"cpu": "1"}), ("spec.hard.cpu",)),
        (
            of_kind("LimitRange", limits=[{"type": "Container", "default": {"memory": "1Gi"}}]),
            of_kind("LimitRange", limits=[{"type": "Container", "default": {"memory": "1024Mi"}}]),
            (),
        ),
        (
            of_kind("LimitRange", limits=[{"type": "Container", "max": {"memory": "1Gi"}}]),
            of_kind("LimitRange", limits=[{"type": "Container", "max": {"memory": "1G"}}]),
            ("spec.limits",),
        ),
        (of_kind("Thing", hard={"cpu": "1000m"}), of_kind("Thing", hard={"cpu": "1"}), ("spec.hard.cpu",)),
    ],
)
def test_quantities_are_compared_as_quantities(wanted: Object, live: Object, changed: tuple[str, ...]) -> None:
    """What the API server writes in its own form is no difference; in kinds that store what was written it is."""
    found = difference(wanted, live, manager=US)
    assert (found.changed if found else ()) == changed


def test_an_entry_that_leaves_a_key_to_its_default_is_not_given_up() -> None:
    """The API server names entries by all keys, also by those that it filled in."""
    port = entry({"f:spec": {"f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}}}}})
    live = thing(port, spec={"ports": [{"port": 80}]})
    assert difference(want(spec={"ports": [{"port": 80}]}), live, manager=US) is None


def test_the_time_of_a_condition_is_no_difference() -> None:
    """A condition is compared without the time that is stamped into it, though we own that field too."""
    fields: Object = {"f:type": {}, "f:status": {}, "f:lastTransitionTime": {}, ".": {}}
    owning = entry({"f:status": {"f:conditions": {'k:{"type":"Ready"}': fields}}}, subresource="status")
    live = thing(owning, status={"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "then"}]})
    wanted = want(status={"conditions": [{"type": "Ready", "status": "True"}]})
    assert difference(wanted, live, manager=US, subresource="status") is None
    wanted["status"]["conditions"][0]["status"] = "False"
    found = difference(wanted, live, manager=US, subresource="status")
    assert found == Difference(("status.conditions[Ready].status",))


@pytest.mark.parametrize(
    ("fields", "wanted", "given_up"),
    [
        ({"f:metadata": {"f:labels": {".": {}, "f:a": {}}}}, want(metadata={"labels": {"a": "1"}}), ()),
        ({"f:metadata": {"f:labels": {".": {}, "f:a": {}}}}, want(metadata={"labels": {}}), ("metadata.labels[a]",)),
        ({"f:metadata": {"f:labels": {".": {}, "f:a": {}}}}, want(), ("metadata.labels",)),
        ({"f:metadata": {"f:finalizers": {".": {}, 'v:"a:b/c"': {}}}}, want(metadata={"finalizers": ["a:b/c"]}), ()),
        ({"f:metadata": {"f:finalizers": {'v:"a"': {}}}}, want(metadata={"finalizers": ["b"]}), ("metadata.finalizers[a]",)),
        ({"f:secrets": {'k:{"name":"a"}': {".": {}, "f:name": {}}}}, want(secrets=[{"name": "a"}]), ()),
        ({"f:secrets": {'k:{"name":"a"}': {".": {}, "f:name": {}}}}, want(secrets=[]), ("secrets[a]",)),
        ({"f:secrets": {'k:{"name":"a"}': {"f:more": {}}}}, want(secrets=[{"name": "a"}]), ("secrets[a].more",)),
        ({"f:ports": {'k:{"port":80,"protocol":"TCP"}': {}}}, want(ports=[{"port": 80, "protocol": "TCP"}]), ()),
        ({"f:ports": {'k:{"port":80,"protocol":"TCP"}': {}}}, want(ports=["x", {"port": 81}]), ("ports[80,TCP]",)),
        ({"f:spec": {"f:egress": {}, "f:podSelector": {}}}, want(spec={"podSelector": {}}), ("spec.egress",)),
        ({"f:data": {"f:lastTransitionTime": {}}}, want(data={"a": "1"}), ("data[lastTransitionTime]",)),
        ({"f:spec": {"f:a": {"f:b": {}}}}, want(spec={"a": "text"}), ("spec.a.b",)),
        ({"f:secrets": {'k:{"name":"a"}': {}}}, want(secrets=None), ("secrets[a]",)),
    ],
)
def test_given_up_fields(fields: Object, wanted: Object, given_up: tuple[str, ...]) -> None:
    """Fields of our last apply that are no longer wanted are given up, by map key, list key and set value."""
    live = {**deepcopy(wanted), **thing(entry(fields), metadata=deepcopy(wanted["metadata"]))}
    found = difference(wanted, live, manager=US)
    assert (found.given_up if found else ()) == given_up
    assert found is None or not found.migrate


def test_only_our_own_entry_of_the_subresource_counts() -> None:
    """Fields of other managers and of other subresources are not ours to give up."""
    fields: Object = {"f:metadata": {"f:labels": {"f:a": {}}}}
    live = thing(entry(fields, manager=OTHER), entry(fields, subresource="status"), metadata={"labels": {"a": "1"}})
    assert difference(want(), live, manager=US) is None
    found = difference(want(), live, manager=US, subresource="status")
    assert found == Difference(given_up=("metadata.labels",))
    assert entries_of(live, US, "status") == [live["metadata"]["managedFields"][1]]


def test_fields_of_a_plain_update_need_a_migration() -> None:
    """Fields recorded by our create cannot be given up by an apply alone; each path is named once."""
    fields: Object = {"f:metadata": {"f:labels": {".": {}, "f:a": {}}}}
    live = thing(entry(fields, "Update"), entry(fields), metadata={"labels": {"a": "1"}})
    found = difference(want(metadata={"labels": {}}), live, manager=US)
    assert found == Difference(given_up=("metadata.labels[a]",), migrate=True)
    assert str(found) == "- metadata.labels[a]"
    assert difference(want(metadata={"labels": {"a": "1"}}), live, manager=US) is None


def test_change_and_loss_are_rendered_together() -> None:
    """The text of a difference has changed fields first, then those that are given up."""
    assert str(Difference(("a", "b"), ("c",))) == "~ a, ~ b, - c"


def test_folding_updates_into_an_apply() -> None:
    """Our entries become one apply that owns their union; entries of others and of subresources stay."""
    first = entry({"f:data": {"f:a": {}}}, "Update")
    second = entry({"f:data": {"f:b": {}}, "f:metadata": {"f:labels": {".": {}}}})
    status, foreign = entry({"f:status": {}}, subresource="status"), entry({"f:data": {}}, "Update", OTHER)
    live = thing(first, status, foreign, second)
    before = deepcopy(live)
    union = {"f:data": {"f:a": {}, "f:b": {}}, "f:metadata": {"f:labels": {".": {}}}}
    assert as_apply_entries(live, US) == [status, foreign, {**first, "operation": "Apply", "fieldsV1": union}]
    assert live == before


def test_folding_nothing_changes_nothing() -> None:
    """Without an entry of ours the entries stay as they are, also when there are none."""
    foreign = entry({"f:data": {}}, "Update", OTHER)
    assert as_apply_entries(thing(foreign), US) == [foreign]
    assert as_apply_entries({"metadata": {}}, US) == []


def test_ownership_of_one_field() -> None:
    """A field is owned by whose entry names it; an entry without fields, or one that ends above it, does not."""
    label: Object = {"f:metadata": {"f:labels": {".": {}, "f:a.b/c": {}}}}
    live = thing(entry(label, "Update", OTHER), {**entry({}), "fieldsV1": None}, entry({"f:metadata": {}}))
    path = ("metadata", "labels", "a.b/c")
    assert owns(live, OTHER, *path)
    assert not owns(live, US, *path)
    assert not owns(thing(entry(label, subresource="status")), US, *path)
    assert not owns({"metadata": {"name": "x"}}, US, *path)


def test_sole_ownership() -> None:
    """Giving up a field removes it only when nobody else owns it."""
    label: Object = {"f:metadata": {"f:labels": {"f:a": {}}}}
    path = ("metadata", "labels", "a")
    assert is_sole_owner(thing(entry(label), entry(label, "Update")), US, *path)
    assert not is_sole_owner(thing(entry(label), entry(label, "Update", OTHER)), US, *path)
    assert not is_sole_owner(thing(entry(label, "Update", OTHER)), US, *path)
    assert not is_sole_owner({"metadata": {}}, US, *path)


def test_shared_ownership() -> None:
    """Somebody else's entry at the field or below it makes it shared; ours, and those of subresources, do not."""
    spec: Object = {"f:spec": {"f:a": {}}}
    assert is_shared(thing(entry(spec), entry(spec, "Update", OTHER)), US, "spec")
    assert is_shared(thing(entry(spec, "Update", OTHER)), US, "spec", "a")
    assert not is_shared(thing(entry(spec), entry(spec, "Update")), US, "spec")
    assert not is_shared(thing(entry(spec, "Update", OTHER, subresource="scale")), US, "spec")
    assert not is_shared(thing(entry(spec, "Update", OTHER)), US, "spec", "b")
    assert not is_shared({"metadata": {}}, US, "spec")
