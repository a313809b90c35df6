"""Paas with all functions and policies at work: capabilities with their quotas, names that somebody has, two versions.

The world is argo, which has all that os has, because what is external is handed over.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import pytest
import pytest_asyncio
from accounting import names
from admitting import V1, V2, Admitting
from admitting import paas as body_of
from admitting import paas_ns as paas_ns_body
from handing_over import PLACE, SET, HandingOver
from paasing import CONFIG, CONFIG_NAME, Paasing, example, make_roles, make_world, paas_name, together
from people import swept
from righting import binding, has_users, refused, versions
from times import LEFT_TO_MAKE_WHOLE, NAMESPACE_GONE_S

from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.model.kinds import CLUSTER_ROLE_BINDING, NAMESPACE, ROLE_BINDING, Object, annotations_of, labels_of
from tenantry.model.paas.names import CLUSTER_RESOURCE_QUOTA, MANAGED_BY_PAAS, PAAS, PAAS_CONFIG, PAAS_NS, PAAS_UID
from tenantry.testing import eventually
from tenantry.testing.objects import obj

pytestmark = LEFT_TO_MAKE_WHOLE

FUNCTIONS = ["namespace-registration", "rbac-aggregation", "scope-binding", "release-provisioning"]
CPU = "limits.cpu"
US: Mapping[str, Any] = {"us": {"users": ["me"]}}
EMPTY: Mapping[str, Any] = {"clusterwide": False, "defaults": {}, "min": {}, "max": {}, "ratio": 0}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(flawlessly: Callable[..., Awaitable[Knative]], admin: Api) -> Knative:
    """All functions that have a part in Paas, where OpenShift's kinds and Argo CD are."""
    await make_world(admin, "argo")
    await make_roles(admin)
    if await admin.get(NAMESPACE, PLACE) is None:
        await admin.create(NAMESPACE, obj(NAMESPACE, PLACE))
    return await flawlessly({}, functions=FUNCTIONS)


@pytest_asyncio.fixture(autouse=True, loop_scope="session")
async def configured(system: Knative, paasing: Paasing) -> AsyncIterator[None]:
    """Each test begins with the PaasConfig of the checks."""
    await paasing.config()
    yield
    await paasing.config()


async def swept_all(system: Knative) -> None:
    """Have all that was told looked at, and every function sweep: what stands then stays."""
    await system.drain()
    answers = [await swept(system, each) for each in FUNCTIONS]
    assert {status for status, _ in answers} == {204}, answers
    await system.drain()


async def accounts(paasing: Paasing, namespace: str) -> list[str]:
    """The ClusterRoleBindings that name a service account of a namespace."""
    found = (await paasing.admin.list(CLUSTER_ROLE_BINDING)).items
    return [each["metadata"]["name"] for each in found if any(one.startswith(f"{namespace}/") for one in names(each))]


async def subjects(paasing: Paasing, namespace: str) -> set[str]:
    """Whom the RoleBindings of a namespace name, whoever made them."""
    found = (await paasing.admin.list(ROLE_BINDING, namespace)).items
    return {one["name"] for each in found for one in each.get("subjects") or ()}


async def standing(paasing: Paasing, *namespaces: str) -> dict[str, str]:
    """The versions of namespaces, and of the quotas that are called like them."""
    found = {}
    for name in namespaces:
        found[name] = (await paasing.get(NAMESPACE, name))["metadata"]["resourceVersion"]
        quota = await paasing.admin.get(CLUSTER_RESOURCE_QUOTA, name)
        found[f"quota {name}"] = quota["metadata"]["resourceVersion"] if quota is not None else ""
    return found


# -- capabilities ----------------------------------------------------------------------------------------------------


@pytest.mark.check("p-46")
async def test_a_capability_that_is_not_configured(paasing: Paasing) -> None:
    """Its namespace is bound and counts to the quota of the Paas, no account has rights, and it is told; or it is refused."""
    for policy in ({}, {"unknownCapabilityPolicy": "NamespaceOnly"}):
        await paasing.config(**policy)
        name = paas_name()
        nope = {"nope": {"enabled": True, "extra_permissions": True}}
        await paasing.paas(name, capabilities=nope, namespaces={"one": {}}, groups=US, quota={CPU: "4"})
        found = await paasing.has_namespaces(name, "nope", "one")
        assert {labels_of(each)["clusterquotagroup"] for each in found.values()} == {name}
        await together(*(paasing.bound(each, {"paas-view": [f"{name}-us"]}) for each in found))
        await paasing.ready(name)
        await paasing.says(name, "Warnings", "UnknownCapability", "capability nope", status="True")
        assert await accounts(paasing, f"{name}-nope") == []
        assert await paasing.admin.get(CLUSTER_RESOURCE_QUOTA, f"{name}-nope") is None
    await paasing.config(unknownCapabilityPolicy="Reject")
    await refused(paasing, "spec.capabilities[nope]", capabilities={"nope": {"enabled": True}})


