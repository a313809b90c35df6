"""Quotas where no quota spans namespaces: a share for each, and the sum never above the quota (p-59, p-145 to p-151)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from fractions import Fraction

import pytest
import pytest_asyncio
from paasing import CONFIG, CONFIG_NAME, Paasing, at_work, crd_of, example, make_world, paas_name
from people import swept
from times import SERVED_S

from namespace_registration.quotas import number
from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.model.kinds import CUSTOM_RESOURCE_DEFINITION, NAMESPACE, RESOURCE_QUOTA, Object, labels_of
from tenantry.model.paas.names import CLUSTER_RESOURCE_QUOTA, MANAGED_BY_PAAS, PAAS, PAAS_CONFIG, PAAS_NS, QUOTA_NAME
from tenantry.testing import eventually

FUNCTION = "namespace-registration"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(flawlessly: Callable[..., Awaitable[Knative]], admin: Api) -> Knative:
    """The function on plain Kubernetes, under the configuration of the checks."""
    return await at_work(flawlessly, admin, "plain", [FUNCTION])


async def _shares(admin: Api, name: str) -> dict[str, dict[str, str]]:
    found = (await admin.list(RESOURCE_QUOTA, label_selector=f"{MANAGED_BY_PAAS}={name}")).items
    return {each["metadata"]["namespace"].removeprefix(f"{name}-"): each["spec"]["hard"] for each in found}


async def _divided(paasing: Paasing, name: str, wanted: dict[str, dict[str, str]], *, within: float = 0.0) -> None:
    """Wait until the namespaces of a Paas have exactly these quotas."""
    await eventually(
        lambda: _shares(paasing.admin, name),
        lambda found: found == wanted,
        within=within or paasing.eventually_s,
        what=f"shares of {name} are {wanted}",
    )


def _three(**amounts: tuple[str, str, str]) -> dict[str, dict[str, str]]:
    """Of namespaces one, three and two, in the order of their names."""
    named = {each.replace("__", "."): values for each, values in amounts.items()}
    return {
        namespace: {resource: values[place] for resource, values in named.items()}
        for place, namespace in enumerate(("one", "three", "two"))
    }


THREE: dict[str, dict[str, str]] = {"one": {}, "two": {}, "three": {}}


async def test_the_example_is_divided(system: Knative, paasing: Paasing) -> None:
    """13334m, 13333m and 13333m for the user namespaces, and what the capability has for its own (our half of p-59)."""
    name = paas_name()
    await paasing.paas(name, **example())
    wanted = {"cicd": "13334m", "prod": "13333m", "test": "13333m", "argocd": "8"}
    await _divided(paasing, name, {each: {"limits.cpu": amount} for each, amount in wanted.items()})
    await paasing.says(name, "tenantry.dev/Namespaces", "Reconciling", status="True")


@pytest.mark.check("p-145")
async def test_shares_are_whole_units(system: Knative, paasing: Paasing) -> None:
    """Bytes and pieces are not divided; a share of nothing is told; the shares together are the quota."""
    name, gpu = paas_name(), "requests.nvidia.com/gpu"
    quota = {"limits.memory": "1Gi", "pods": "10", gpu: "2"}
    await paasing.paas(name, namespaces=THREE, quota=quota)
    memory = ("357913942", "357913941", "357913941")
    pieces = dict(zip(("one", "three", "two"), (("4", "1"), ("3", "1"), ("3", "0")), strict=True))
    wanted = {
        each: {"limits.memory": bytes_, "pods": pods, gpu: gpus}
        for (each, (pods, gpus)), bytes_ in zip(pieces.items(), memory, strict=True)
    }
    await _divided(paasing, name, wanted)
    assert {each: _sum(wanted, each) for each in quota} == {each: number(text) for each, text in quota.items()}
    await paasing.says(name, "tenantry.dev/NamespacesWarnings", "QuotaShareZero", f"namespace {name}-two has nothing of {gpu}")


def _sum(shares: dict[str, dict[str, str]], resource: str) -> Fraction:
    return sum((number(each[resource]) for each in shares.values() if resource in each), Fraction(0))


@pytest.mark.check("p-147")
async def test_small_amounts_are_divided_too(system: Knative, paasing: Paasing) -> None:
    """Half a CPU, and a thousandth of one."""
    name = paas_name()
    await paasing.paas(name, namespaces=THREE, quota={"limits.cpu": "0.5"})
    await _divided(paasing, name, _three(limits__cpu=("167m", "167m", "166m")))
    await paasing.paas(name, namespaces=THREE, quota={"limits.cpu": "1m"})
    await _divided(paasing, name, _three(limits__cpu=("1m", "0", "0")))


@asynccontextmanager
async def _watched(admin: Api, name: str) -> AsyncIterator[list[Fraction]]:
    """The sums of the CPU of all shares of a Paas, after each change of one."""
    listed = await admin.list(RESOURCE_QUOTA, label_selector=f"{MANAGED_BY_PAAS}={name}")
    now = {each["metadata"]["namespace"]: each["spec"]["hard"] for each in listed.items}
    sums = [_sum(now, "limits.cpu")]

    async def follow() -> None:
        changes = admin.watch(
            RESOURCE_QUOTA, resource_version=listed.resource_version, label_selector=f"{MANAGED_BY_PAAS}={name}"
        )
        async for type_, found in changes:
            if type_ == "BOOKMARK":
                continue
            now[found["metadata"]["namespace"]] = {} if type_ == "DELETED" else found["spec"]["hard"]
            sums.append(_sum(now, "limits.cpu"))

    task = asyncio.create_task(follow())
    try:
        yield sums
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.check("p-146")
async def test_the_sum_of_the_shares_is_never_above_the_quota(system: Knative, paasing: Paasing) -> None:
    """A fourth namespace, one of a PaasNS, then three again, and another quota: at no moment is more given than there is."""
    name, quota = paas_name(), {"limits.cpu": "40"}
    await paasing.paas(name, namespaces=THREE, quota=quota)
    await _divided(paasing, name, _three(limits__cpu=("13334m", "13333m", "13333m")))
    async with _watched(paasing.admin, name) as sums:
        await paasing.paas(name, namespaces={**THREE, "four": {}}, quota=quota)
        await _divided(paasing, name, {each: {"limits.cpu": "10"} for each in ("one", "two", "three", "four")})
        await paasing.paas(name, namespaces=THREE, quota=quota)
        await _divided(paasing, name, _three(limits__cpu=("13334m", "13333m", "13333m")))
        await paasing.paas_ns(f"{name}-one", "asked", paas=name)
        await _divided(paasing, name, {each: {"limits.cpu": "10"} for each in ("one", "two", "three", "asked")})
        await paasing.admin.delete(PAAS_NS, "asked", f"{name}-one")
        await _divided(paasing, name, _three(limits__cpu=("13334m", "13333m", "13333m")))
        assert len(sums) > 8
        assert max(sums) <= 40


async def test_a_quota_that_goes_down_and_up_at_once(system: Knative, paasing: Paasing) -> None:
    """What shrinks does so before anything grows, also where one quota does both."""
    name = paas_name()
    await paasing.paas(name, namespaces=THREE, quota={"limits.cpu": "3", "pods": "30"})
    await _divided(paasing, name, _three(limits__cpu=("1", "1", "1"), pods=("10", "10", "10")))
    async with _watched(paasing.admin, name) as sums:
        await paasing.paas(name, namespaces=THREE, quota={"limits.cpu": "30", "pods": "3"})
        await _divided(paasing, name, _three(limits__cpu=("10", "10", "10"), pods=("1", "1", "1")))
        assert sums[0] == 3
        assert max(sums) <= 30


@pytest.mark.check("p-148")
async def test_each_namespace_may_have_the_whole_quota(system: Knative, paasing: Paasing) -> None:
    """quotaFallback: Full; changed back, then shares again."""
    name, quota = paas_name(), {"limits.cpu": "40"}
    await paasing.paas(name, namespaces=THREE, quota=quota)
    await _divided(paasing, name, _three(limits__cpu=("13334m", "13333m", "13333m")))
    await paasing.config(quotaFallback="Full")
    await _divided(paasing, name, _three(limits__cpu=("40", "40", "40")))
    await paasing.config(quotaFallback="PerNamespace")
    await _divided(paasing, name, _three(limits__cpu=("13334m", "13333m", "13333m")))


@pytest.mark.check("p-149")
async def test_capabilities_have_quotas_of_their_own(system: Knative, paasing: Paasing) -> None:
    """Within min and max; of a clusterwide one the Paas' own value, else the default, at most max, which the PaasConfig says."""
    bounds = {"defaults": {"limits.cpu": "1"}, "min": {"limits.cpu": "3"}, "max": {"limits.cpu": "10"}}
    tekton = {"quotas": {**bounds, "clusterwide": True, "ratio": 0.1}}
    own = {"quotas": {**bounds, "defaults": {"limits.cpu": "4"}}}
    await paasing.config(capabilities={**CONFIG["capabilities"], "tekton": tekton, "own": own})
    name = paas_name()
    for given, kept, wide in ((None, "4", "1"), ("2", "3", "2"), ("20", "10", "10")):
        quota = {"limits.cpu": given} if given else {}
        capabilities = {each: {"enabled": True, "quota": quota} for each in ("own", "tekton")}
        await paasing.paas(name, capabilities=capabilities)
        await _divided(paasing, name, {"own": {"limits.cpu": kept}, "tekton": {"limits.cpu": wide}})
    assert labels_of(await paasing.get(NAMESPACE, f"{name}-tekton"))["clusterquotagroup"] == "paas-tekton"
    told = await paasing.says(CONFIG_NAME, "Warnings", "ClusterwideQuotaPerNamespace", "tekton", kind=PAAS_CONFIG)
    assert told["status"] == "True"
    paas = await paasing.get(PAAS, name)
    assert "Clusterwide" not in str(paas["status"]["conditions"])
    await paasing.config()


