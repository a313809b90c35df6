"""Where an instance holds: namespaces that are missing, going away, doubled, selected; upstream's objects (sb-28 to sb-46)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from flawless import Calm
from people import look, may, post, token
from scoping import (
    GENERATE_NAME,
    INSTANCE_HASH,
    INSTANCE_UID,
    OP,
    READ_SECRETS,
    SCOPES,
    TEMPLATE_HASH,
    TEMPLATE_UID,
    Scoping,
    always,
    role,
)
from times import LEFT_TO_MAKE_WHOLE, SCOPES_S, VOLUME_S
from watching import history

from scope_binding.scopes.names import FAMILIES, Family
from tenantry.api import Api
from tenantry.local.control_plane import ControlPlane
from tenantry.local.knative import Knative
from tenantry.local.processes import FunctionProcess
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    NAMESPACE,
    ROLE_BINDING,
    SCOPE_INSTANCE,
    Kind,
    Object,
    is_terminating,
    labels_of,
)
from tenantry.testing import eventually
from tenantry.testing.awaiting import deadline
from tenantry.testing.objects import obj
from tenantry.testing.settling import snapshot

pytestmark = LEFT_TO_MAKE_WHOLE


@pytest.mark.check("sb-28")
@pytest.mark.check("sb-29")
@pytest.mark.check("sb-31")
async def test_missing_namespaces_stop_no_other(scopes: Knative, scoping: Scoping, calm: Calm) -> None:
    """What is listed and missing is named, the others are bound, and it is bound when it comes; a doubled entry is one."""
    test = f"test-{token()}"
    missing, si = f"missing-{test}", f"si-{test}"
    await scoping.template(f"st-{test}", role(test))
    await scoping.instance(si, f"st-{test}", namespaces=[missing, "default", "default"])
    told = await scoping.scoped(si, "ScopingFailed")
    assert told["message"] == f'{missing}: namespaces "{missing}" not found'
    assert set(await scoping.bound(test)) == {"default"}
    assert (await scoping.get(SCOPE_INSTANCE, si))["status"]["unboundNamespaces"] == [missing]

    await scoping.namespace(missing)
    await scoping.bound_in(test, "default", missing)
    await scoping.scoped(si)
    assert "unboundNamespaces" not in (await scoping.get(SCOPE_INSTANCE, si))["status"]
    await calm(scopes)


@pytest.mark.check("sb-30")
async def test_a_namespace_that_goes_away_is_left_alone(scopes: Knative, scoping: Scoping, calm: Calm) -> None:
    """A namespace that is being terminated is named and not tried again and again; the others stay bound."""
    test = f"test-{token()}"
    t2, si = f"t2-{test}", f"si-{test}"
    held = obj(CONFIG_MAP, "held", t2, metadata={"finalizers": ["example.com/held"]})
    await scoping.namespace(t2)
    await scoping.admin.request("POST", f"/api/v1/namespaces/{t2}/configmaps", None, held)
    await scoping.begin(si, f"st-{test}", test, "default", t2)
    await scoping.delete(NAMESPACE, t2)
    await scoping.until(NAMESPACE, t2, "", is_terminating)
    await scoping.says(SCOPE_INSTANCE, si, "Scoped", "ScopingFailed", t2)
    await calm(scopes)
    before = await snapshot(scoping.admin, (ROLE_BINDING, SCOPE_INSTANCE), containing=test)
    for _ in range(2):
        await scopes.sweep(SCOPES)
    assert await snapshot(scoping.admin, (ROLE_BINDING, SCOPE_INSTANCE), containing=test) == before
    assert "default" in await scoping.bound(test)

    patch = [{"op": "remove", "path": "/metadata/finalizers"}]
    await scoping.admin.json_patch(CONFIG_MAP, "held", t2, patch)
    await scoping.instance(si, f"st-{test}", namespaces=["default"])
    await scoping.scoped(si)


@pytest.mark.check("sb-35")
@pytest.mark.check("sb-36")
@pytest.mark.check("sb-37")
@pytest.mark.check("sb-38")
async def test_namespaces_by_selector(scopes: Knative, scoping: Scoping, calm: Calm) -> None:
    """Namespaces are bound while they carry the labels, besides those that are listed; matching nothing gives nothing."""
    test = f"test-{token()}"
    env = f"env-{test}"
    p1, p2, p3 = (f"{name}-{test}" for name in ("p1", "p2", "p3"))
    st, si = f"st-{test}", f"si-{test}"
    await scoping.template(st, role(test))
    await scoping.instance(si, st, namespaceSelector={env: "prod"})
    await scoping.scoped(si)
    assert await scoping.bound(test) == {}

    for name in (p1, p2):
        await scoping.namespace(name, labels={env: "prod"})
    await scoping.namespace(p3)
    await scoping.bound_in(test, p1, p2)
    await scoping.label(p3, {env: "prod"})
    await scoping.bound_in(test, p1, p2, p3)
    await scoping.label(p1, {env: None})
    await scoping.bound_in(test, p2, p3)
    await scoping.instance(
        si, st, namespaceSelector={"matchExpressions": [{"key": env, "operator": "Exists"}]}, namespaces=["default"]
    )
    await scoping.bound_in(test, "default", p2, p3)
    await scoping.instance(si, st, namespaceSelector={"matchLabels": {env: "nothing"}})
    await scoping.bound_in(test)
    await scoping.scoped(si)
    await calm(scopes)
    assert await scoping.bound(test) == {}
    await scoping.instance(si, st, namespaceSelector={})
    every = {found["metadata"]["name"] for found in (await scoping.admin.list(NAMESPACE)).items if not is_terminating(found)}
    await scoping.scoped(si)
    assert set(await scoping.bound(test)) >= every - {""}
    assert "" not in await scoping.bound(test)
    await scoping.delete(SCOPE_INSTANCE, si)  # or it takes part in every namespace that later tests make
    await scoping.bound_in(test)


@pytest.mark.check("sb-41")
@pytest.mark.check("sb-42")
async def test_subjects_mean_what_they_mean_in_kubernetes(scopes: Knative, scoping: Scoping) -> None:
    """A ServiceAccount without namespace is the binding's own, and none in a whole cluster; other kinds are refused."""
    test = f"test-{token()}"
    t2, st, si = f"t2-{test}", f"st-{test}", f"si-{test}"
    await scoping.namespace(t2)
    await scoping.template(st, role(test, subjects=[{"kind": "ServiceAccount", "name": test}]))
    await scoping.instance(si, st, namespaces=[t2])
    await scoping.bound_in(test, t2)
    assert await may(scoping.admin, f"system:serviceaccount:{t2}:{test}", "list", "secrets", t2)
    assert not await may(scoping.admin, f"system:serviceaccount:ops:{test}", "list", "secrets", t2)
    await scoping.instance(si, st)
    assert "namespace: Required value" in (await scoping.scoped(si, "ScopingFailed"))["message"]
    assert "" not in await scoping.bound(test)

    await scoping.template(st, role(test, subjects=[{"kind": "Robot", "name": "r2"}]))
    await scoping.instance(si, st, namespaces=[t2])
    await scoping.says(SCOPE_INSTANCE, si, "Scoped", "ScopingFailed", "Robot")


