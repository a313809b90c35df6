"""Paas with all functions at work: what stands in the end, what is told, and that nothing waits for a function that is away."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio
from admitting import V1, V2, Admitting, of_example
from flawless import Calm
from paasing import CONFIG_NAME, Paasing, at_work, example, paas_name, together
from people import CORE_EVENT, tell
from times import LEFT_TO_MAKE_WHOLE, NAMESPACE_GONE_S

from tenantry.api import Api
from tenantry.local.control_plane import ControlPlane
from tenantry.local.knative import Knative
from tenantry.model.conditions import find_condition
from tenantry.model.kinds import CLUSTER_ROLE_BINDING, NAMESPACE, ROLE_BINDING, Object, annotations_of, labels_of
from tenantry.model.paas.names import (
    ASKED_BY,
    CLUSTER_RESOURCE_QUOTA,
    GROUP,
    MANAGED_BY_PAAS,
    PAAS,
    PAAS_CONFIG,
    PAAS_NS,
)
from tenantry.testing import eventually

pytestmark = LEFT_TO_MAKE_WHOLE

FUNCTIONS = ["namespace-registration", "rbac-aggregation", "scope-binding", "release-provisioning"]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(flawlessly: Callable[..., Awaitable[Knative]], admin: Api) -> Knative:
    """All functions that have a part in Paas, on a cluster with OpenShift's kinds."""
    return await at_work(flawlessly, admin, "os", FUNCTIONS)


async def _ready(paasing: Paasing, **spec: Any) -> str:
    name = paas_name()
    await paasing.paas(name, **(spec or example()))
    await paasing.ready(name)
    return name


async def _accounts(paasing: Paasing, name: str) -> list[str]:
    """The namespaces of a Paas in which service accounts have rights in the cluster."""
    found = (await paasing.admin.list(CLUSTER_ROLE_BINDING)).items
    subjects = [each for binding in found for each in binding.get("subjects") or ()]
    return sorted({each["namespace"] for each in subjects if str(each.get("namespace", "")).startswith(f"{name}-")})


@pytest.mark.check("p-13")
async def test_the_example_is_ready(system: Knative, paasing: Paasing) -> None:
    """Ready without errors, and a warning that names only the group with query and users."""
    name = await _ready(paasing)
    paas = await paasing.get(PAAS, name)
    conditions = {each: find_condition(paas, each) or {} for each in ("Ready", "HasErrors", "Warnings")}
    assert [conditions[each]["status"] for each in ("Ready", "HasErrors", "Warnings")] == ["True", "False", "True"]
    assert [conditions[each]["reason"] for each in ("Ready", "HasErrors", "Warnings")] == ["Reconciling"] * 2 + ["QueryAndUsers"]
    assert "others" in conditions["Warnings"]["message"]
    assert ";" not in conditions["Warnings"]["message"]
    assert {each["observedGeneration"] for each in conditions.values()} == {paas["metadata"]["generation"]}
    assert paas["status"]["namespaces"] == sorted(f"{name}-{each}" for each in ("argocd", "cicd", "prod", "test"))
    assert [each["name"] for each in paas["status"]["groups"]] == ["others", f"{name}-them", f"{name}-us"]


@pytest.mark.check("p-82")
async def test_the_example_gives_the_same_in_both_versions(system: Knative, paasing: Paasing, admitting: Admitting) -> None:
    """A list and ``enabled: true``, or a map and nothing."""
    one, other = paas_name(), paas_name()
    await admitting.made(of_example(one, V1))
    await admitting.made(of_example(other, V2, capabilities={"argocd": {}}))
    await together(paasing.ready(one), paasing.ready(other))
    made = await _everything(paasing, one)
    assert await _everything(paasing, other) == made
    assert made.count('"its-uid"') == 4 + 2 + 2 + 20  # namespaces, Groups, quotas, RoleBindings
    assert await _accounts(paasing, other) == [f"{other}-argocd"]


async def _everything(paasing: Paasing, name: str) -> str:
    """What a Paas came to, as a text in which its name and its uid are the same for all."""
    paas = await paasing.get(PAAS, name)
    made: list[Any] = [paas["status"]["namespaces"], paas["status"]["groups"], sorted(paas["metadata"]["finalizers"])]
    for kind in (NAMESPACE, GROUP, CLUSTER_RESOURCE_QUOTA, ROLE_BINDING):
        for each in (await paasing.admin.list(kind, label_selector=f"{MANAGED_BY_PAAS}={name}")).items:
            metadata = {part: each["metadata"].get(part) for part in ("name", "namespace", "labels", "annotations", "finalizers")}
            made.append({**{part: each.get(part) for part in ("spec", "users", "roleRef", "subjects")}, "metadata": metadata})
    made.append(await _accounts(paasing, name))
    return json.dumps(made, sort_keys=True, indent=1).replace(paas["metadata"]["uid"], "its-uid").replace(name, "my-paas")