@pytest.mark.check("p-153")
async def test_a_capability_without_quotas_or_without_namespace(paasing: Paasing, system: Knative) -> None:
    """Empty maps: a namespace with bindings and no quota, which the PaasConfig tells; external: only the element."""
    handing = HandingOver(paasing.admin)
    await handing.application_set()
    outside = {"external": True, "applicationset": SET, "custom_fields": {"git_url": {}, "team": {"default": "a"}}}
    known = {
        "example-capability": {"default_permissions": {}, "extra_permissions": {}, "quotas": EMPTY},
        "outside": {**outside, "default_permissions": {"sa": ["monitoring-edit"]}},
    }
    await paasing.config(capabilities=known, clusterwide_argocd_namespace=PLACE)
    name = paas_name()
    asked = {"example-capability": {"enabled": True}, "outside": {"enabled": True, "custom_fields": {"git_url": "u"}}}
    await paasing.paas(name, capabilities=asked, groups=US, quota={CPU: "1"})
    await paasing.has_namespaces(name, "example-capability")
    await paasing.bound(f"{name}-example-capability", {"paas-view": [f"{name}-us"]})
    await handing.element_of(name, {"git_url": "u", "team": "a"})
    await paasing.ready(name)
    told = await paasing.says(CONFIG_NAME, "Warnings", "NoQuota", "[example-capability]", kind=PAAS_CONFIG, status="True")
    assert "outside" not in told["message"]
    await swept_all(system)
    await paasing.has_namespaces(name, "example-capability")
    label = f"{MANAGED_BY_PAAS}={name}"
    quotas = (await paasing.admin.list(CLUSTER_RESOURCE_QUOTA, label_selector=label)).items
    assert [each["metadata"]["name"] for each in quotas] == [name]
    value = labels_of(await paasing.get(NAMESPACE, f"{name}-example-capability"))["clusterquotagroup"]
    assert value == f"{name}-example-capability"
    assert await paasing.admin.get(NAMESPACE, f"{name}-outside") is None
    assert await accounts(paasing, f"{name}-outside") == []
    await paasing.leave(name)


@pytest.mark.check("p-186")
@pytest.mark.parametrize("policy", ["NamespaceOnly", "Reject"])
async def test_a_capability_that_leaves_the_configuration(paasing: Paasing, system: Knative, policy: str) -> None:
    """Subjects and quotas go; its namespaces stay as they are bound, count to the quota of the Paas, and are told of."""
    wide = {"quotas": {"clusterwide": True, "ratio": 0.1, "defaults": {CPU: "1"}}}
    await paasing.config(capabilities={**CONFIG["capabilities"], "tekton": wide})
    name = paas_name()
    argocd = {"enabled": True, "extra_permissions": True}
    spec = {**example(), "capabilities": {"argocd": argocd, "tekton": {"enabled": True}}}
    await paasing.paas(name, **spec)
    await paasing.ready(name)
    before = await paasing.has_namespaces(name, "argocd", "cicd", "prod", "test", "tekton")
    assert labels_of(before[f"{name}-argocd"])["clusterquotagroup"] == f"{name}-argocd"
    assert labels_of(before[f"{name}-tekton"])["clusterquotagroup"] == "paas-tekton"
    assert await accounts(paasing, f"{name}-argocd") == ["paas-cluster-reader", "paas-monitoring-edit"]
    bindings = await versions(paasing, *before)

    await paasing.config(capabilities={}, unknownCapabilityPolicy=policy)
    told = "HasErrors" if policy == "Reject" else "Warnings"
    await together(
        eventually(lambda: accounts(paasing, f"{name}-argocd"), lambda found: not found, within=paasing.eventually_s),
        paasing.away(CLUSTER_RESOURCE_QUOTA, f"{name}-argocd"),
        paasing.away(CLUSTER_RESOURCE_QUOTA, "paas-tekton"),
        paasing.says(name, told, "UnknownCapability", "capability argocd", status="True"),
        *(paasing.until(NAMESPACE, each, "", lambda live: labels_of(live)["clusterquotagroup"] == name) for each in before),
    )
    condition = await paasing.says(name, told, "UnknownCapability", "capability tekton")
    assert "capability argocd" in condition["message"]
    if policy == "NamespaceOnly":
        await paasing.ready(name)
    await swept_all(system)
    after = await paasing.has_namespaces(name, "argocd", "cicd", "prod", "test", "tekton")
    assert {each: live["metadata"]["uid"] for each, live in after.items()} == {
        each: live["metadata"]["uid"] for each, live in before.items()
    }
    assert {labels_of(each)["clusterquotagroup"] for each in after.values()} == {name}
    assert await versions(paasing, *before) == bindings
    quota = await paasing.get(CLUSTER_RESOURCE_QUOTA, name)
    assert quota["spec"]["selector"]["labels"]["matchLabels"] == {"clusterquotagroup": name}
    assert await accounts(paasing, f"{name}-argocd") == []
    await paasing.leave(name)


