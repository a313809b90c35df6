"""Objects are compared as the API server that stores them merges and compares: what it publishes, and what is written once."""

from __future__ import annotations

from secrets import token_hex
from typing import Any

import pytest

from lock_enforcement.fields import changed_paths, drifted, locked_fields, partial
from tenantry.api import Api
from tenantry.engine.write import Writer
from tenantry.model.comparison import UNKNOWN, shown
from tenantry.model.kinds import (
    CUSTOM_RESOURCE_DEFINITION,
    DEPLOYMENT,
    NAMESPACE,
    NETWORK_POLICY,
    RESOURCE_QUOTA,
    ROLE_BINDING,
    Kind,
    Object,
)
from tenantry.model.plan import Apply, Plan
from tenantry.testing import eventually
from tenantry.testing.objects import obj

LIMIT_RANGE = Kind("v1", "LimitRange", "limitranges")
SERVICE = Kind("v1", "Service", "services")
AMOUNTS = {"cpu": "1000m", "memory": "1024Mi", "pods": 7}
LIMITS = {"type": "Container", "default": {"cpu": "1000m"}, "defaultRequest": {"cpu": 0.1}}
CONTAINER = {
    "name": "web",
    "image": "web",
    "tty": False,
    "env": [{"name": "EMPTY", "value": ""}, {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
    "resources": {"limits": {"cpu": "1000m"}},
}
POD = {"metadata": {"labels": {"a": "b"}}, "spec": {"hostNetwork": False, "nodeSelector": {}, "containers": [CONTAINER]}}


async def a_namespace(admin: Api) -> str:
    name = f"compared-{token_hex(4)}"
    await admin.create(NAMESPACE, {"metadata": {"name": name}})
    return name


async def test_quantities_are_written_once(admin: Api) -> None:
    """`1000m` is stored as `1`: a plan that wants the former writes it the first time only, and another amount at once."""
    home, writer = await a_namespace(admin), Writer(admin, "tests")
    kinds = {RESOURCE_QUOTA: {"hard": AMOUNTS}, LIMIT_RANGE: {"limits": [LIMITS]}}
    for kind, spec in kinds.items():
        wanted = obj(kind, "one", home, spec=spec)
        for writes in (1, 0):
            live = await admin.get(kind, "one", home)
            assert (await writer.write(Plan(((Apply(kind, wanted, live),),)))).writes == writes
        live = await admin.get(kind, "one", home)
        assert live is not None
        assert "1000m" not in str(live["spec"])
    more = Apply(
        RESOURCE_QUOTA, obj(RESOURCE_QUOTA, "one", home, spec={"hard": {**AMOUNTS, "cpu": "1001m"}}), await quota(admin, home)
    )
    assert (await writer.write(Plan(((more,),)))).writes == 1
    assert (await quota(admin, home))["spec"]["hard"]["cpu"] == "1001m"


async def quota(admin: Api, home: str) -> Object:
    return await admin.get(RESOURCE_QUOTA, "one", home) or {}


@pytest.mark.parametrize(
    ("kind", "fields", "doubted"),
    [
        (DEPLOYMENT, {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": POD}}, True),
        (SERVICE, {"spec": {"clusterIP": "", "selector": {"a": "b"}, "ports": [{"port": 80}]}}, True),
        (
            SERVICE,
            {"spec": {"selector": {"a": "b"}, "ports": [{"port": 80}, {"name": "u", "port": 80, "protocol": "UDP"}]}},
            None,
        ),
        (NETWORK_POLICY, {"spec": {"podSelector": {}, "ingress": [{"ports": [{"port": 80}]}]}}, True),
        (
            ROLE_BINDING,
            {
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "x"},
                "subjects": [{"kind": "User", "name": "x"}],
            },
            True,
        ),
        (RESOURCE_QUOTA, {"spec": {"hard": AMOUNTS}}, False),
    ],
)
async def test_what_the_server_drops_or_fills_in_is_no_drift(
    admin: Api, kind: Kind, fields: dict[str, Any], doubted: bool
) -> None:
    """Where the schema does not say it, a dry run of what seems to differ does."""
    home = await a_namespace(admin)
    manifest = obj(kind, "one", home, **fields)
    if kind == SERVICE and len(fields["spec"]["ports"]) > 1:
        fields["spec"]["ports"][0]["name"] = "t"
    live = await admin.create(kind, manifest)
    wanted = locked_fields(manifest, home)
    paths = drifted(wanted, live, await admin.schema(kind))
    assert doubted is None or bool(paths) is doubted, list(map(shown, paths))
    if paths:
        assert changed_paths(paths, live, await admin.apply(kind, partial(wanted, paths), dry_run=True)) == ()


async def test_kinds_of_others_publish_how_they_merge(admin: Api) -> None:
    """Of a CRD that is there the server says what is merged by which keys, also when it comes later or changes."""
    name = f"c{token_hex(4)}"
    kind = Kind(f"{name}.example/v1", "Thing", "things")
    assert await admin.schema(kind) is UNKNOWN

    async def make(**listed: Any) -> None:
        items = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
        spec = {"type": "object", "properties": {"parts": {"type": "array", "items": items, **listed}}}
        schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
        spec = {
            "group": kind.group,
            "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        }
        await admin.apply(CUSTOM_RESOURCE_DEFINITION, obj(CUSTOM_RESOURCE_DEFINITION, f"things.{kind.group}", spec=spec))

    async def merges() -> bool:
        return (await admin.schema(kind)).below("spec").below("parts").keys == ("id",)

    await make(**{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"]})
    await eventually(merges, within=10.0, what="the list is merged by its key")