@pytest.mark.check("sb-43")
async def test_the_same_event_at_many_replicas(scopes: Knative, scoping: Scoping, identity: Any, calm: Calm) -> None:
    """The same event, twenty times at once at four replicas, makes each binding once; none is made twice and taken away."""
    test = f"test-{token()}"
    kubeconfig = await identity(SCOPES)
    replicas = [FunctionProcess(SCOPES, kubeconfig, say=lambda _: None) for _ in range(4)]
    await asyncio.gather(*(replica.start() for replica in replicas))
    places = [f"{test}-{number}" for number in range(3)]
    try:
        await asyncio.gather(*(scoping.namespace(name) for name in places))
        await scoping.template(f"st-{test}", role(f"{test}.1"), role(f"{test}.2"))
        await scoping.templated(f"st-{test}")
        await scopes.drain()
        since = (await scoping.admin.list(ROLE_BINDING)).resource_version
        with scoping.asleep(scopes):  # which would make the bindings before the replicas
            await scoping.instance(f"si-{test}", f"st-{test}", namespaces=places)
            with deadline(SCOPES_S):
                event = look(SCOPE_INSTANCE, f"si-{test}")
                await asyncio.gather(*(_delivered(replica.url, event) for replica in replicas for _ in range(20)))
                for number in (1, 2):
                    await scoping.bound_in(f"{test}.{number}", *places)
                await scoping.scoped(f"si-{test}")
        await calm(scopes)
    finally:
        await asyncio.gather(*(replica.stop() for replica in replicas))
        for replica in replicas:
            replica.close()
    told = await history(scoping.admin, ROLE_BINDING, since)
    made = [
        (binding["roleRef"]["name"], binding["metadata"]["namespace"])
        for change, binding in told
        if change == "ADDED" and binding["roleRef"]["name"].startswith(test)
    ]
    assert sorted(made) == [(f"{test}.{number}", place) for number in (1, 2) for place in places]
    assert not [binding for change, binding in told if change == "DELETED" and binding["roleRef"]["name"].startswith(test)]


async def _delivered(url: str, event: tuple[dict[str, str], bytes]) -> None:
    """Deliver an event as a broker does: again, while the function asks for it."""

    async def accepted() -> bool:
        status, text = await post(url, *event)
        assert status in (204, 409, 503), text
        return status == 204

    await eventually(accepted, what="the event is accepted")


