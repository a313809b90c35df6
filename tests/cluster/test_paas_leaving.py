"""Deletion of Paas and of the PaasConfig: what goes, what stays, and what waits for whom (p-34, p-37, p-58, p-182, p-192)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest_asyncio
from paasing import CONFIG, CONFIG_NAME, Paasing, at_work, example, paas_name
from people import swept

from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.model.conditions import find_condition
from tenantry.model.kinds import NAMESPACE, Object, annotations_of, is_terminating, labels_of
from tenantry.model.paas.names import CLUSTER_RESOURCE_QUOTA, PAAS, PAAS_CONFIG, PAAS_UID, RIGHTS_FINALIZER
from tenantry.testing.objects import obj

FUNCTION = "namespace-registration"
PART = "tenantry.dev/Namespaces"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(flawlessly: Callable[..., Awaitable[Knative]], admin: Api) -> Knative:
    """The function, on a cluster with OpenShift's kinds, without the policies that refuse what it has to bear when it got in."""
    return await at_work(flawlessly, admin, "os", [FUNCTION], without=["all"])


async def _made(paasing: Paasing) -> str:
    name = paas_name()
    await paasing.paas(name, **example())
    await paasing.has_namespaces(name, "cicd", "test", "prod", "argocd")
    for quota in (name, f"{name}-argocd"):
        await paasing.until(CLUSTER_RESOURCE_QUOTA, quota, "", lambda _: True)
    return name


async def _leaves_nothing(paasing: Paasing, name: str) -> None:
    await paasing.away(PAAS, name)
    await paasing.has_namespaces(name)
    for quota in (name, f"{name}-argocd"):
        assert await paasing.admin.get(CLUSTER_RESOURCE_QUOTA, quota) is None


async def test_a_paas_takes_its_namespaces_and_quotas_along(system: Knative, paasing: Paasing) -> None:
    """When it is gone its namespaces are on their way out, and its quotas are gone (our half of p-34)."""
    name = await _made(paasing)
    await paasing.admin.delete(PAAS, name)
    await _leaves_nothing(paasing, name)


async def test_namespaces_and_quotas_wait_for_the_other_functions(system: Knative, paasing: Paasing) -> None:
    """While another function's finalizer is on the Paas they stay, and it says for whom it waits (our half of p-173)."""
    name = await _made(paasing)
    body = obj(PAAS, name)
    body["metadata"]["finalizers"] = [RIGHTS_FINALIZER]
    await paasing.admin.apply(PAAS, body, manager="another-function")
    before = await paasing.namespaces(name)
    await paasing.admin.delete(PAAS, name)
    await paasing.until(PAAS, name, "", lambda found: (find_condition(found, "Ready") or {}).get("reason") == "Finalizing")
    assert RIGHTS_FINALIZER in (find_condition(await paasing.get(PAAS, name), "Ready") or {})["message"]
    assert (await swept(system, FUNCTION))[0] == 204
    after = await paasing.namespaces(name)
    assert {each: found["metadata"]["resourceVersion"] for each, found in after.items()} == {
        each: found["metadata"]["resourceVersion"] for each, found in before.items()
    }
    live = await paasing.get(PAAS, name)
    left = [each for each in live["metadata"]["finalizers"] if each != RIGHTS_FINALIZER]
    await paasing.admin.json_patch(PAAS, name, "", [{"op": "replace", "path": "/metadata/finalizers", "value": left}])
    await _leaves_nothing(paasing, name)


async def test_one_paas_leaves_the_others_alone(system: Knative, paasing: Paasing) -> None:
    """Also one whose name begins with its own."""
    name = await _made(paasing)
    await paasing.paas(f"{name}-more", namespaces={"one": {}}, quota={"pods": "9"})
    before = await paasing.has_namespaces(f"{name}-more", "one")
    await paasing.admin.delete(PAAS, name)
    await _leaves_nothing(paasing, name)
    assert (await swept(system, FUNCTION))[0] == 204
    after = await paasing.has_namespaces(f"{name}-more", "one")
    assert [each["metadata"]["uid"] for each in after.values()] == [each["metadata"]["uid"] for each in before.values()]
    assert await paasing.admin.get(CLUSTER_RESOURCE_QUOTA, f"{name}-more") is not None


async def test_what_a_paas_left_is_told_and_can_be_handed_on(system: Knative, paasing: Paasing) -> None:
    """With its finalizers forced off quotas go, namespaces stay and are told, and a new Paas gets them (our half of p-192)."""
    name = await _made(paasing)
    before = await paasing.namespaces(name)
    await system.drain()
    await system.functions[FUNCTION].stop()
    steps = [{"op": "replace", "path": "/metadata/finalizers", "value": []}]
    await paasing.admin.json_patch(PAAS, name, "", steps)
    await paasing.leave(name)
    await system.functions[FUNCTION].start()
    assert (await swept(system, FUNCTION))[0] == 204

    for quota in (name, f"{name}-argocd"):
        await paasing.away(CLUSTER_RESOURCE_QUOTA, quota)
    after = await paasing.has_namespaces(name, "cicd", "test", "prod", "argocd")
    assert {each: found["metadata"]["uid"] for each, found in after.items()} == {
        each: found["metadata"]["uid"] for each, found in before.items()
    }
    assert "exists no more" in await paasing.warned(f"{name}-cicd", "PaasGone")

    paas = await paasing.paas(name, namespaces={"cicd": {}}, quota={"pods": "9"})
    await paasing.says(name, PART, "NamespaceConflict", f"namespace {name}-cicd is of a Paas that exists no more")
    await paasing.label(f"{name}-cicd", {"tenantry.dev/adopt": name}, "annotations")
    await paasing.until(NAMESPACE, f"{name}-cicd", "", lambda found: _is_of(found, paas))
    await paasing.says(name, PART, "Reconciling", status="True")
    assert (await paasing.get(NAMESPACE, f"{name}-cicd"))["metadata"]["uid"] == before[f"{name}-cicd"]["metadata"]["uid"]