@pytest.mark.check("p-154")
async def test_a_paas_without_a_quota(paasing: Paasing, admitting: Admitting, system: Knative) -> None:
    """It is admitted with a warning, has none, and says so; as it is warned of more requests than limits."""
    name = paas_name()
    answer = await admitting.create(body_of(name, namespaces={"one": {}}, quota={}), dry=False)
    assert answer.status == 201, answer
    assert "spec.quota: empty" in answer.told
    await paasing.has_namespaces(name, "one")
    await paasing.ready(name)
    await paasing.says(name, "Warnings", "NoQuota", f"{name}-one", status="True")
    await swept_all(system)
    assert await paasing.admin.get(CLUSTER_RESOURCE_QUOTA, name) is None

    other = paas_name()
    body = body_of(other, namespaces={"one": {}}, quota={"requests.cpu": "1500m", CPU: "1"})
    answer = await admitting.create(body, dry=False)
    assert answer.status == 201, answer
    assert "spec.quota[requests.cpu]: more requests than limits" in answer.told
    await paasing.ready(other)
    await paasing.says(other, "Warnings", "RequestsAboveLimits", "requests.cpu", status="True")
    quota = await paasing.get(CLUSTER_RESOURCE_QUOTA, other)
    assert quota["spec"]["quota"]["hard"] == {"requests.cpu": "1500m", CPU: "1"}


# -- names that somebody has -----------------------------------------------------------------------------------------


@pytest.mark.check("p-50")
@pytest.mark.parametrize("first", ["shorter", "longer"])
async def test_who_has_a_namespace_keeps_it(paasing: Paasing, system: Knative, first: str) -> None:
    """Whoever came first; the other has no subject and no label in it, and everything else that it declares."""
    a = paas_name()
    longer = f"{a}-b"
    declared: dict[str, dict[str, Any]] = {
        a: {"namespaces": {"b-c": {}, "b-argocd": {}, "own": {}}, "groups": US, "quota": {CPU: "4"}},
        longer: {
            "namespaces": {"c": {}, "own": {}},
            "groups": {"them": {"users": ["you"]}},
            "quota": {CPU: "4"},
            "capabilities": {"argocd": {"enabled": True}},
        },
    }
    group = {a: f"{a}-us", longer: f"{longer}-them"}
    keeper, other = (a, longer) if first == "shorter" else (longer, a)
    both = (f"{a}-b-c", f"{a}-b-argocd")
    kept = await paasing.paas(keeper, **declared[keeper])
    await together(*(paasing.bound(each, {"paas-view": [group[keeper]]}) for each in both))
    await paasing.ready(keeper)
    before = await standing(paasing, *both), await versions(paasing, *both)
    bound = await accounts(paasing, both[1])
    assert bound == ([] if first == "shorter" else ["paas-monitoring-edit"])

    await paasing.paas(other, **declared[other])
    await paasing.bound(f"{other}-own", {"paas-view": [group[other]]})
    await has_users(paasing, group[other], ["me"] if other == a else ["you"])
    told = await paasing.says(other, "HasErrors", "NamespaceConflict", f"namespace {both[0]} is Paas {keeper}'s", status="True")
    assert f"namespace {both[1]} is Paas {keeper}'s" in told["message"]
    await swept_all(system)
    assert (await standing(paasing, *both), await versions(paasing, *both)) == before
    for each in both:
        live = await paasing.get(NAMESPACE, each)
        assert annotations_of(live)[PAAS_UID] == kept["metadata"]["uid"]
        assert labels_of(live)[MANAGED_BY_PAAS] == keeper
        assert other not in labels_of(live).values()
        assert await subjects(paasing, each) == {group[keeper]}
    assert await accounts(paasing, both[1]) == bound
    assert set(await paasing.namespaces(other)) == {f"{other}-own"}
    await paasing.ready(keeper)


