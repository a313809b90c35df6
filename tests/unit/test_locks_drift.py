"""Drift: fields of the manifest against the live object, as the API server means them."""

from __future__ import annotations

import base64
from decimal import Decimal
from typing import Any

import pytest
from openapi import SCHEMAS

from lock_enforcement import fields
from lock_enforcement.fields import (
    changed_paths,
    content_of,
    locked_fields,
    managers_of,
    partial,
    pointer_problem,
    without_ignored,
)
from tenantry.model.comparison import UNKNOWN, Path, quantity, shown
from tenantry.model.kinds import Object
from tenantry.model.ownership import NewManager, handed_back


def deployment(container: dict[str, Any] | None = None, **spec: Any) -> Object:
    made = {"name": "web", "image": "web", **(container or {})}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [made]}}
    body = {"selector": {"matchLabels": {"a": "b"}}, "template": template, **spec}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "n"}, "spec": body}


def custom(**spec: Any) -> Object:
    return {"apiVersion": "x.example/v1", "kind": "Thing", "metadata": {"name": "t", "namespace": "n"}, "spec": spec}


def simple(kind: str, api_version: str = "v1", **fields: Any) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "o", "namespace": "n"}, **fields}


def drifted(wanted: Object, live: Object) -> tuple[Path, ...]:
    """Where they differ by what Kubernetes publishes of the kind."""
    return fields.drifted(wanted, live, SCHEMAS.get((wanted["apiVersion"], wanted["kind"]), UNKNOWN))


TCP = {"protocol": "TCP"}
PEER = {"podSelector": {"matchLabels": {"a": "b"}}}
CONTAINER = "spec.template.spec.containers[web]"
POLICY = "networking.k8s.io/v1"
RBAC = "rbac.authorization.k8s.io/v1"