async def test_a_quota_that_somebody_changes_is_put_back(system: Knative, paasing: Paasing) -> None:
    """Changed, and deleted, by an administrator (p-151 is about a tenant)."""
    name = paas_name()
    await paasing.paas(name, namespaces={"one": {}}, quota={"limits.cpu": "4"})
    wanted = {"one": {"limits.cpu": "4"}}
    await _divided(paasing, name, wanted)
    where = (QUOTA_NAME, f"{name}-one")
    step = {"op": "replace", "path": "/spec/hard/limits.cpu", "value": "400"}
    await paasing.admin.json_patch(RESOURCE_QUOTA, *where, [step])
    await _divided(paasing, name, wanted)
    live = await paasing.get(RESOURCE_QUOTA, *where)
    await paasing.admin.delete(RESOURCE_QUOTA, *where)
    await paasing.until(RESOURCE_QUOTA, *where, lambda found: found["metadata"]["uid"] != live["metadata"]["uid"])
    await _divided(paasing, name, wanted)


async def test_a_quota_of_a_tenant_in_its_place_becomes_ours(system: Knative, paasing: Paasing) -> None:
    """Else whoever may make quotas in his namespace could put a large one there before ours comes back."""
    name = paas_name()
    await paasing.paas(name, namespaces={"one": {}}, quota={"limits.cpu": "4"})
    await _divided(paasing, name, {"one": {"limits.cpu": "4"}})
    where = (QUOTA_NAME, f"{name}-one")
    steps = [
        {"op": "replace", "path": "/metadata/labels", "value": {}},
        {"op": "replace", "path": "/metadata/annotations", "value": {}},
        {"op": "replace", "path": "/spec/hard", "value": {"limits.cpu": "400"}},
    ]
    await paasing.admin.json_patch(RESOURCE_QUOTA, *where, steps)
    await _divided(paasing, name, {"one": {"limits.cpu": "4"}})