@pytest.mark.check("sb-44")
async def test_subjects_of_many_bindings_change_in_place(scopes: Knative, scoping: Scoping) -> None:
    """When the subject of a role in 200 namespaces changes, all bindings change and none is deleted."""
    test = f"test-{token()}"
    places = [f"{test}-{number}" for number in range(200)]
    await asyncio.gather(*(scoping.namespace(name) for name in places))
    await scoping.template(f"st-{test}", role(test))
    await scoping.instance(f"si-{test}", f"st-{test}", namespaces=places)
    before = await scoping.bound_in(test, *places, within=VOLUME_S)
    await scoping.template(f"st-{test}", role(test, subjects=[{**OP, "name": "other"}]))

    async def changed() -> bool:
        found = await scoping.bound(test)
        return all(found[name]["subjects"][0]["name"] == "other" for name in places)

    await eventually(changed, within=VOLUME_S, what="200 bindings with the new subject")
    after = await scoping.bound(test)
    uids = {name: binding["metadata"]["uid"] for name, binding in before.items()}
    assert uids == {name: binding["metadata"]["uid"] for name, binding in after.items()}
    await scoping.instance(f"si-{test}", f"st-{test}", namespaces=["default"])
    await scoping.bound_in(test, "default", within=VOLUME_S)


@pytest.mark.check("sb-46")
@pytest.mark.parametrize("namespace", ["default", ""], ids=["namespace", "cluster"])
@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
async def test_what_the_oria_operator_left_is_taken_over(
    scopes: Knative, scoping: Scoping, control_plane: ControlPlane, calm: Calm, family: Family, namespace: str
) -> None:
    """Upstream's ClusterRole becomes ours in place, its binding is replaced by ours, and access is never missing."""
    test = f"test-{token()}"
    st, si, theirs = f"st-{test}", f"si-{test}", f"{test}-x7k2p"
    kind = ROLE_BINDING if namespace else CLUSTER_ROLE_BINDING
    subject = {**OP, "name": test}
    places = {"namespaces": [namespace]} if namespace else {}
    reference = {"apiGroup": CLUSTER_ROLE.group, "kind": "ClusterRole", "name": test}

    def left(of: Kind, name: str, owner: Object, labels: Object, **fields: Any) -> Object:
        owned = {key: owner[key] for key in ("apiVersion", "kind")} | {key: owner["metadata"][key] for key in ("name", "uid")}
        metadata: Object = {"name": name, "labels": {**labels, GENERATE_NAME: test}}
        metadata["ownerReferences"] = [{**owned, "controller": True, "blockOwnerDeletion": True}]
        if of is ROLE_BINDING:
            metadata["namespace"] = namespace
        return {"apiVersion": of.api_version, "kind": of.kind, "metadata": metadata, **fields}

    async def access() -> bool:
        return await may(scoping.admin, f"system:serviceaccount:ops:{test}", "list", "secrets", "default")

    await calm(scopes)  # of the 200 namespaces before nothing is left to do
    with scoping.asleep(scopes):
        template = await scoping.template(st, role(test, subjects=[subject]), kind=family.template)
        instance = await scoping.instance(si, st, kind=family.instance, **places)
        labels = {TEMPLATE_UID: template["metadata"]["uid"], TEMPLATE_HASH: "5d8f49b7c"}
        body = left(CLUSTER_ROLE, test, template, labels, rules=[READ_SECRETS])
        async with await Api.connect(field_manager="scopetemplate-controller", kubeconfig=control_plane.kubeconfig) as oria:
            before = await oria.apply(CLUSTER_ROLE, body)
        labels = {INSTANCE_UID: instance["metadata"]["uid"], INSTANCE_HASH: "7c9b5d8f4"}
        body = left(kind, theirs, instance, labels, roleRef=reference, subjects=[subject])
        async with await Api.connect(field_manager="scopeinstance-controller", kubeconfig=control_plane.kubeconfig) as oria:
            await oria.apply(kind, body)
        await eventually(access, what="upstream's binding is in force")
    async with always(access, "access"):
        await scoping.away(kind, theirs, namespace)
        bound = await scoping.bound_in(test, namespace)
        await scoping.scoped(si, kind=family.instance)
        await scoping.templated(st, kind=family.template)
        await calm(scopes)
    after = await scoping.get(CLUSTER_ROLE, test)
    assert (after["metadata"]["uid"], after["rules"]) == (before["metadata"]["uid"], [READ_SECRETS])
    assert labels_of(after)[family.template_label] == st
    assert labels_of(after)[TEMPLATE_HASH] != "5d8f49b7c"
    assert labels_of(bound[namespace])[family.instance_label] == si
    assert bound[namespace]["subjects"] == [subject]

    await scoping.delete(family.instance, si)
    await scoping.bound_in(test)
    await scoping.no_role(test)