@pytest.mark.check("p-95")
@pytest.mark.parametrize("first", ["capability", "name", "label", "no-quota"])
async def test_two_quotas_of_one_name_and_label(paasing: Paasing, system: Knative, first: str) -> None:
    """Who was first keeps them, also who has only namespaces with the label, or wants only that; the other has no namespace
    that no quota counts, or another's."""
    await paasing.config(capabilities={"paas": {"quotas": {} if first == "no-quota" else {"defaults": {CPU: "1"}}}})
    my = paas_name()
    shared = f"{my}-paas"
    capability = {"capabilities": {"paas": {"enabled": True}}}
    spec: dict[str, dict[str, Any]] = {
        my: {"namespaces": {"cicd": {}}, "groups": US, "quota": {CPU: "9"}},
        shared: {"namespaces": {"one": {}}, "groups": US, "quota": {} if first == "label" else {CPU: "5"}},
    }
    if first == "label":  # the other one is the older, and begins to want it later
        await paasing.paas(my, **spec[my])
        await paasing.ready(my)
    keeper, other = (my, shared) if first == "capability" else (shared, my)
    spec[my] |= capability
    await paasing.paas(keeper, **spec[keeper])
    await paasing.ready(keeper)
    places = {my: (shared,), shared: (f"{shared}-one",)}
    before = await standing(paasing, *places[keeper]), await paasing.admin.get(CLUSTER_RESOURCE_QUOTA, shared)
    assert (before[1] is None) == (first == "label")
    assert labels_of(await paasing.get(NAMESPACE, places[keeper][0]))["clusterquotagroup"] == shared

    await paasing.paas(other, **spec[other])
    told = await paasing.says(other, "HasErrors", "QuotaConflict", f"{shared} is Paas {keeper}'s", status="True")
    assert "choose another name" in told["message"]
    await swept_all(system)
    rest = await paasing.has_namespaces(other, *(["cicd"] if other == my else []))
    assert {labels_of(each)["clusterquotagroup"] for each in rest.values()} <= {my}
    assert await paasing.admin.get(NAMESPACE, places[other][0]) is None
    assert (await standing(paasing, *places[keeper]), await paasing.admin.get(CLUSTER_RESOURCE_QUOTA, shared)) == before
    await paasing.ready(keeper)

    await paasing.leave(keeper)
    await together(
        *(paasing.away(NAMESPACE, each, within=NAMESPACE_GONE_S) for each in places[keeper])
    )  # it has the label till then
    await paasing.ready(other)
    assert labels_of(await paasing.get(NAMESPACE, places[other][0]))["clusterquotagroup"] == shared


@pytest.mark.check("p-51")
async def test_a_namespace_that_was_there_before_is_unchanged(paasing: Paasing, system: Knative) -> None:
    """Its labels and its bindings too, also while the Paas changes and goes; the Paas tells it and has its other namespaces."""
    name = paas_name()
    place, mine = f"{name}-test", {"own": "1", "clusterquotagroup": "theirs"}
    await paasing.admin.create(NAMESPACE, obj(NAMESPACE, place, labels=mine))
    await paasing.admin.create(ROLE_BINDING, binding("root", place, "admin", "root"))
    before = await paasing.get(NAMESPACE, place), (await paasing.admin.list(ROLE_BINDING, place)).items

    async def unchanged() -> bool:
        return (await paasing.get(NAMESPACE, place), (await paasing.admin.list(ROLE_BINDING, place)).items) == before

    spec = {"namespaces": {"test": {}, "other": {}}, "groups": US, "quota": {CPU: "4"}}
    await paasing.paas(name, **spec)
    await paasing.says(name, "HasErrors", "NamespaceConflict", f"namespace {place}", status="True")
    await paasing.bound(f"{name}-other", {"paas-view": [f"{name}-us"]})
    await swept_all(system)
    assert await unchanged()
    await paasing.paas(name, **spec, requestor="somebody")
    await paasing.until(NAMESPACE, f"{name}-other", "", lambda live: labels_of(live).get("requestor") == "somebody")
    await swept_all(system)
    assert await unchanged()
    await paasing.leave(name)
    await swept_all(system)
    assert await unchanged()