async def test_no_quota_and_requests_above_limits_are_told(system: Knative, paasing: Paasing) -> None:
    """Neither stops anything (our half of p-154)."""
    name = paas_name()
    await paasing.paas(name, namespaces={"one": {}}, quota={})
    await paasing.says(name, "tenantry.dev/NamespacesWarnings", "NoQuota", f"{name}-one")
    assert await _shares(paasing.admin, name) == {}
    await paasing.paas(name, namespaces={"one": {}}, quota={"requests.cpu": "4", "limits.cpu": "2"})
    await _divided(paasing, name, {"one": {"requests.cpu": "4", "limits.cpu": "2"}})
    await paasing.says(name, "tenantry.dev/NamespacesWarnings", "RequestsAboveLimits", "requests.cpu")
    await paasing.says(name, "tenantry.dev/Namespaces", "Reconciling", status="True")


@pytest.mark.check("p-150")
async def test_when_quotas_that_span_namespaces_come_the_shares_go(system: Knative, paasing: Paasing) -> None:
    """First the new quota, then the shares go; when the kind is gone the shares come back.  Last: it changes the cluster."""
    name = paas_name()
    await paasing.paas(name, **example())
    wanted = {"cicd": "13334m", "prod": "13333m", "test": "13333m", "argocd": "8"}
    divided = {each: {"limits.cpu": amount} for each, amount in wanted.items()}
    await _divided(paasing, name, divided)
    crd = crd_of(CLUSTER_RESOURCE_QUOTA)
    seen: list[Object] = []

    async def swept_until_none() -> bool:  # for a moment the function believes that the kind is not served
        assert (await swept(system, FUNCTION))[0] == 204
        return await _shares(paasing.admin, name) == {}

    async with _deletions(paasing.admin, name, seen):
        await make_world(paasing.admin, "os")
        await eventually(swept_until_none, within=paasing.eventually_s)
    quotas = {each["metadata"]["name"]: each for each in (await paasing.admin.list(CLUSTER_RESOURCE_QUOTA)).items}
    assert {name, f"{name}-argocd"} <= set(quotas)
    assert len(seen) == 4
    assert not [each for each in seen if each["status"]["quotas"] < 2]

    await paasing.admin.delete(CUSTOM_RESOURCE_DEFINITION, crd["metadata"]["name"])

    async def unserved() -> bool:
        kind = CLUSTER_RESOURCE_QUOTA
        return await paasing.admin.served(kind.api_version, kind.kind, again=True) is None

    await eventually(unserved, within=SERVED_S)
    assert (await swept(system, FUNCTION))[0] == 204
    await _divided(paasing, name, divided)


@asynccontextmanager
async def _deletions(admin: Api, name: str, seen: list[Object]) -> AsyncIterator[None]:
    """Of each share that goes, how many ClusterResourceQuotas of the Paas were there right after."""
    listed = await admin.list(RESOURCE_QUOTA, label_selector=f"{MANAGED_BY_PAAS}={name}")

    async def follow() -> None:
        changes = admin.watch(
            RESOURCE_QUOTA, resource_version=listed.resource_version, label_selector=f"{MANAGED_BY_PAAS}={name}"
        )
        async for type_, found in changes:
            if type_ == "DELETED":
                quotas = await admin.list(CLUSTER_RESOURCE_QUOTA, label_selector=f"{MANAGED_BY_PAAS}={name}")
                seen.append({**found, "status": {"quotas": len(quotas.items)}})

    task = asyncio.create_task(follow())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
