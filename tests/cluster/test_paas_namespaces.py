"""Namespaces of a Paas and their quotas on OpenShift: what a Paas gives, and how they follow it (p-1, p-2, p-10, p-22, p-29)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import pytest_asyncio
from paasing import Paasing, at_work, example, paas_name
from people import swept, tell
from times import NAMESPACE_GONE_S

from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.model.kinds import NAMESPACE, RESOURCE_QUOTA, Object, annotations_of, finalizers_of, is_terminating, labels_of
from tenantry.model.paas.names import CLUSTER_RESOURCE_QUOTA, MANAGED_BY_PAAS, PAAS, PAAS_FINALIZER, PAAS_NS, PAAS_UID
from tenantry.model.pointer import pointer
from tenantry.testing import eventually
from tenantry.testing.objects import obj

FUNCTION = "namespace-registration"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(flawlessly: Callable[..., Awaitable[Knative]], admin: Api) -> Knative:
    """The function, on a cluster with OpenShift's kinds, under the configuration of the checks."""
    return await at_work(flawlessly, admin, "os", [FUNCTION])


@pytest.mark.check("p-1")
@pytest.mark.check("p-2")
async def test_a_paas_gives_namespaces_with_their_labels(system: Knative, paasing: Paasing) -> None:
    """Each entry and each capability has its namespace, with our marks and labels; the bare name has none."""
    name = paas_name()
    paas = await paasing.paas(name, **example())
    found = await paasing.has_namespaces(name, "cicd", "test", "prod", "argocd")

    for full, namespace in found.items():
        labels = labels_of(namespace)
        assert labels[MANAGED_BY_PAAS] == name
        assert labels["requestor"] == "my-team"
        assert labels["argocd.argoproj.io/managed-by"] == f"{name}-argocd"
        assert labels["clusterquotagroup"] == (full if full.endswith("-argocd") else name)
        assert annotations_of(namespace)[PAAS_UID] == paas["metadata"]["uid"]
        assert "ownerReferences" not in namespace["metadata"]
    assert await paasing.admin.get(NAMESPACE, name) is None
    assert PAAS_FINALIZER in finalizers_of(await paasing.get(PAAS, name))


@pytest.mark.check("p-10")
async def test_a_paas_has_a_quota_for_all_its_namespaces(system: Knative, paasing: Paasing) -> None:
    """One quota spans the user namespaces, and one is the capability's."""
    name = paas_name()
    await paasing.paas(name, **example())
    own = await paasing.until(CLUSTER_RESOURCE_QUOTA, name, "", lambda _: True)
    argo = await paasing.until(CLUSTER_RESOURCE_QUOTA, f"{name}-argocd", "", lambda _: True)

    assert own["spec"]["quota"]["hard"] == {"limits.cpu": "40"}
    assert own["spec"]["selector"]["labels"]["matchLabels"] == {"clusterquotagroup": name}
    assert labels_of(own)[MANAGED_BY_PAAS] == name
    assert argo["spec"]["quota"]["hard"] == {"limits.cpu": "8"}
    assert argo["spec"]["selector"]["labels"]["matchLabels"] == {"clusterquotagroup": f"{name}-argocd"}
    await paasing.has_namespaces(name, "cicd", "test", "prod", "argocd")
    assert not (await paasing.admin.list(RESOURCE_QUOTA, f"{name}-cicd")).items


@pytest.mark.check("p-22")
async def test_a_namespace_that_leaves_the_spec_goes_and_the_others_stay(system: Knative, paasing: Paasing) -> None:
    """Only the one that is not wanted any more is deleted."""
    name, spec = paas_name(), example()
    await paasing.paas(name, **spec)
    before = await paasing.has_namespaces(name, "cicd", "test", "prod", "argocd")
    await paasing.paas(name, **{**spec, "namespaces": {"cicd": {}, "prod": {}}})
    after = await paasing.has_namespaces(name, "cicd", "prod", "argocd")

    assert {each: found["metadata"]["uid"] for each, found in after.items()} == {
        each: found["metadata"]["uid"] for each, found in before.items() if each in after
    }