@pytest.mark.parametrize(
    ("wanted", "live", "paths"),
    [
        (deployment(), deployment(), []),
        (deployment(), deployment({"image": "evil"}), [f"{CONTAINER}.image"]),
        (deployment(), deployment({"imagePullPolicy": "Always"}, replicas=3), []),
        (deployment(replicas=1), deployment(replicas=2), ["spec.replicas"]),
        (deployment(), {**deployment(), "spec": {"replicas": 1}}, ["spec.selector", "spec.template"]),
        # merged by key: order and further entries do not count
        (
            deployment({"ports": [{"containerPort": 80}, {"containerPort": 81}]}),
            deployment({"ports": [{"containerPort": 81, **TCP}, {"containerPort": 80, "name": "x", **TCP}]}),
            [],
        ),
        (
            deployment({"ports": [{"containerPort": 80}]}),
            deployment({"ports": [{"containerPort": 80, "protocol": "UDP"}]}),
            [f"{CONTAINER}.ports[80,TCP]"],
        ),
        (
            deployment({"env": [{"name": "A", "value": "1"}, {"name": "E", "value": ""}]}),
            deployment({"env": [{"name": "Z", "value": "9"}, {"name": "A", "value": "2"}, {"name": "E", "value": ""}]}),
            [f"{CONTAINER}.env[A].value"],
        ),
        (
            deployment({"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}),
            deployment({"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}),
            [],
        ),
        (deployment({"args": ["a", "b"]}), deployment({"args": ["b", "a"]}), [f"{CONTAINER}.args"]),
        # quantities
        (
            deployment({"resources": {"limits": {"cpu": "1000m", "memory": "1Gi"}}}),
            deployment({"resources": {"limits": {"cpu": "1", "memory": "1024Mi"}}}),
            [],
        ),
        (
            deployment({"resources": {"limits": {"cpu": 1}}}),
            deployment({"resources": {"limits": {"cpu": "2"}}}),
            [f"{CONTAINER}.resources.limits.cpu"],
        ),
        # what the server may drop or fill in, which no schema says: a dry run has the last word
        (deployment({"env": []}), deployment(), []),
        (
            deployment({"tty": False, "resources": {"limits": {}}}),
            deployment({"resources": {}}),
            [f"{CONTAINER}.tty", f"{CONTAINER}.resources.limits"],
        ),
        (
            simple("RoleBinding", RBAC, subjects=[{"kind": "User", "name": "a"}]),
            simple("RoleBinding", RBAC, subjects=[{"kind": "User", "name": "a", "apiGroup": "rbac.authorization.k8s.io"}]),
            ["subjects"],
        ),
        (
            simple("NetworkPolicy", POLICY, spec={"ingress": [{"ports": [{"port": 80}]}]}),
            simple("NetworkPolicy", POLICY, spec={"ingress": [{"ports": [{"port": 80, "protocol": "TCP"}]}]}),
            ["spec.ingress"],
        ),
        (simple("ConfigMap", data={}), simple("ConfigMap"), ["data"]),
        (simple("Service", spec={"clusterIP": ""}), simple("Service", spec={"clusterIP": "10.0.0.1"}), ["spec.clusterIP"]),
        (deployment({"securityContext": {"privileged": False}}), deployment(), [f"{CONTAINER}.securityContext"]),
        (
            simple("Pod", spec={"volumes": [{"name": "v", "emptyDir": {}}]}),
            simple("Pod", spec={"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}),
            ["spec.volumes[v].emptyDir"],
        ),
        # lists and maps that are replaced whole
        (
            simple("Service", spec={"selector": {"a": "b"}}),
            simple("Service", spec={"selector": {"a": "b", "c": "d"}}),
            ["spec.selector"],
        ),
        (
            simple("Role", RBAC, rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]),
            simple("Role", RBAC, rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]),
            ["rules"],
        ),
        (
            simple("NetworkPolicy", POLICY, spec={"egress": [{"to": [PEER]}]}),
            simple("NetworkPolicy", POLICY, spec={"egress": [{"to": [{**PEER, "namespaceSelector": {}}]}]}),
            ["spec.egress"],
        ),
        (
            simple("ServiceAccount", imagePullSecrets=[{"name": "a"}]),
            simple("ServiceAccount", imagePullSecrets=[{"name": "a"}, {"name": "b"}]),
            ["imagePullSecrets"],
        ),
        # data
        (simple("ConfigMap", data={"a": "1000m", "b": ""}), simple("ConfigMap", data={"a": "1", "b": "", "c": "x"}), ["data[a]"]),
        (simple("ConfigMap", data={"a": "1"}), simple("ConfigMap"), ["data"]),
        (simple("Secret", data={"a": "YQ==\n"}), simple("Secret", data={"a": "YQ=="}), []),
        (simple("Secret", data={"a": "YQ=="}), simple("Secret", data={"a": "Yg=="}), ["data[a]"]),
        (
            simple("Service", spec={"ports": [{"port": 80}]}),
            simple("Service", spec={"ports": [{"port": 80, "nodePort": 7, **TCP}]}),
            [],
        ),
        # numbers and booleans are not each other
        (custom(a=1), custom(a=True), ["spec.a"]),
        (custom(a=1), custom(a=1.0), []),
        (custom(a=False), custom(), ["spec.a"]),
        (custom(l=[{"name": "a"}]), custom(l=[{"name": "a"}, {"name": "b"}]), ["spec.l"]),
        (custom(l=[]), custom(), []),
        # kinds of others say how they merge as well
        (custom(set=["a"]), custom(set=["b", "a"]), []),
        (custom(set=["a", "c"]), custom(set=["b", "a"]), ["spec.set[c]"]),
        (custom(map=[{"containerPort": 1, "x": 1}]), custom(map=[{"containerPort": 1, "x": 2, **TCP}]), ["spec.map[1,TCP].x"]),
        (custom(whole={"a": 1}), custom(whole={"a": 1, "b": 2}), ["spec.whole"]),
        (custom(below={"spec": {"set": ["a"]}}), custom(below={"spec": {"set": []}}), ["spec.below.spec.set[a]"]),
    ],
)  # fmt: skip
def test_drift(wanted: Object, live: Object, paths: list[str]) -> None:
    """What differs is named, and what the server means the same is not."""
    assert [shown(path) for path in drifted(wanted, live)] == paths


def test_metadata() -> None:
    """Labels and annotations of the manifest count one by one; owner references and finalizers by entry; extra ones stay."""
    wanted = simple("ConfigMap")
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "1"}
    wanted["metadata"] |= {"labels": {"a": "1"}, "annotations": {"b": "1"}, "ownerReferences": [owner], "finalizers": ["x/y"]}
    live = simple("ConfigMap")
    live["metadata"] |= {"labels": {"a": "2", "c": "3"}, "annotations": {"b": "1"}, "resourceVersion": "7"}

    assert [shown(path) for path in drifted(wanted, live)] == [
        "metadata.labels[a]",
        "metadata.ownerReferences[1]",
        "metadata.finalizers[x/y]",
    ]
    live["metadata"] |= {"labels": {"a": "1"}, "ownerReferences": [{**owner, "controller": True}], "finalizers": ["x/y", "z"]}
    assert drifted(wanted, live) == ()


def test_locked_fields() -> None:
    """Nulls, status and what only the server writes are left out; stringData is data; the namespace is the given one."""
    manifest = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "namespace": "other", "creationTimestamp": None, "uid": "1", "labels": {"a": None, "b": "c"}},
        "data": {"a": "x", "b": "y"},
        "stringData": {"b": "1"},
        "status": {"x": 1},
    }
    made = locked_fields(manifest, "n")
    assert made["metadata"] == {"name": "s", "namespace": "n", "labels": {"b": "c"}}
    assert made["data"] == {"a": "x", "b": base64.b64encode(b"1").decode()}
    assert "stringData" not in made
    assert "status" not in made
    assert "namespace" not in locked_fields(manifest, "")["metadata"]


def test_ignored_fields() -> None:
    """JSON pointers with escapes, wildcards, positions and names of entries; nothing else is taken away."""
    wanted = deployment({"env": [{"name": "A", "value": "1"}]}, replicas=1)
    wanted["metadata"]["annotations"] = {"a/b": "1", "c": "2"}
    made = without_ignored(
        wanted, ["/spec/replicas", "/metadata/annotations/a~1b", "/spec/template/spec/containers/web/env/0", "bad", "/x/y"]
    )
    assert "replicas" not in made["spec"]
    assert made["metadata"]["annotations"] == {"c": "2"}
    assert made["spec"]["template"]["spec"]["containers"] == [{"name": "web", "image": "web", "env": []}]
    made = without_ignored(wanted, ["/spec/template/spec/containers/*/image"])
    assert made["spec"]["template"]["spec"]["containers"][0]["name"] == "web"
    assert wanted["spec"]["replicas"] == 1


@pytest.mark.parametrize("pointer", ["spec", "/", "", 7, "/kind", "/metadata/name", "/*", "/*/name", "/metadata/*"])
def test_bad_pointers(pointer: object) -> None:
    """What cannot name a field is refused with a reason."""
    assert repr(pointer) in pointer_problem(pointer)


def test_the_smallest_apply() -> None:
    """An apply has identity, the drifted fields and the keys of the entries around them."""
    wanted = deployment({"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}, replicas=1)
    live = deployment({"env": [{"name": "A", "value": "x"}], "image": "evil"}, replicas=1)
    body = partial(wanted, drifted(wanted, live))

    assert body["metadata"] == {"name": "web", "namespace": "n"}
    container = {"name": "web", "image": "web", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}
    assert body["spec"] == {"template": {"spec": {"containers": [container]}}}


def test_of_an_unknown_kind_the_whole_field_is_compared_and_applied() -> None:
    """Where the schema is not known a list or map may be replaced whole, so all of the top-level field is taken."""
    wanted = {**custom(a={"b": 1, "c": 2}, d=1), "apiVersion": "y.example/v1"}
    for live in (custom(a={"b": 2, "c": 2}, d=1), custom(a={"b": 1, "c": 2}, d=1, e=1)):
        paths = drifted(wanted, live)
        assert [shown(path) for path in paths] == ["spec"]
        assert partial(wanted, paths)["spec"] == wanted["spec"]
    assert drifted(wanted, custom(a={"b": 1, "c": 2}, d=1)) == ()


def test_the_smallest_apply_has_entries_as_they_are_written() -> None:
    """The entry whose key is left to its default is found beside one that writes it; values of sets are added one by one."""
    ports = [{"containerPort": 53, "x": 1}, {"containerPort": 53, "protocol": "UDP", "x": 2}]
    wanted = custom(map=ports, set=["a", "b"])
    live = custom(map=[{**ports[0], **TCP}, {**ports[1], "x": 3}], set=["b"])
    assert partial(wanted, drifted(wanted, live))["spec"] == {
        "map": [{"containerPort": 53, "protocol": "UDP", "x": 2}],
        "set": ["a"],
    }
    assert partial(wanted, drifted(wanted, custom()))["spec"]["map"] == [{**ports[0], **TCP}, ports[1]]


def test_what_an_apply_changes() -> None:
    """Versions and owners are no change; of the paths those count at which something differs."""
    before, after = deployment(replicas=1), deployment({"image": "x"}, replicas=1)
    before["metadata"] |= {"resourceVersion": "1", "managedFields": [{}], "annotations": {}}
    paths = drifted(deployment({"image": "x", "ports": [{"containerPort": 1}]}, replicas=1), before)
    assert content_of(before) != content_of(after)
    assert [shown(path) for path in changed_paths(paths, before, after)] == [f"{CONTAINER}.image"]
    assert content_of(before) == content_of(deployment(replicas=1))


def entry(manager: str, fields: Any, *, operation: str = "Update", time: str = "1", **more: Any) -> Object:
    return {"manager": manager, "operation": operation, "apiVersion": "apps/v1", "time": time, "fieldsV1": fields, **more}


def test_who_did_it() -> None:
    """The owners of the paths are named; of a field that is gone the last writer; never those who are left out."""
    live = deployment({"image": "evil"}, replicas=2)
    image = {"f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"web"}': {".": {}, "f:image": {}}}}}}}
    live["metadata"]["managedFields"] = [
        entry("helm", {"f:spec": {"f:selector": {}}}, time="2"),
        entry("editor", image, time="3"),
        entry("scaler", {"f:spec": {"f:replicas": {}}}, time="4", subresource="scale"),
        entry("kubelet", {"f:status": {}}, time="9", subresource="status"),
    ]
    wanted = deployment(replicas=1)
    paths = drifted(wanted, live)
    assert managers_of(live, paths, besides=()) == ("editor", "scaler")
    assert managers_of(live, paths, besides=("editor",)) == ("scaler",)
    gone = drifted({**wanted, "metadata": {**wanted["metadata"], "labels": {"a": "b"}}}, live)
    assert "scaler" in managers_of(live, gone[:1], besides=())
    whole = (("spec", "selector", "matchLabels", "a"),)
    assert managers_of(live, whole, besides=()) == ("helm",)


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("100m", "0.1"),
        ("1", "1"),
        (2, "2"),
        ("1Ki", "1024"),
        ("1.5G", "1500000000"),
        ("1e3", "1000"),
        ("x", None),
        (True, None),
        ("1.2.3", None),
        ("1e999", "1e999"),
        ("1e999E", "1e1017"),
        ("1e9999999", None),
        ("-1E+9999999", None),
        ("1e-9999999", None),
        ("9" * 28, "9" * 28),
        ("9" * 29, None),
        pytest.param("9" * 100_000, None, id="long"),
        pytest.param(10**5000, None, id="long number"),
        (1e300, "1e300"),
        ([], None),
    ],
)
def test_quantities(text: object, amount: str | None) -> None:
    """Quantities are numbers; one that is longer than any in use is none, and nothing is raised."""
    assert quantity(text) == (Decimal(amount) if amount is not None else None)


MARKS = {"f:metadata": {"f:annotations": {"f:meta.helm.sh/release-name": {}}}}
HELM = NewManager(("metadata", "annotations", "meta.helm.sh/release-name"), "helm", "Apply")
OURS = {"f:spec": {"f:replicas": {}}}


def held(*entries: Object) -> Object:
    return {"metadata": {"name": "x", "managedFields": list(entries)}}


def test_fields_go_to_whoever_wrote_the_marks() -> None:
    """Our fields are merged into the entry of the one who owns Helm's marks, whatever it is called; we own nothing."""
    live = held(entry("us", OURS), entry("helm_v3", MARKS), entry("other", {"f:x": {}}))
    assert handed_back(live, "us", HELM) == [entry("helm_v3", {**MARKS, **OURS}), entry("other", {"f:x": {}})]


def test_without_an_owner_of_the_marks_there_is_a_new_entry() -> None:
    """Nobody has the marks: an entry of Helm is used or made; one of another version is left, since paths may differ."""
    assert handed_back(held(entry("us", OURS)), "us", HELM) == [entry("helm", OURS, operation="Apply")]
    named = entry("helm", {"f:x": {}}, operation="Apply")
    assert handed_back(held(entry("us", OURS), named), "us", HELM) == [{**named, "fieldsV1": {"f:x": {}, **OURS}}]
    older = {**named, "apiVersion": "apps/v1beta1"}
    assert handed_back(held(entry("us", OURS), older), "us", HELM) == [older]


def test_status_entries_of_ours_stay() -> None:
    """What we own in a subresource is not handed over, and nothing is done where we own nothing."""
    live = held(entry("us", OURS, subresource="status"), entry("helm", MARKS))
    assert handed_back(live, "us", HELM) == live["metadata"]["managedFields"]
