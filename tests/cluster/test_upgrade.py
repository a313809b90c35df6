"""What an earlier installation left in a cluster: its sources are still heard, and an uninstallation knows them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from people import token
from scoping import SCOPES, Scoping, role
from times import until

from tenantry.api import Api
from tenantry.local.followed import STAND_IN, stand_in
from tenantry.local.install import until_served
from tenantry.local.knative import Knative
from tenantry.local.manifests import spec_of
from tenantry.local.source import ApiServerSource
from tenantry.local.specs import SourceSpec
from tenantry.local.uninstall import Uninstaller
from tenantry.model.config import Config
from tenantry.model.kinds import (
    API_SERVER_SOURCE,
    CLUSTER_SERVICE_VERSION,
    CUSTOM_RESOURCE_DEFINITION,
    NAMESPACE,
    OPERATOR_GROUP,
    ROLE_BINDING,
    Kind,
    Object,
)
from tenantry.testing import eventually
from tenantry.testing.objects import obj

BROKER = {"apiVersion": "eventing.knative.dev/v1", "kind": "Broker", "name": "tenantry", "namespace": "tenantry-system"}
OLM = (CLUSTER_SERVICE_VERSION, OPERATOR_GROUP)


def earlier(name: str, **metadata: Any) -> Object:
    """The source of bindings and of OLM's kinds as it was before sources of namespaced kinds became ContainerSources."""
    ours = {"matchExpressions": [{"key": "operators.coreos.io/scopeInstanceUID", "operator": "Exists"}]}
    return {
        "apiVersion": API_SERVER_SOURCE.api_version,
        "kind": API_SERVER_SOURCE.kind,
        "metadata": {"name": name, "namespace": "tenantry-system", **metadata},
        "spec": {
            "serviceAccountName": "tenantry-source",
            "mode": "Resource",
            "namespaceSelector": {},
            "resources": [
                {"apiVersion": ROLE_BINDING.api_version, "kind": "RoleBinding", "selector": ours},
                *({"apiVersion": kind.api_version, "kind": kind.kind} for kind in OLM),
            ],
            "ceOverrides": {"extensions": {"watch": SCOPES}},
            "sink": {"ref": BROKER},
        },
    }


async def test_an_earlier_source_is_still_heard(knative: Callable[..., Awaitable[Knative]], admin: Api, scoping: Scoping) -> None:
    """Events of the one source that named bindings and OLM's kinds pass today's Triggers and are handled."""
    for kind in OLM:
        await admin.apply(CUSTOM_RESOURCE_DEFINITION, stand_in(kind))
        await until_served(admin, stand_in(kind))
    running = await knative(None, functions=[SCOPES], watch=False)
    handled: list[tuple[str, str, int]] = []
    running.on_delivery.append(
        lambda _, event, status, *__: handled.append((event.extensions.get("kind", ""), event.extensions.get("name", ""), status))
    )
    test = f"test-{token()}"
    await scoping.template(test, role(test))
    await scoping.instance(test, test, namespaces=["default"])
    await running.sweep(SCOPES)
    before = (await scoping.bound_in(test, "default"))["default"]
    spec = spec_of("an earlier source", earlier("scope-binding-owned"))
    assert isinstance(spec, SourceSpec)
    async with ApiServerSource(admin, spec, running.broker.accept) as source:
        await source.drain()
        await running.broker.drain()
        await admin.delete(ROLE_BINDING, before["metadata"]["name"], "default")
        uid = before["metadata"]["uid"]
        await eventually(
            lambda: scoping.bound(test), lambda found: found and found["default"]["metadata"]["uid"] != uid, what="the binding"
        )
        await _has_told(admin, CLUSTER_SERVICE_VERSION, test, handled)
        await _has_told(admin, OPERATOR_GROUP, test, handled)
        await running.drain()

    assert {status for _, _, status in handled} == {204}
    assert not running.dead_letters.exists()
    for kind in OLM:
        await admin.delete(CUSTOM_RESOURCE_DEFINITION, f"{kind.plural}.operators.coreos.com")


async def _has_told(admin: Api, kind: Kind, name: str, handled: list[tuple[str, str, int]]) -> None:
    await admin.create(kind, obj(kind, name, "default"))
    await until(lambda: (kind.kind, name, 204) in handled, within=5, what=f"{kind.kind} {name}; handled: {handled}")


async def test_uninstall_knows_earlier_sources(admin: Api) -> None:
    """ApiServerSources of the names that are ContainerSources now go, too; one that is not ours stays."""
    await admin.apply(CUSTOM_RESOURCE_DEFINITION, STAND_IN)
    await until_served(admin, STAND_IN)
    if await admin.get(NAMESPACE, "tenantry-system") is None:
        await admin.create(NAMESPACE, obj(NAMESPACE, "tenantry-system"))
    labels = {"app.kubernetes.io/part-of": "tenantry"}
    made = [earlier("scope-binding-owned", labels=labels), earlier("rbac-aggregation-owned")]
    for each in made:
        await admin.create(API_SERVER_SOURCE, each)
    done = await Uninstaller(admin, Config(), lambda _: None, dry_run=True).run()
    for each in made:
        await admin.delete(API_SERVER_SOURCE, each["metadata"]["name"], "tenantry-system")

    assert "ApiServerSource tenantry-system/scope-binding-owned" in done.removed
    assert "ApiServerSource tenantry-system/rbac-aggregation-owned: not made by Tenantry" in done.kept
