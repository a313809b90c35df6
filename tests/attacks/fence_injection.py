"""What the thief of scope-binding tries where operators are injected: webhooks and ClusterServiceVersions (a-43)."""

from __future__ import annotations

from typing import Any

from thieves import Ask, Attack, patch

from tenantry.model.kinds import CLUSTER_SERVICE_VERSION, VALIDATING_WEBHOOKS, Object
from tenantry.testing.objects import obj

OPS = "ops-fence"


def _webhooks(name: str, owned: bool) -> Object:
    client = {"url": "https://example.com/hook"}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["fences"]}
    webhook = {
        "name": "hook.example.com",
        "clientConfig": client,
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Ignore",
    }
    return obj(VALIDATING_WEBHOOKS, name, "", {"olm.owner": "op.v1"} if owned else {}, webhooks=[webhook])


def _csv(name: str, **labels: str) -> Object:
    container = {"name": "c", "image": "example.com/c", "env": [{"name": "A", "value": "1"}]}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"serviceAccountName": "op", "containers": [container]}}
    deployment = {"name": "op", "spec": {"replicas": 1, "template": template}}
    install = {"strategy": "deployment", "spec": {"deployments": [deployment], "permissions": []}}
    return obj(CLUSTER_SERVICE_VERSION, name, OPS, {"owner": "x", **labels}, spec={"install": install, "version": "1"})


IN_CSV = "/spec/install/spec/deployments/0/spec/template/spec"
LIST = {"name": "WATCH_NAMESPACE", "valueFrom": {"configMapKeyRef": {"name": "x", "key": "namespaces", "optional": True}}}


def _inject(op: str, path: str, value: Any, name: str = "op.v1") -> Ask:
    return patch(CLUSTER_SERVICE_VERSION, name, OPS, (op, path, value))


def _hook(*steps: tuple[str, str, Any], name: str = "owned-by-fence") -> Ask:
    return patch(VALIDATING_WEBHOOKS, name, "", *steps)


OLD = {"name": "WATCH_NAMESPACE", "value": "somewhere"}
SELECTOR = {"matchLabels": {"kubernetes.io/metadata.name": OPS}}

ATTACKS = [
    Attack(
        "a webhook that OLM does not run",
        _hook(("add", "/webhooks/0/namespaceSelector", SELECTOR), name="theirs-of-fence"),
        "only webhooks of operators that OLM runs",
    ),
    Attack(
        "another server",
        _hook(("replace", "/webhooks/0/clientConfig/url", "https://example.com/evil")),
        "nothing of a webhook but its namespaceSelector",
    ),
    Attack("the end of a webhook", _hook(("remove", "/webhooks/0", None)), "nothing of a webhook but its namespaceSelector"),
    Attack(
        "a copy of a ClusterServiceVersion", _inject("add", f"{IN_CSV}/containers/0/env/-", LIST, "copied.v1"), "no copies of"
    ),
    Attack(
        "permissions",
        _inject("replace", "/spec/install/spec/permissions", [{"serviceAccountName": "op", "rules": []}]),
        "nothing of a ClusterServiceVersion but its deployments",
    ),
    Attack("another version", _inject("replace", "/spec/version", "2"), "nothing of a ClusterServiceVersion but its deployments"),
    Attack(
        "a second deployment",
        _inject("add", "/spec/install/spec/deployments/-", {"name": "evil", "spec": {}}),
        "nothing of a deployment in a ClusterServiceVersion but its pod template",
    ),
    Attack(
        "more pods of OLM's",
        _inject("replace", "/spec/install/spec/deployments/0/spec/replicas", 9),
        "nothing of a deployment in a ClusterServiceVersion but its pod template",
    ),
    Attack(
        "another account for OLM's",
        _inject("replace", f"{IN_CSV}/serviceAccountName", "admin"),
        "nothing of a pod in a ClusterServiceVersion but its containers",
    ),
    Attack(
        "another image for OLM's",
        _inject("replace", f"{IN_CSV}/containers/0/image", "example.com/evil"),
        "nothing of a container in a ClusterServiceVersion but its variables",
    ),
    Attack(
        "a second container for OLM's",
        _inject("add", f"{IN_CSV}/containers/-", {"name": "evil", "image": "example.com/evil"}),
        "nothing of a container in a ClusterServiceVersion but its variables",
    ),
    Attack(
        "another variable for OLM's",
        _inject("add", f"{IN_CSV}/containers/0/env/-", {"name": "LD_PRELOAD", "value": "evil"}),
        "no other variable into a ClusterServiceVersion",
    ),
]


def _malformed() -> Object:
    made = _csv("malformed.v1")
    odd: list[Any] = [{"name": "no-spec"}, "not an object"]
    odd.append({"name": "no-list", "spec": {"template": {"spec": {"containers": [{"name": "c", "env": "text"}, 7]}}}})
    (whole,) = made["spec"]["install"]["spec"]["deployments"]
    whole["spec"]["template"]["spec"]["containers"][0]["env"] = ["text", None, {"value": "no name"}, OLD, OLD]
    made["spec"]["install"]["spec"]["deployments"] = [*odd, whole]
    return made


def _injected() -> list[Any]:
    """The deployments of the malformed one, read from the list."""
    *odd, whole = _malformed()["spec"]["install"]["spec"]["deployments"]
    odd[2]["spec"]["template"]["metadata"] = {"labels": {"intent": "projected"}}
    template = whole["spec"]["template"]
    template["metadata"] = {"labels": {"intent": "projected"}}
    template["spec"]["containers"][0]["env"] = ["text", None, {"value": "no name"}, LIST]
    return [*odd, whole]


NEEDS = [
    _inject("replace", "/spec/install/spec/deployments", _injected(), "malformed.v1"),
    _hook(("add", "/webhooks/0/namespaceSelector", SELECTOR)),
    _hook(("add", "/metadata/annotations", {"scope-binding/original": "{}"})),
    _inject("add", f"{IN_CSV}/containers/0/env/-", LIST),
    _inject("add", "/metadata/annotations", {"scope-binding/original": "{}"}),
]

SCENE = [
    (VALIDATING_WEBHOOKS, _webhooks("owned-by-fence", owned=True)),
    (VALIDATING_WEBHOOKS, _webhooks("theirs-of-fence", owned=False)),
    (CLUSTER_SERVICE_VERSION, _csv("op.v1")),
    (CLUSTER_SERVICE_VERSION, _malformed()),
    (CLUSTER_SERVICE_VERSION, _csv("copied.v1", **{"olm.copiedFrom": "elsewhere"})),
]
