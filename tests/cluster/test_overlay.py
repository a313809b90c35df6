"""What is laid on a cluster is what the API server would make of the same writes: each is done in both, and compared."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from people import token
from times import LEFT_TO_MAKE_WHOLE

from tenantry.api import Api
from tenantry.api.errors import ApiError
from tenantry.engine.overlay.api import OverlayApi
from tenantry.engine.overlay.controllers import Controllers
from tenantry.engine.overlay.store import Overlay
from tenantry.engine.reader import Reader
from tenantry.model.difference import difference
from tenantry.model.field_sets import leaves
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    CONFIG_MAP,
    CUSTOM_RESOURCE_DEFINITION,
    NAMESPACE,
    NETWORK_POLICY,
    RESOURCE_QUOTA,
    ROLE,
    ROLE_BINDING,
    SECRET,
    SERVICE_ACCOUNT,
    Kind,
    Object,
)
from tenantry.testing import eventually
from tenantry.testing.objects import obj

pytestmark = [pytest.mark.no_policies, LEFT_TO_MAKE_WHOLE]
US, OTHER = "tenantry-a", "tenantry-b"
WIDGET = Kind("overlay.example.com/v1", "Widget", "widgets")
_TIMES = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_COUNTED = ("uid", "resourceVersion", "creationTimestamp", "managedFields")
_TEXT, _NUMBER = {"type": "string"}, {"type": "integer"}
_ENTRY = {"type": "object", "required": ["name"], "properties": {"name": _TEXT, "port": {**_NUMBER, "default": 80}}}
_SPEC = {
    "type": "object",
    "properties": {
        "mode": {**_TEXT, "default": "soft"},
        "size": _NUMBER,
        "entries": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": _ENTRY},
        "names": {"type": "array", "x-kubernetes-list-type": "set", "items": _TEXT},
        "plain": {"type": "array", "items": _NUMBER},
        "nested": {"type": "object", "properties": {"url": _TEXT, "interval": {**_TEXT, "default": "1m"}}},
        "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": _TEXT},
    },
}
_CONDITION = {"type": "object", "required": ["type"], "properties": {"type": _TEXT, "status": _TEXT}}
_CONDITIONS = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"], "items": _CONDITION}
_SCHEMA = {
    "type": "object",
    "properties": {"spec": _SPEC, "status": {"type": "object", "properties": {"conditions": _CONDITIONS}}},
}
CRD = obj(
    CUSTOM_RESOURCE_DEFINITION,
    "widgets.overlay.example.com",
    spec={
        "group": "overlay.example.com",
        "names": {"kind": "Widget", "listKind": "WidgetList", "plural": "widgets", "singular": "widget"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": _SCHEMA},
            }
        ],
    },
)

Step = Callable[[Api, str], Awaitable[Any]]
"""A write by a client, to what has this name, in the namespace of this name."""


def apply(kind: Kind, manager: str = US, subresource: str = "", **parts: Any) -> Step:
    def step(api: Api, name: str) -> Awaitable[Any]:
        return api.apply(
            kind, obj(kind, name, name if kind.namespaced else "", **parts), manager=manager, subresource=subresource
        )

    return step


def create(kind: Kind, manager: str = US, **parts: Any) -> Step:
    return lambda api, name: api.create(kind, obj(kind, name, name if kind.namespaced else "", **parts), manager=manager)


def patch(kind: Kind, *operations: Object, subresource: str = "") -> Step:
    return lambda api, name: api.json_patch(kind, name, name if kind.namespaced else "", operations, subresource=subresource)


def delete(kind: Kind, propagation: str = "Background") -> Step:
    return lambda api, name: api.delete(kind, name, name if kind.namespaced else "", propagation=propagation)


def condition(type_: str, status: str = "True") -> Object:
    return {"type": type_, "status": status}


def told(*types: str) -> Step:
    return apply(WIDGET, subresource="status", status={"conditions": [condition(each) for each in types]})


HELD = {"finalizers": ["example.com/held"]}
CASES: dict[str, tuple[Kind, tuple[Step, ...]]] = {
    "apply": (WIDGET, (apply(WIDGET, spec={"size": 1, "nested": {"url": "u"}}, labels={"a": "1"}),)),
    "nothing": (WIDGET, (apply(WIDGET, spec={"size": 1}), apply(WIDGET, spec={"size": 1}))),
    "give up": (
        WIDGET,
        (apply(WIDGET, spec={"size": 1, "nested": {"url": "u"}}, labels={"a": "1"}), apply(WIDGET, spec={"size": 1})),
    ),
    "give up all": (WIDGET, (apply(WIDGET, spec={"size": 1}, labels={"a": "1"}), apply(WIDGET))),
    "shared": (WIDGET, (apply(WIDGET, spec={"size": 1}), apply(WIDGET, OTHER, spec={"size": 1}), apply(WIDGET))),
    "taken": (WIDGET, (apply(WIDGET, spec={"size": 1}), apply(WIDGET, OTHER, spec={"size": 2}))),
    "entries": (
        WIDGET,
        (
            apply(WIDGET, spec={"entries": [{"name": "a"}, {"name": "b", "port": 1}]}),
            apply(WIDGET, OTHER, spec={"entries": [{"name": "c"}, {"name": "a", "port": 2}]}),
            apply(WIDGET, spec={"entries": [{"name": "b"}]}),
        ),
    ),
    "sets": (
        WIDGET,
        (
            apply(WIDGET, spec={"names": ["a", "b", "c"]}),
            apply(WIDGET, OTHER, spec={"names": ["d", "b"]}),
            apply(WIDGET, spec={"names": ["c", "b", "a"]}),
            apply(WIDGET, OTHER, spec={"names": []}),
        ),
    ),
    "plain": (WIDGET, (apply(WIDGET, spec={"plain": [1, 2]}), apply(WIDGET, OTHER, spec={"plain": [2]}))),
    "whole": (WIDGET, (apply(WIDGET, spec={"whole": {"a": "1"}}), apply(WIDGET, OTHER, spec={"whole": {"b": "1"}}))),
    "status": (WIDGET, (apply(WIDGET, spec={"size": 1}), told("A", "B"), told("B"), apply(WIDGET, spec={"size": 2}))),
    "no status": (WIDGET, (apply(WIDGET, spec={"size": 1}), told("A"), apply(WIDGET, subresource="status"))),
    "create": (WIDGET, (create(WIDGET, spec={"size": 1}, labels={"a": "1"}), apply(WIDGET, spec={"size": 2}, labels={"a": "1"}))),
    "patch": (
        WIDGET,
        (
            apply(WIDGET, spec={"size": 1, "names": ["a"]}, labels={"a": "1"}),
            patch(WIDGET, {"op": "replace", "path": "/spec/size", "value": 2}, {"op": "remove", "path": "/metadata/labels/a"}),
            apply(WIDGET, spec={"size": 2}, labels={"b": "1"}),
        ),
    ),
    "patch of the status": (
        WIDGET,
        (
            apply(WIDGET, spec={"size": 1}),
            patch(WIDGET, {"op": "add", "path": "/status", "value": {"conditions": [condition("A")]}}, subresource="status"),
            patch(WIDGET, {"op": "add", "path": "/status", "value": {}}),
        ),
    ),
    "held": (WIDGET, (apply(WIDGET, spec={"size": 1}, metadata=HELD), delete(WIDGET), told("A"))),
    "let go": (
        WIDGET,
        (
            apply(WIDGET, spec={"size": 1}, metadata=HELD),
            delete(WIDGET),
            patch(WIDGET, {"op": "replace", "path": "/metadata/finalizers", "value": []}),
        ),
    ),
    "deleted": (WIDGET, (apply(WIDGET, spec={"size": 1}), delete(WIDGET), delete(WIDGET))),
    "made again": (WIDGET, (apply(WIDGET, spec={"size": 1}), delete(WIDGET), create(WIDGET, spec={"size": 2}))),
    "exists": (WIDGET, (apply(WIDGET, spec={"size": 1}), create(WIDGET, spec={"size": 2}))),
    "test fails": (WIDGET, (apply(WIDGET, spec={"size": 1}), patch(WIDGET, {"op": "test", "path": "/spec/size", "value": 2}))),
    "secret": (SECRET, (apply(SECRET, stringData={"a": "b"}), apply(SECRET, OTHER, data={}))),
    "immutable": (
        CONFIG_MAP,
        (apply(CONFIG_MAP, data={"a": "1"}, immutable=True), apply(CONFIG_MAP, data={"a": "2"}, immutable=True)),
    ),
    "policy": (NETWORK_POLICY, (apply(NETWORK_POLICY, spec={"podSelector": {}, "ingress": [], "policyTypes": ["Ingress"]}),)),
    "binding": (
        ROLE_BINDING,
        (
            apply(ROLE_BINDING, roleRef={"kind": "Role", "name": "a"}, subjects=[{"kind": "User", "name": "u"}]),
            apply(ROLE_BINDING, roleRef={"kind": "Role", "name": "b"}, subjects=[]),
            apply(ROLE_BINDING, roleRef={"kind": "Role", "name": "a"}, subjects=[]),
        ),
    ),
}


@pytest.fixture(scope="module")
async def widgets(admin: Api) -> None:
    """A kind with every way to merge."""
    await admin.apply(CUSTOM_RESOURCE_DEFINITION, CRD)

    async def served() -> bool:
        schema = await admin.schema(WIDGET)
        return await admin.served(WIDGET.api_version, WIDGET.kind, again=True) is not None and "spec" in schema.properties

    await eventually(served, within=60, what="widgets are served")


async def done(api: Api, steps: tuple[Step, ...], name: str) -> list[str]:
    """Do the steps; what each was refused for."""
    outcome = []
    for step in steps:
        try:
            await step(api, name)
            outcome.append("done")
        except ApiError as error:
            outcome.append(type(error).__name__)
    return outcome


def compared(found: Object | None) -> Any:
    """An object without what is counted, and with who owns what."""
    if found is None:
        return None
    metadata = {name: value for name, value in found["metadata"].items() if name not in _COUNTED}
    owned: dict[str, set[str]] = {}
    for entry in found["metadata"].get("managedFields") or ():
        fields = owned.setdefault(f"{entry['manager']} {entry['operation']} {entry.get('subresource') or ''}", set())
        fields |= {"/".join(path) for path in leaves(entry["fieldsV1"])}
    shown = {**found, "metadata": metadata, "owned": {name: sorted(fields) for name, fields in owned.items()}}
    return json.loads(_TIMES.sub("(time)", json.dumps(shown)))


@pytest.mark.parametrize("case", CASES)
async def test_a_write_is_as_the_server_makes_it(case: str, admin: Api, widgets: None) -> None:
    """Contents, owners of fields, generation, finalizers and refusals are the same."""
    kind, steps = CASES[case]
    name = f"overlay-{token()}"
    await admin.create(NAMESPACE, obj(NAMESPACE, name))
    over = OverlayApi(admin, Overlay())
    foreseen = await done(over, steps, name)
    assert await admin.get(kind, name, name) is None

    assert await done(admin, steps, name) == foreseen
    assert compared(await over.get(kind, name, name)) == compared(await admin.get(kind, name, name))


async def test_a_namespace_is_made_and_emptied(admin: Api, widgets: None) -> None:
    """A new namespace has what every one has; a deleted one is gone with all in it, unless a finalizer holds something."""
    name, held = f"overlay-{token()}", f"overlay-{token()}"
    over = OverlayApi(admin, Overlay())
    await over.create(NAMESPACE, obj(NAMESPACE, name))
    assert [each["metadata"]["name"] for each in (await over.list(SERVICE_ACCOUNT, name)).items] == ["default"]
    made = (await over.get(NAMESPACE, name)) or {}
    assert (made["status"]["phase"], made["metadata"]["labels"]) == ("Active", {"kubernetes.io/metadata.name": name})

    for each, metadata in ((name, {}), (held, HELD)):
        await admin.create(NAMESPACE, obj(NAMESPACE, each)) if each == held else None
        await over.create(WIDGET, obj(WIDGET, "w", each, spec={"size": 1}, metadata=metadata))
        await over.delete(NAMESPACE, each)
    assert await Controllers(over, [WIDGET, CONFIG_MAP]).later(1)
    assert (await over.get(NAMESPACE, name), await over.get(WIDGET, "w", name)) == (None, None)
    assert (await over.list(WIDGET, name)).items == []
    left = (await over.get(WIDGET, "w", held)) or {}
    assert left["metadata"]["finalizers"] == HELD["finalizers"]
    assert ((await over.get(NAMESPACE, held)) or {})["status"]["phase"] == "Terminating"
    assert await admin.get(WIDGET, "w", held) is None


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
async def test_what_is_owned_is_collected(propagation: str, admin: Api, widgets: None) -> None:
    """What a deleted object owns goes, here and in what was there; what another one owns, too, stays."""
    name = f"overlay-{token()}"
    await admin.create(NAMESPACE, obj(NAMESPACE, name))
    owners = [await admin.create(WIDGET, obj(WIDGET, each, name, spec={})) for each in ("one", "two")]
    references = [
        {"apiVersion": WIDGET.api_version, "kind": WIDGET.kind, "name": each["metadata"]["name"], "uid": each["metadata"]["uid"]}
        for each in owners
    ]
    await admin.create(CONFIG_MAP, obj(CONFIG_MAP, "a", name, metadata={"ownerReferences": references[:1]}))
    await admin.create(CONFIG_MAP, obj(CONFIG_MAP, "b", name, metadata={"ownerReferences": references}))
    over = OverlayApi(admin, Overlay())
    await over.delete(WIDGET, "one", name, propagation=propagation)
    controllers = Controllers(over, [WIDGET, CONFIG_MAP])
    while await controllers.later(1):
        pass

    assert await over.get(WIDGET, "one", name) is None
    assert await over.get(CONFIG_MAP, "a", name) is None
    left = (await over.get(CONFIG_MAP, "b", name)) or {}
    assert [each["name"] for each in left["metadata"]["ownerReferences"]] == ["two"]


async def test_quotas_and_aggregated_roles_follow(admin: Api, widgets: None) -> None:
    """A new quota gets its status, and an aggregated ClusterRole the rules of a new one."""
    name = f"overlay-{token()}"
    await admin.create(NAMESPACE, obj(NAMESPACE, name))
    over = OverlayApi(admin, Overlay())
    await over.create(RESOURCE_QUOTA, obj(RESOURCE_QUOTA, "q", name, spec={"hard": {"pods": "1"}}))
    rule = {"apiGroups": ["overlay.example.com"], "resources": ["widgets"], "verbs": ["get"]}
    labels = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
    await over.create(CLUSTER_ROLE, obj(CLUSTER_ROLE, name, labels=labels, rules=[rule]))
    assert await Controllers(over, [WIDGET]).later(1)

    assert ((await over.get(RESOURCE_QUOTA, "q", name)) or {})["status"] == {"hard": {"pods": "1"}, "used": {"pods": "0"}}
    assert rule in ((await over.get(CLUSTER_ROLE, "view")) or {})["rules"]


async def test_after_a_plan_of_ours_nothing_differs(admin: Api, widgets: None) -> None:
    """Over what an apply has laid on, the rule that says what has to be written finds nothing."""
    name = f"overlay-{token()}"
    await admin.create(NAMESPACE, obj(NAMESPACE, name))
    over = OverlayApi(admin, Overlay(), field_manager=US)
    body = obj(WIDGET, name, name, spec={"size": 1, "nested": {"url": "u"}}, labels={"a": "1"})
    await over.apply(WIDGET, body)

    assert difference(body, await over.get(WIDGET, name, name), manager=US) is None


ASKED = (
    {"verb": "get", "resource": "configmaps"},
    {"verb": "get", "resource": "configmaps", "name": "other"},
    {"verb": "create", "resource": "configmaps"},
    {"verb": "get", "resource": "pods", "subresource": "log"},
    {"verb": "get", "resource": "pods"},
    {"verb": "delete", "group": "apps", "resource": "deployments"},
)


async def test_access_is_reviewed_by_the_bindings_as_they_would_be(admin: Api) -> None:
    """What a Role and its binding would allow an account is what the server says once they are there."""
    name = f"overlay-{token()}"
    await admin.create(NAMESPACE, obj(NAMESPACE, name))
    rules = [
        {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [name], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]},
        {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["*"]},
    ]
    subjects = [{"kind": "ServiceAccount", "name": "default", "namespace": name}]
    reference = {"apiGroup": ROLE_BINDING.group, "kind": "Role", "name": name}

    async def give(api: Api) -> None:
        await api.create(ROLE, obj(ROLE, name, name, rules=rules))
        await api.create(ROLE_BINDING, obj(ROLE_BINDING, name, name, roleRef=reference, subjects=subjects))

    async def answers(api: Api) -> list[bool]:
        reader = Reader(api)
        named = [{"name": name, **each} if each["verb"] == "get" else each for each in ASKED]
        return [await reader.allows(name, "default", {**each, "namespace": name}) for each in named]

    over = OverlayApi(admin, Overlay())
    before = await answers(over)
    await give(over)
    foreseen = await answers(over)
    assert before == [False] * len(ASKED)
    assert foreseen == [True, False, True, True, False, False]

    await give(admin)
    await eventually(lambda: answers(admin), lambda found: found == foreseen, within=10, what="the same answers")