@pytest.mark.check("p-105")
async def test_a_paas_ns_takes_nothing_from_the_spec(paasing: Paasing, system: Knative) -> None:
    """Named like an entry, a capability or its own namespace it is told so; labels, bindings and quotas stay as they are."""
    name = paas_name()
    await paasing.paas(name, **example())
    await paasing.ready(name)
    home, places = f"{name}-cicd", [f"{name}-{each}" for each in ("argocd", "cicd", "prod", "test")]
    await swept_all(system)
    before = await standing(paasing, name + "-argocd", *places), await versions(paasing, *places)
    quota = await paasing.get(CLUSTER_RESOURCE_QUOTA, name)
    for each in ("test", "argocd", "cicd"):
        await paasing.paas_ns(home, each, paas=name, groups=["them"])
    for each in ("test", "argocd", "cicd"):
        told = await paasing.says(each, "Ready", "NamespaceConflict", kind=PAAS_NS, namespace=home, status="False")
        assert f"namespace {name}-{each} is in the spec of Paas {name}" in told["message"]
    await swept_all(system)
    assert (await standing(paasing, name + "-argocd", *places), await versions(paasing, *places)) == before
    assert await paasing.get(CLUSTER_RESOURCE_QUOTA, name) == quota
    await paasing.ready(name)


# -- two versions ----------------------------------------------------------------------------------------------------


@pytest.mark.check("p-85")
async def test_a_capability_does_not_turn_on_by_itself(paasing: Paasing, admitting: Admitting, system: Knative) -> None:
    """The manifest that left it off in v1alpha1 leaves it off in v1alpha2, and nothing is made, until it says enabled."""
    await paasing.config(capabilities={"tekton": {"quotas": {"defaults": {CPU: "1"}}}})
    body = body_of(name := paas_name(), V1, capabilities={"tekton": {}}, groups=US)
    for version in (V1, V2):
        answer = await admitting.apply({**body, "apiVersion": version})
        assert answer.status in (200, 201), answer
        await paasing.ready(name)
        await swept_all(system)
        assert (await paasing.get(PAAS, name))["spec"]["capabilities"] == {"tekton": {"enabled": False}}
        assert await paasing.admin.get(NAMESPACE, f"{name}-tekton") is None
        assert await paasing.admin.get(CLUSTER_RESOURCE_QUOTA, f"{name}-tekton") is None
    body["spec"]["capabilities"]["tekton"] = {"enabled": True}
    assert (await admitting.apply({**body, "apiVersion": V2})).status == 200
    await paasing.has_namespaces(name, "tekton")
    await paasing.until(CLUSTER_RESOURCE_QUOTA, f"{name}-tekton", "", lambda live: live["spec"]["quota"]["hard"] == {CPU: "1"})


@pytest.mark.check("p-88")
async def test_what_only_v1alpha1_asks_for(paasing: Paasing, admitting: Admitting) -> None:
    """Without a requestor there is no such label, and v1alpha1 takes a label; a PaasNS needs spec.paas only there, when new."""
    name = paas_name()
    paas = await admitting.made(body_of(name, V2, namespaces={"one": {}}, groups=US))
    assert "requestor" not in paas["spec"]
    found = await paasing.has_namespaces(name, "one")
    assert "requestor" not in labels_of(found[f"{name}-one"])
    old: Object = {**paas, "apiVersion": V1}
    answer = await admitting.merge(old, {"metadata": {"labels": {"team": "a"}}}, dry=False)
    assert answer.status == 200, answer
    labelled = await paasing.until(NAMESPACE, f"{name}-one", "", lambda live: labels_of(live).get("team") == "a")
    assert "requestor" not in labels_of(labelled)
    body = body_of(paas_name(), V1)
    del body["spec"]["requestor"]
    await admitting.refused(body, "spec.requestor")

    await admitting.refused(paas_ns_body(f"{name}-one", "more", V1), f"spec.paas: write {name}")
    asked = await admitting.made(paas_ns_body(f"{name}-one", "more", V2))
    await paasing.has_namespaces(name, "one", "more")
    answer = await admitting.merge({**asked, "apiVersion": V1}, {"spec": {"groups": ["us"]}}, dry=False)
    assert answer.status == 200, answer
    await paasing.bound(f"{name}-more", {"paas-view": [f"{name}-us"]})