@pytest.mark.check("p-29")
async def test_quotas_follow_the_paas(system: Knative, paasing: Paasing) -> None:
    """Another amount, one more resource, and one less; without any there is no quota object."""
    name, spec = paas_name(), example()
    await paasing.paas(name, **spec)
    await _hard(paasing, name, {"limits.cpu": "40"})
    await paasing.paas(name, **{**spec, "quota": {"limits.cpu": "30", "limits.memory": "1Gi"}})
    await _hard(paasing, name, {"limits.cpu": "30", "limits.memory": "1Gi"})
    await paasing.paas(name, **{**spec, "quota": {"limits.memory": "1Gi"}})
    await _hard(paasing, name, {"limits.memory": "1Gi"})
    await paasing.admin.json_patch(PAAS, name, "", [{"op": "replace", "path": "/spec/quota", "value": {}}])
    await paasing.away(CLUSTER_RESOURCE_QUOTA, name)
    await paasing.says(name, "tenantry.dev/NamespacesWarnings", "NoQuota", f"{name}-cicd")


async def _hard(paasing: Paasing, name: str, wanted: dict[str, str]) -> None:
    await paasing.until(CLUSTER_RESOURCE_QUOTA, name, "", lambda found: found["spec"]["quota"]["hard"] == wanted)


@pytest.mark.check("p-152")
async def test_a_capabilitys_quota_is_kept_within_its_bounds(system: Knative, paasing: Paasing) -> None:
    """Below min is min, above max is max; what has no default is taken from the Paas."""
    quotas = {"defaults": {"limits.cpu": "5"}, "min": {"limits.cpu": "3"}, "max": {"limits.cpu": "10"}}
    known = {"argocd": {"quotas": {"defaults": {"limits.cpu": "8"}}}, "bounded": {"quotas": quotas}}
    await paasing.config(capabilities=known)
    name = paas_name()
    for given, wanted in (("1", "3"), ("5500m", "5500m"), ("20", "10")):
        quota = {"limits.cpu": given, "pods": "7"}
        await paasing.paas(name, capabilities={"bounded": {"enabled": True, "quota": quota}})
        await _hard(paasing, f"{name}-bounded", {"limits.cpu": wanted, "pods": "7"})
    await paasing.config()


async def test_without_a_capability_its_namespace_and_quota_go(system: Knative, paasing: Paasing) -> None:
    """The half of p-23 that is about namespaces."""
    name, spec = paas_name(), example()
    await paasing.paas(name, **spec)
    await paasing.has_namespaces(name, "cicd", "test", "prod", "argocd")
    await paasing.paas(name, **{**spec, "capabilities": {"argocd": {"enabled": False}}})
    await paasing.has_namespaces(name, "cicd", "test", "prod")
    await paasing.away(CLUSTER_RESOURCE_QUOTA, f"{name}-argocd")
    assert await paasing.admin.get(CLUSTER_RESOURCE_QUOTA, name) is not None


async def test_unknown_capabilities_count_to_the_quota_of_the_paas(system: Knative, paasing: Paasing) -> None:
    """A made-up capability is no way around the quota, and is told (the half of p-46 that is about namespaces)."""
    name = paas_name()
    await paasing.paas(name, capabilities={"nope": {"enabled": True}}, namespaces={"one": {}}, quota={"pods": "9"})
    found = await paasing.has_namespaces(name, "nope", "one")
    assert labels_of(found[f"{name}-nope"])["clusterquotagroup"] == name
    await paasing.says(name, "tenantry.dev/NamespacesWarnings", "UnknownCapability", "nope")
    await paasing.says(name, "tenantry.dev/Namespaces", "Reconciling", status="True")


async def test_what_somebody_changes_is_put_back(system: Knative, paasing: Paasing) -> None:
    """Labels of namespaces and quotas, a deleted quota, a deleted namespace (the half of p-126 that is about namespaces)."""
    name = paas_name()
    await paasing.paas(name, **example())
    await paasing.has_namespaces(name, "cicd", "test", "prod", "argocd")
    for change in ({MANAGED_BY_PAAS: None}, {MANAGED_BY_PAAS: "other"}, {"clusterquotagroup": "other", "requestor": None}):
        await paasing.label(f"{name}-cicd", change)
        await paasing.until(NAMESPACE, f"{name}-cicd", "", lambda found: _labelled(found, name))
    step = {"op": "remove", "path": pointer("metadata", "labels", MANAGED_BY_PAAS)}
    await paasing.admin.json_patch(CLUSTER_RESOURCE_QUOTA, name, "", [step])
    await paasing.until(CLUSTER_RESOURCE_QUOTA, name, "", lambda found: labels_of(found).get(MANAGED_BY_PAAS) == name)
    await paasing.admin.delete(CLUSTER_RESOURCE_QUOTA, name)
    await paasing.until(CLUSTER_RESOURCE_QUOTA, name, "", lambda found: not is_terminating(found))
    old = await paasing.get(NAMESPACE, f"{name}-test")
    await paasing.admin.delete(NAMESPACE, f"{name}-test")
    await paasing.until(
        NAMESPACE,
        f"{name}-test",
        "",
        lambda found: found["metadata"]["uid"] != old["metadata"]["uid"] and labels_of(found).get(MANAGED_BY_PAAS) == name,
        within=NAMESPACE_GONE_S,
    )