@pytest.mark.check("p-15")
async def test_events_that_come_thrice_write_nothing(system: Knative, paasing: Paasing, calm: Calm) -> None:
    """Once all is there no function writes anything, however often it is told."""
    name = await _ready(paasing)
    await paasing.paas_ns(f"{name}-argocd", "adminonly", paas=name, groups=["us"])
    await paasing.says("adminonly", "Ready", "Reconciling", status="True", kind=PAAS_NS, namespace=f"{name}-argocd")
    await calm(system)
    before = await _versions(paasing, name)
    for _ in range(3):
        for function in FUNCTIONS:
            for key in before:
                kind, namespace, each = key
                await tell(system, function, kind, each, namespace)
    assert await _versions(paasing, name) == before


async def _versions(paasing: Paasing, name: str) -> dict[Any, str]:
    admin, label = paasing.admin, f"{MANAGED_BY_PAAS}={name}"
    found = {(PAAS, "", name): await paasing.get(PAAS, name)}
    for kind in (NAMESPACE, CLUSTER_RESOURCE_QUOTA, GROUP, ROLE_BINDING):
        for each in (await admin.list(kind, label_selector=label)).items:
            found[kind, each["metadata"].get("namespace", ""), each["metadata"]["name"]] = each
    for each in (await admin.list(PAAS_NS, f"{name}-argocd")).items:
        found[PAAS_NS, f"{name}-argocd", each["metadata"]["name"]] = each
    for each in (await admin.list(CLUSTER_ROLE_BINDING)).items:
        if each["metadata"]["name"].startswith("paas-"):
            found[CLUSTER_ROLE_BINDING, "", each["metadata"]["name"]] = each
    return {key: each["metadata"]["resourceVersion"] for key, each in found.items()}


@pytest.mark.check("p-23")
async def test_a_capability_that_is_switched_off_leaves_nothing(system: Knative, paasing: Paasing) -> None:
    """Namespace, quota and the rights of its service accounts go."""
    name = await _ready(paasing)
    assert await _accounts(paasing, name) == [f"{name}-argocd"]
    await paasing.paas(name, **{**example(), "capabilities": {"argocd": {"enabled": False}}})
    await together(
        paasing.has_namespaces(name, "cicd", "test", "prod"),
        paasing.away(CLUSTER_RESOURCE_QUOTA, f"{name}-argocd"),
        eventually(lambda: _accounts(paasing, name), lambda found: found == [], within=paasing.eventually_s),
    )
    await paasing.ready(name)


async def _is_gone(paasing: Paasing, name: str) -> None:
    await paasing.away(PAAS, name)
    await paasing.has_namespaces(name)
    for kind in (GROUP, CLUSTER_RESOURCE_QUOTA, ROLE_BINDING):
        assert (await paasing.admin.list(kind, label_selector=f"{MANAGED_BY_PAAS}={name}")).items == [], kind
    assert await _accounts(paasing, name) == []


@pytest.mark.check("p-34")
@pytest.mark.check("p-168")
@pytest.mark.parametrize("controllers", ["run", "are away"])
async def test_a_paas_that_is_deleted_leaves_nothing(
    system: Knative, paasing: Paasing, control_plane: ControlPlane, controllers: str
) -> None:
    """When it is gone, groups, bindings, quotas and subjects are, and its namespaces are on their way; Kubernetes' own
    controllers are not needed for that.  Every identity can do its part, making and taking away."""
    name = await _ready(paasing)
    if controllers == "are away":
        await asyncio.to_thread(control_plane.stop_controller_manager)
    try:
        await paasing.admin.delete(PAAS, name)
        await _is_gone(paasing, name)
    finally:
        if controllers == "are away":
            await asyncio.to_thread(control_plane.start_controller_manager)


@pytest.mark.check("p-38")
async def test_a_paas_ns_that_goes_takes_its_namespace_and_no_group(system: Knative, paasing: Paasing) -> None:
    """Its groups are the Paas', and stay."""
    name = await _ready(paasing)
    await paasing.paas_ns(f"{name}-argocd", "adminonly", paas=name, groups=["us"])
    await paasing.says("adminonly", "Ready", "Reconciling", status="True", kind=PAAS_NS, namespace=f"{name}-argocd")
    groups = await _groups(paasing, name)
    await paasing.admin.delete(PAAS_NS, "adminonly", f"{name}-argocd")
    await paasing.has_namespaces(name, "cicd", "test", "prod", "argocd")
    assert len(groups) == 2
    assert await _groups(paasing, name) == groups


async def _groups(paasing: Paasing, name: str) -> dict[str, str]:
    found = (await paasing.admin.list(GROUP, label_selector=f"{MANAGED_BY_PAAS}={name}")).items
    return {each["metadata"]["name"]: each["metadata"]["uid"] for each in found}


