"""What an event asks for, by its type, its payload and its attributes."""

from __future__ import annotations

from typing import Any

import pytest

from tenantry.engine.last_runs import ended
from tenantry.engine.request import Ignore, Look, MalformedRequest, Request, RunOwner, Sweep, request_of
from tenantry.model.event import PING_TYPE, RECONCILE_REQUESTED_TYPE, Event
from tenantry.model.kinds import Key

UPDATE = "dev.knative.apiserver.resource.update"
FUNCTION = "namespace-registration"
NAMED = {"apiversion": "v1", "kind": "ConfigMap", "name": "c", "namespace": "n"}


def asked(type_: str, data: object = None, /, **extensions: str) -> Request:
    return request_of(Event(id="1", source="/s", type=type_, extensions=extensions, data=data), FUNCTION)


def payload(**metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


@pytest.mark.parametrize(
    "verb", ["resource.add", "resource.update", "resource.delete", "ref.add", "ref.update", "ref.delete", "later"]
)
def test_the_type_decides_only_whether_it_is_ours(verb: str) -> None:
    """All events of the API server's source ask to look at the key, whatever they say happened."""
    request = asked(f"dev.knative.apiserver.{verb}", payload(name="c", namespace="n"))
    assert request == Look(Key("v1", "ConfigMap", "n", "c"))


@pytest.mark.parametrize(
    ("data", "extensions", "key"),
    [
        (payload(name="c", namespace="n"), {}, Key("v1", "ConfigMap", "n", "c")),
        (payload(name="c"), {}, Key("v1", "ConfigMap", "", "c")),
        (payload(name="c", namespace=""), {}, Key("v1", "ConfigMap", "", "c")),
        (payload(name="c", namespace=None), {}, Key("v1", "ConfigMap", "", "c")),
        (payload(name="c", namespace=7), {}, Key("v1", "ConfigMap", "", "c")),
        ({"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "namespace": "n"}, {}, Key("v1", "ConfigMap", "n", "c")),
        ({"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "metadata": {}}, {}, Key("v1", "ConfigMap", "", "c")),
        ({"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "metadata": "text"}, {}, Key("v1", "ConfigMap", "", "c")),
        (None, NAMED, Key("v1", "ConfigMap", "n", "c")),
        ({}, NAMED, Key("v1", "ConfigMap", "n", "c")),
        (payload(name="other", namespace="o"), NAMED, Key("v1", "ConfigMap", "o", "other")),
        (payload(name=""), NAMED, Key("v1", "ConfigMap", "n", "c")),
        (payload(name=["x"]), NAMED, Key("v1", "ConfigMap", "n", "c")),
        ({"metadata": {"name": "c"}}, {"apiversion": "v1", "kind": "Namespace"}, Key("v1", "Namespace", "", "c")),
        ({"apiVersion": 1, "kind": None, "metadata": {"name": "c"}}, NAMED, Key("v1", "ConfigMap", "", "c")),
        (None, {"apiversion": "v1", "kind": "Namespace", "name": "a1"}, Key("v1", "Namespace", "", "a1")),
    ],
)
def test_where_the_key_comes_from(data: object, extensions: dict[str, str], key: Key) -> None:
    """Metadata first, then the payload as a reference, then the attributes; name and namespace come from one place."""
    request = asked(UPDATE, data, **extensions)
    assert isinstance(request, Look)
    assert request.key == key


@pytest.mark.parametrize(
    ("data", "extensions"),
    [
        (None, {}),
        ({}, {}),
        (payload(), {}),
        ({"kind": "ConfigMap", "metadata": {"name": "c"}}, {}),
        ({"apiVersion": "v1", "metadata": {"name": "c"}}, {}),
        (None, {"apiversion": "v1", "kind": "ConfigMap"}),
        (None, {"apiversion": "v1", "name": "c"}),
        (None, {"kind": "ConfigMap", "name": "c"}),
        ([], {}),
        ("text", {}),
        (7, {}),
        (b"bytes", {}),
        (b"", {}),
    ],
)
def test_events_that_name_nothing(data: object, extensions: dict[str, str]) -> None:
    """An event of ours that names no object is malformed; the message has nothing of the payload (A4, R11)."""
    with pytest.raises(MalformedRequest, match=r"^(no apiVersion, kind and name|data is not an object)$"):
        asked(UPDATE, data, **extensions)


@pytest.mark.parametrize("name", [".", "..", "a/b", "../../x", "a%2fb"])
def test_names_that_no_object_can_have(name: str) -> None:
    """A name that cannot be a path segment (Kubernetes' rule for all names) is malformed."""
    with pytest.raises(MalformedRequest):
        asked(UPDATE, payload(name=name))


def test_the_hint_is_the_labels_of_the_payload() -> None:
    """Labels with text values are handed on; anything else is dropped, and attributes bring none."""
    labels = {"a": "1", "b": 2, "c": None, "d": ""}
    request = asked(UPDATE, payload(name="c", labels=labels))
    assert isinstance(request, Look)
    assert request.hint == {"a": "1", "d": ""}
    for made in (payload(name="c", labels=["a"]), payload(name="c", labels=None), None):
        request = asked(UPDATE, made, **NAMED)
        assert isinstance(request, Look)
        assert request.hint == {}


@pytest.mark.parametrize(
    ("target", "request_"),
    [(None, Sweep()), (FUNCTION, Sweep()), ("all", Ignore()), ("rbac-aggregation", Ignore()), ("", Ignore())],
)
def test_schedules(target: str | None, request_: Request) -> None:
    """A ping without a target or for this function asks for a sweep; one for another function is nothing of ours."""
    assert asked(PING_TYPE, {"any": "thing"}, **({} if target is None else {"resync": target})) == request_


def test_requests_for_one_owner() -> None:
    """The second level of a fan-out names function, unit and owner; for another function it is nothing of ours."""
    attributes = {"function": FUNCTION, "unit": "projects", "owner": "project/p-a"}
    assert asked(RECONCILE_REQUESTED_TYPE, None, **attributes) == RunOwner("projects", "project/p-a")
    assert asked(RECONCILE_REQUESTED_TYPE, None, **{**attributes, "function": "other"}) == Ignore()
    assert asked(RECONCILE_REQUESTED_TYPE) == Ignore()
    for missing in ("unit", "owner"):
        with pytest.raises(MalformedRequest, match="unit or owner missing"):
            asked(RECONCILE_REQUESTED_TYPE, None, **{name: value for name, value in attributes.items() if name != missing})


@pytest.mark.parametrize(
    "type_", ["", "dev.knative.apiserver", "com.example", "dev.tenantry.other", "Dev.knative.apiserver.resource.add"]
)
def test_other_types(type_: str) -> None:
    """Any other type is nothing of ours, however broken it is."""
    assert asked(type_, b"\xff") == Ignore()


WHOLE = payload(name="c", namespace="n", uid="u", resourceVersion="7", labels={"a": "b"})
STATES: dict[str, Any] = {
    "by-version": {},
    "by-labels": {("v1", "ConfigMap"): lambda obj: obj["metadata"]["labels"]["a"]},
}


def told(type_: str, data: object) -> dict[str, Any]:
    request = request_of(Event(id="1", source="/s", type=type_, data=data), FUNCTION, STATES)
    assert isinstance(request, Look)
    return dict(request.told)


def test_a_whole_object_tells_its_state_to_each_unit() -> None:
    """Its version, or what the unit's decisions rest on: the same as of an object that is read."""
    found = told(UPDATE, WHOLE)
    assert found["by-version"] == "7"
    other = payload(**{**WHOLE["metadata"], "resourceVersion": "8"})
    assert told(UPDATE, other) == {"by-version": "8", "by-labels": found["by-labels"]}
    changed = payload(**{**WHOLE["metadata"], "labels": {"a": "c"}})
    assert told(UPDATE, changed)["by-labels"] != found["by-labels"]


@pytest.mark.parametrize(
    ("type_", "data"),
    [
        (UPDATE, {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "namespace": "n"}),
        (UPDATE, payload(name="c", namespace="n")),
        (UPDATE, payload(name="c", namespace="n", uid="u")),
        (UPDATE, payload(name="c", namespace="n", uid=1, resourceVersion="7")),
        (UPDATE, payload(name="c", namespace="n", uid="u", resourceVersion=7)),
    ],
)
def test_what_is_no_object_tells_no_state(type_: str, data: object) -> None:
    assert told(type_, data) == {}


def test_a_deletion_tells_which_object_is_no_more() -> None:
    """By its uid, whatever there may be of its name; where the event has no object, nothing."""
    deletion = "dev.knative.apiserver.resource.delete"
    of_other = payload(**{**WHOLE["metadata"], "uid": "v", "resourceVersion": "9"})
    assert told(deletion, WHOLE) == dict.fromkeys(STATES, ended(WHOLE["metadata"]["uid"]))
    assert told(deletion, of_other) == dict.fromkeys(STATES, ended("v"))
    assert told(deletion, {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "namespace": "n"}) == {}


def test_a_state_that_cannot_be_taken_is_not_told() -> None:
    """Whatever somebody sends: such an event is looked at as one that has only names."""
    assert told(UPDATE, payload(name="c", namespace="n", uid="u", resourceVersion="7")) == {"by-version": "7"}