def _labelled(found: Object, name: str) -> bool:
    labels = labels_of(found)
    wanted = {MANAGED_BY_PAAS: name, "clusterquotagroup": name, "requestor": "my-team"}
    return wanted.items() <= labels.items()


async def test_events_that_come_again_write_nothing(system: Knative, paasing: Paasing) -> None:
    """Once all is there neither a second event of anything nor a sweep writes (the half of p-15 that is ours)."""
    name = paas_name()
    await paasing.paas(name, **example())
    await paasing.has_namespaces(name, "cicd", "test", "prod", "argocd")
    await paasing.paas_ns(f"{name}-argocd", "adminonly", paas=name, groups=["us"])
    await paasing.has_namespaces(name, "cicd", "test", "prod", "argocd", "adminonly")
    await paasing.says(name, "tenantry.dev/Namespaces", "Reconciling", status="True")
    await system.drain()
    before = await _versions(paasing, name)
    for _ in range(3):
        await tell(system, FUNCTION, PAAS, name)
        await tell(system, FUNCTION, PAAS_NS, "adminonly", f"{name}-argocd")
        await tell(system, FUNCTION, CLUSTER_RESOURCE_QUOTA, name)
        for each in await paasing.namespaces(name):
            await tell(system, FUNCTION, NAMESPACE, each)
    assert (await swept(system, FUNCTION))[0] == 204
    assert await _versions(paasing, name) == before


async def _versions(paasing: Paasing, name: str) -> dict[str, str]:
    found = [await paasing.get(PAAS, name), *(await paasing.namespaces(name)).values()]
    found += (await paasing.admin.list(CLUSTER_RESOURCE_QUOTA, label_selector=f"{MANAGED_BY_PAAS}={name}")).items
    found += (await paasing.admin.list(PAAS_NS, f"{name}-argocd")).items
    return {f"{each['kind']}/{each['metadata']['name']}": each["metadata"]["resourceVersion"] for each in found}


@pytest.mark.check("p-69")
async def test_a_label_alone_gives_nothing_away(system: Knative, paasing: Paasing) -> None:
    """A namespace that an administrator labelled is neither changed nor deleted, whatever becomes of the Paas."""
    name, victim = paas_name(), paas_name()
    made = await paasing.admin.create(NAMESPACE, obj(NAMESPACE, victim, labels={MANAGED_BY_PAAS: name}))
    await paasing.paas(name, namespaces={"one": {}})
    await paasing.until(NAMESPACE, f"{name}-one", "", lambda _: True)
    await paasing.paas(name, namespaces={"two": {}})
    await paasing.until(NAMESPACE, f"{name}-two", "", lambda _: True)
    await paasing.says(name, "tenantry.dev/Namespaces", "Reconciling", status="True")
    assert (await swept(system, FUNCTION))[0] == 204
    await paasing.leave(name)
    assert (await swept(system, FUNCTION))[0] == 204
    await system.drain()

    async def stays() -> bool:
        found = await paasing.get(NAMESPACE, victim)
        return labels_of(found) == labels_of(made) and not is_terminating(found) and not annotations_of(found)

    assert await eventually(stays)


async def test_a_capability_without_quotas_or_without_namespace(system: Knative, paasing: Paasing) -> None:
    """Empty maps give a namespace without quota; an external one has none (the half of p-153 that is about namespaces)."""
    empty: dict[str, object] = {"clusterwide": False, "defaults": {}, "min": {}, "max": {}, "ratio": 0}
    await paasing.config(capabilities={"bare": {"quotas": empty}, "out": {"external": True}})
    name = paas_name()
    await paasing.paas(name, capabilities={"bare": {"enabled": True}, "out": {"enabled": True}})
    found = await paasing.has_namespaces(name, "bare")
    assert labels_of(found[f"{name}-bare"])["clusterquotagroup"] == f"{name}-bare"
    await paasing.says(name, "tenantry.dev/Namespaces", "Reconciling", status="True")
    assert (await paasing.admin.list(CLUSTER_RESOURCE_QUOTA, label_selector=f"{MANAGED_BY_PAAS}={name}")).items == []
    await paasing.config()