@pytest.mark.check("p-106")
async def test_the_next_paas_ns_gets_a_new_namespace(system: Knative, paasing: Paasing) -> None:
    """Bound as it says, and without what was in the first one."""
    name = await _ready(paasing, **{**example(), "namespaces": {"one": {}, "two": {}}, "capabilities": {}})
    await paasing.paas_ns(f"{name}-one", "secret", paas=name, groups=["us"])
    old = (await paasing.has_namespaces(name, "one", "two", "secret"))[f"{name}-secret"]["metadata"]["uid"]
    await paasing.paas_ns(f"{name}-two", "secret", paas=name)
    await paasing.says("secret", "Ready", "NamespaceConflict", kind=PAAS_NS, namespace=f"{name}-two")
    await paasing.admin.delete(PAAS_NS, "secret", f"{name}-one")
    await paasing.gone(f"{name}-secret", old)
    await paasing.until(
        NAMESPACE,
        f"{name}-secret",
        "",
        lambda found: annotations_of(found).get(ASKED_BY) == f"{name}-two/secret",
        within=NAMESPACE_GONE_S,
    )
    await eventually(
        lambda: paasing.bindings(f"{name}-secret"),
        lambda found: found.get("paas-view") == ["others", f"{name}-them", f"{name}-us"],
        within=paasing.eventually_s,
    )
    await paasing.says("secret", "Ready", "Reconciling", status="True", kind=PAAS_NS, namespace=f"{name}-two")


@pytest.mark.check("p-108")
async def test_a_namespace_becomes_the_specs(system: Knative, paasing: Paasing) -> None:
    """It keeps its uid and is bound as the spec says."""
    spec = {**example(), "namespaces": {"cicd": {}}, "capabilities": {}}
    name = await _ready(paasing, **spec)
    await paasing.paas_ns(f"{name}-cicd", "more", paas=name, groups=["us"])
    before = await paasing.has_namespaces(name, "cicd", "more")
    await paasing.bound(f"{name}-more", {**_bound(name), "paas-view": [f"{name}-us"]})
    await paasing.paas(name, **{**spec, "namespaces": {"cicd": {}, "more": {}}})
    await paasing.bound(f"{name}-more", _bound(name))
    await paasing.says("more", "Ready", "NamespaceConflict", kind=PAAS_NS, namespace=f"{name}-cicd")
    assert (await paasing.get(NAMESPACE, f"{name}-more"))["metadata"]["uid"] == before[f"{name}-more"]["metadata"]["uid"]


def _bound(name: str) -> dict[str, list[str]]:
    """The RoleBindings of the example, in each namespace; names of Paas in tests come after that of the query."""
    roles = {f"paas-{each}": [f"{name}-us"] for each in ("admin", "edit", "alert-routing-edit", "monitoring-edit")}
    return {**roles, "paas-view": ["others", f"{name}-them", f"{name}-us"]}


@pytest.mark.check("p-109")
async def test_a_paas_ns_says_how_it_went(system: Knative, paasing: Paasing) -> None:
    """Ready with its namespace; each problem has a condition, and a Warning that names the fix; then it is healed."""
    name = await _ready(paasing)
    home = f"{name}-cicd"
    ready = find_condition(await paasing.get(PAAS, name), "Ready")
    await paasing.paas_ns(home, "well", paas=name, groups=["us"])
    await paasing.says("well", "Ready", "Reconciling", status="True", kind=PAAS_NS, namespace=home)
    assert (await paasing.get(PAAS_NS, "well", home))["status"]["namespace"] == f"{name}-well"

    await paasing.paas(name, **{**example(), "namespaces": {"cicd": {}, "test": {}, "prod": {}, "well": {}}})
    await paasing.says("well", "Ready", "NamespaceConflict", "choose another name", kind=PAAS_NS, namespace=home, status="False")
    assert "choose another name" in await paasing.warned("well", "NamespaceConflict", kind=PAAS_NS, namespace=home)
    await paasing.says(name, "Ready", "Reconciling", status="True")
    await paasing.paas_ns(home, "secret", paas=name, secrets={"ssh://x": "y"})
    await paasing.says("secret", "Warnings", "SecretsIgnored", "remove them", kind=PAAS_NS, namespace=home, status="True")
    await paasing.warned("secret", "SecretsIgnored", kind=PAAS_NS, namespace=home)
    await paasing.paas_ns(home, "secret", paas=name)
    await paasing.says("secret", "Warnings", "Reconciling", kind=PAAS_NS, namespace=home, status="False")
    assert await _healed(paasing, "secret", home)

    await paasing.paas_ns(home, "them", paas=name, groups=["them"])
    await paasing.says("them", "Ready", "Reconciling", status="True", kind=PAAS_NS, namespace=home)
    spec = example()
    del spec["groups"]["them"]
    await paasing.paas(name, **spec)
    told = await paasing.says("them", "Ready", "UnknownGroup", "them", kind=PAAS_NS, namespace=home, status="False")
    assert "PaasConfig" not in told["message"]
    await paasing.warned("them", "UnknownGroup", kind=PAAS_NS, namespace=home)
    now = await paasing.ready(name)
    assert ready is not None
    assert now["lastTransitionTime"] == ready["lastTransitionTime"]
    await paasing.paas(name, **example())
    await paasing.says("them", "Ready", "Reconciling", status="True", kind=PAAS_NS, namespace=home)
    assert await _healed(paasing, "them", home)