def _is_of(found: Object, paas: Object) -> bool:
    return bool(annotations_of(found).get(PAAS_UID) == paas["metadata"]["uid"])


# -- the configuration -------------------------------------------------------------------------------------


async def test_without_a_configuration_nothing_is_made_until_it_comes(system: Knative, paasing: Paasing) -> None:
    """What is there stays, what is not asked for any more goes, a Paas can be deleted; then all is made (half of p-182)."""
    old, leaving = await _made(paasing), await _made(paasing)
    await paasing.says(old, PART, "Reconciling", status="True")
    await system.drain()
    await paasing.admin.delete(PAAS_CONFIG, CONFIG_NAME)
    await paasing.away(PAAS_CONFIG, CONFIG_NAME)
    name = paas_name()
    await paasing.paas(name, namespaces={"one": {}}, quota={"pods": "9"})
    await paasing.says(name, "Ready", "NoPaasConfig", status="False")
    assert await paasing.namespaces(name) == {}
    assert await paasing.admin.get(CLUSTER_RESOURCE_QUOTA, name) is None

    await paasing.says(old, PART, "NoPaasConfig", status="False")
    before = await paasing.namespaces(old)
    assert len(before) == 4
    spec = example()
    await paasing.paas(old, **{**spec, "namespaces": {"cicd": {}, "prod": {}, "new": {}}})
    after = await paasing.has_namespaces(old, "cicd", "prod", "argocd")
    assert all(
        found["metadata"]["resourceVersion"] == before[each]["metadata"]["resourceVersion"] for each, found in after.items()
    )
    await paasing.admin.delete(PAAS, leaving)
    await _leaves_nothing(paasing, leaving)

    await paasing.config()
    await paasing.has_namespaces(old, "cicd", "prod", "argocd", "new")
    await paasing.has_namespaces(name, "one")
    await paasing.says(name, PART, "Reconciling", status="True")


async def test_of_two_configurations_the_older_counts(system: Knative, paasing: Paasing) -> None:
    """When it is deleted everything follows the younger (our half of p-183)."""
    name = paas_name()
    await paasing.paas(name, namespaces={"one": {}}, requestor="me")
    await paasing.until(NAMESPACE, f"{name}-one", "", lambda found: labels_of(found).get("requestor") == "me")
    await paasing.admin.create(PAAS_CONFIG, obj(PAAS_CONFIG, "z-younger", spec={**CONFIG, "requestor_label": "who"}))
    assert (await swept(system, FUNCTION))[0] == 204
    assert "who" not in labels_of(await paasing.get(NAMESPACE, f"{name}-one"))
    await paasing.admin.delete(PAAS_CONFIG, CONFIG_NAME)
    found = await paasing.until(NAMESPACE, f"{name}-one", "", lambda found: labels_of(found).get("who") == "me")
    assert "requestor" not in labels_of(found)
    await paasing.config()
    await paasing.admin.delete(PAAS_CONFIG, "z-younger")
    await paasing.until(NAMESPACE, f"{name}-one", "", lambda found: labels_of(found).get("requestor") == "me")


async def test_a_capability_that_nobody_configures_any_more_keeps_its_namespace(system: Knative, paasing: Paasing) -> None:
    """It counts to the quota of the Paas then, also where new ones are refused; an external one has none (our half of p-186)."""
    name = await _made(paasing)
    before = await paasing.get(NAMESPACE, f"{name}-argocd")
    for policy in ("NamespaceOnly", "Reject"):
        await paasing.config(capabilities={"other": {}}, unknownCapabilityPolicy=policy)
        await paasing.until(NAMESPACE, f"{name}-argocd", "", lambda found: labels_of(found).get("clusterquotagroup") == name)
        await paasing.away(CLUSTER_RESOURCE_QUOTA, f"{name}-argocd")
        await paasing.says(name, f"{PART}Warnings" if policy == "NamespaceOnly" else PART, "UnknownCapability", "argocd")
    assert (await paasing.get(NAMESPACE, f"{name}-argocd"))["metadata"]["uid"] == before["metadata"]["uid"]
    refused = paas_name()
    await paasing.paas(refused, capabilities={"argocd": {"enabled": True}}, namespaces={"one": {}}, quota={"pods": "9"})
    await paasing.says(refused, PART, "UnknownCapability", "argocd")
    await paasing.has_namespaces(refused, "one")
    await paasing.config(capabilities={"argocd": {"external": True}})
    await paasing.has_namespaces(name, "cicd", "test", "prod")
    await paasing.config()
    assert not is_terminating(await paasing.get(PAAS, name))