async def _healed(paasing: Paasing, name: str, namespace: str) -> bool:
    """Whether an Event says that what was told about a PaasNS is over."""
    fields = f"involvedObject.name={name},reason=Healed"
    found: list[Object] = await eventually(
        lambda: _events(paasing, namespace, fields), within=paasing.eventually_s, what=f"Healed on {name}"
    )
    return bool(found)


async def _events(paasing: Paasing, namespace: str, fields: str) -> list[Object]:
    return (await paasing.admin.list(CORE_EVENT, namespace, field_selector=fields)).items


@pytest.mark.check("p-116")
async def test_a_paas_without_groups(system: Knative, paasing: Paasing) -> None:
    """It has namespaces and quota, is Ready, and nobody is bound."""
    name = await _ready(paasing, namespaces={"one": {}, "two": {}}, quota={"limits.cpu": "4"})
    await paasing.has_namespaces(name, "one", "two")
    assert (await paasing.get(CLUSTER_RESOURCE_QUOTA, name))["spec"]["quota"]["hard"] == {"limits.cpu": "4"}
    assert [await paasing.bindings(f"{name}-{each}") for each in ("one", "two")] == [{}, {}]


@pytest.mark.check("p-164")
@pytest.mark.parametrize("away", FUNCTIONS[:3])
async def test_nothing_waits_for_a_function_that_is_away(system: Knative, paasing: Paasing, away: str) -> None:
    """The others' parts of a new Paas are complete; when it runs again, so is its own."""
    parts = {"namespace-registration": "Namespaces", "rbac-aggregation": "Rights", "scope-binding": "ServiceAccounts"}
    services = [each for name, each in system.functions.items() if name.startswith(away)]
    for each in services:
        await each.stop()
    name = paas_name()
    spec = example()
    await paasing.paas(name, **spec)
    for function, part in parts.items():
        if function != away and away != "namespace-registration":  # without namespaces there is no other part
            await paasing.says(name, f"tenantry.dev/{part}", "Reconciling", status="True")
    for each in services:
        await each.start()
    await system.sweep(away)  # as everything does that starts
    await paasing.ready(name)


# -- last: without a configuration -------------------------------------------------------------------------


@pytest.mark.check("p-37")
@pytest.mark.check("p-58")
@pytest.mark.check("p-182")
async def test_without_a_configuration(system: Knative, paasing: Paasing, calm: Calm) -> None:
    """Nothing changes and nothing is made; what a declaration takes away goes; with a configuration all is as declared."""
    stays, goes = await _ready(paasing), await _ready(paasing)
    await calm(system)
    before = await _versions(paasing, stays)
    await paasing.admin.delete(PAAS_CONFIG, CONFIG_NAME)
    await paasing.says(stays, "Ready", "NoPaasConfig", status="False")
    after = await _versions(paasing, stays)
    status = {(PAAS, "", stays)}
    assert {key: each for key, each in after.items() if key not in status} == {
        key: each for key, each in before.items() if key not in status
    }

    new = paas_name()
    await paasing.paas(new, **example())
    await paasing.says(new, "Ready", "NoPaasConfig", status="False")
    assert await paasing.namespaces(new) == {}
    assert await _groups(paasing, new) == {}

    spec = example()
    del spec["groups"]["them"]
    spec["groups"]["us"]["roles"] = ["admin", "edit", "view", "readonly"]
    await paasing.paas(stays, **spec)
    await paasing.away(GROUP, f"{stays}-them")
    await eventually(
        lambda: paasing.bindings(f"{stays}-cicd"),
        lambda found: found.get("paas-view") == ["others", f"{stays}-us"],
        within=paasing.eventually_s,
    )
    await paasing.admin.delete(PAAS, goes)
    await _is_gone(paasing, goes)

    await paasing.config()
    await paasing.ready(new)
    await paasing.ready(stays)
    assert set(await paasing.namespaces(new)) == {f"{new}-{each}" for each in ("cicd", "test", "prod", "argocd")}
    assert labels_of(await paasing.get(NAMESPACE, f"{new}-cicd"))[MANAGED_BY_PAAS] == new
