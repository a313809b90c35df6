"""Operators that OLM runs read the list too, and their webhooks see the members only (sb-84 to sb-89).

OLM itself is not needed: its kinds are served by CRDs of the tests, which are added while the system runs.
"""

from __future__ import annotations

from typing import Any

import pytest
import pytest_asyncio
from operators import LIST, Operators, template
from people import People
from times import SERVED_S

from tenantry.api import Api
from tenantry.local.followed import stand_in
from tenantry.local.install import until_served
from tenantry.model.kinds import (
    CLUSTER_SERVICE_VERSION,
    CUSTOM_RESOURCE_DEFINITION,
    DEPLOYMENT,
    MUTATING_WEBHOOKS,
    NAMESPACE_SCOPE,
    OPERATOR_GROUP,
    VALIDATING_WEBHOOKS,
    Kind,
    Object,
    annotations_of,
)
from tenantry.testing import eventually
from tenantry.testing.objects import obj

SCOPE_BINDING = "scope-binding"
CSV = "my-op.v1.0.0"
OURS = {"name": "WATCH_NAMESPACE", "valueFrom": {"configMapKeyRef": {"name": LIST, "key": "namespaces", "optional": True}}}
DOWNWARD = {
    "name": "WATCH_NAMESPACE",
    "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['olm.targetNamespaces']"}},
}
LITERAL = {"name": "WATCH_NAMESPACE", "value": "somewhere"}
OTHER = {"name": "OTHER", "value": "stays"}
ON = {"enable": True}
CRDS = (stand_in(CLUSTER_SERVICE_VERSION), stand_in(OPERATOR_GROUP))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def without_olm(admin: Api) -> None:
    """OLM's kinds are not served, whatever other tests left."""
    for crd in CRDS:
        await admin.delete(CUSTOM_RESOURCE_DEFINITION, crd["metadata"]["name"])
    await eventually(lambda: _no_crd(admin), within=SERVED_S)


async def _no_crd(admin: Api) -> bool:
    return all([await admin.get(CUSTOM_RESOURCE_DEFINITION, crd["metadata"]["name"]) is None for crd in CRDS])


@pytest_asyncio.fixture
async def olm(own: Operators, admin: Api) -> Operators:
    """The same in a cluster where OLM's kinds are served; their source watches nothing until both are."""
    for crd in CRDS:
        await admin.apply(CUSTOM_RESOURCE_DEFINITION, crd)
        await until_served(admin, crd)
    return own


def deployment_spec(*env: Any, labels: dict[str, str] | None = None, **spec: Any) -> Object:
    """One deployment of a ClusterServiceVersion."""
    made_from = template(labels or {}, **spec)
    made_from["spec"]["containers"] = [{"name": "manager", "image": "example.com/c", "env": list(env)}]
    return {"name": "my-op", "spec": {"replicas": 1, "template": made_from}}


def csv_of(
    own: Operators, *deployments: Any, name: str = CSV, annotations: dict[str, str] | None = None, package: str = "my-op"
) -> Object:
    """A ClusterServiceVersion of a package; unless told otherwise it asks for its injection."""
    given = {"nss.operator.ibm.com/managed-operators": "my-op"} if annotations is None else annotations
    install = {"strategy": "deployment", "spec": {"deployments": list(deployments)}}
    return obj(
        CLUSTER_SERVICE_VERSION,
        name,
        own.home,
        labels={f"operators.coreos.com/{package}.{own.home}": ""},
        annotations=given,
        spec={"install": install},
    )


def template_in(csv: Object) -> Object:
    """The pod template of the first deployment."""
    found: Object = csv["spec"]["install"]["spec"]["deployments"][0]["spec"]["template"]
    return found


def env_in(csv: Object) -> list[Any]:
    """The env of the first container."""
    found: list[Any] = template_in(csv)["spec"]["containers"][0]["env"]
    return found


async def injected(own: Operators, name: str = CSV, config_map: str = LIST, within: float = 0.0) -> Object:
    """Wait until a ClusterServiceVersion reads the list."""
    wanted = {**OURS, "valueFrom": {"configMapKeyRef": {**OURS["valueFrom"]["configMapKeyRef"], "name": config_map}}}
    return await own.people.until(
        CLUSTER_SERVICE_VERSION, name, own.home, lambda found: wanted in env_in(found), within=within, what="the list is injected"
    )


@pytest.mark.check("sb-89")
@pytest.mark.check("sb-84")
async def test_olm_comes_later(without_olm: None, own: Operators, admin: Api) -> None:
    """Without OLM everything else works; when its kinds appear, injection begins without a restart."""
    await own.begin(1)
    await own.scope(1, csvInjector=ON)
    await own.listed(1)
    await own.given(1, "namespacescope-managed-role-from-common-service")
    await own.ready()

    for crd in CRDS:
        await admin.create(CUSTOM_RESOURCE_DEFINITION, crd)
        await until_served(admin, crd)
    await admin.create(CLUSTER_SERVICE_VERSION, csv_of(own, deployment_spec(OTHER, DOWNWARD)))
    csv = await injected(own, within=SERVED_S)  # the source asks for the kinds from time to time
    assert env_in(csv) == [OTHER, OURS]
    assert template_in(csv)["metadata"]["labels"]["intent"] == "projected"
    scope = await own.people.until(
        NAMESPACE_SCOPE, "common-service", own.home, lambda found: found["status"].get("patchedCSVList")
    )
    assert (scope["status"]["managedCSVList"], scope["status"]["patchedCSVList"]) == (["my-op"], ["my-op"])


@pytest.mark.check("sb-85")
@pytest.mark.check("sb-86")
@pytest.mark.check("sb-88")
@pytest.mark.parametrize("before", [DOWNWARD, LITERAL, None], ids=["downward", "literal", "none"])
async def test_injection_forth_and_back(olm: Operators, admin: Api, before: Object | None) -> None:
    """Without the injector nothing is touched; with it whatever was there is replaced; without it again all is as it was."""
    await olm.begin(1)
    env = [each for each in (before, OTHER) if each is not None]
    made = await admin.create(CLUSTER_SERVICE_VERSION, csv_of(olm, deployment_spec(*env)))
    await olm.scope(1)
    await olm.ready()
    assert (await olm.people.get(CLUSTER_SERVICE_VERSION, CSV, olm.home))["metadata"]["resourceVersion"] == made["metadata"][
        "resourceVersion"
    ]
    await olm.scope(1, csvInjector={})
    csv = await injected(olm)
    assert env_in(csv) == ([OURS, OTHER] if before else [OTHER, OURS])
    await olm.scope(1, csvInjector={}, configmapName="another")
    await injected(olm, config_map="another")
    await olm.scope(1, csvInjector={"enable": False}, configmapName="another")
    after = await olm.people.until(
        CLUSTER_SERVICE_VERSION, CSV, olm.home, lambda found: "scope-binding/original" not in annotations_of(found)
    )
    assert after["spec"] == made["spec"]
    assert annotations_of(after) == annotations_of(made)


@pytest.mark.check("sb-84")
@pytest.mark.parametrize(
    "text",
    ["my-operator1,my-thirdparty-operator,nowhere", " my-operator1 ,\tmy-thirdparty-operator,, nowhere , "],
    ids=["commas", "padded"],
)
async def test_one_operator_names_many_packages(olm: Operators, admin: Api, text: str) -> None:
    """Each package of the list is injected, with blanks around it too; one without a ClusterServiceVersion is told as such."""
    await olm.begin(1)
    named = {"nss.operator.ibm.com/managed-operators": text}
    packages = ["my-operator1", "my-thirdparty-operator", "not-named"]
    for number, package in enumerate(packages):
        annotations = {} if number else named
        body = csv_of(olm, deployment_spec(LITERAL), name=package, annotations=annotations, package=package)
        await admin.create(CLUSTER_SERVICE_VERSION, body)
    await olm.scope(1, csvInjector=ON)
    for package in packages[:2]:
        assert env_in(await injected(olm, package)) == [OURS]
    scope = await olm.ready()
    assert scope["status"]["managedCSVList"] == [*packages[:2], "nowhere"]
    assert scope["status"]["patchedCSVList"] == packages[:2]
    assert env_in(await olm.people.get(CLUSTER_SERVICE_VERSION, "not-named", olm.home)) == [LITERAL]


@pytest.mark.check("sb-84")
@pytest.mark.check("sb-88")
@pytest.mark.parametrize("before", [DOWNWARD, LITERAL], ids=["downward", "literal"])
async def test_init_containers_that_have_the_variable(olm: Operators, admin: Api, before: Object) -> None:
    """Of the init containers those that have the variable read the list, the others are left alone; all is put back."""
    await olm.begin(1)
    listed = [
        {"name": "reads", "image": "example.com/i", "env": [OTHER, before]},
        {"name": "other", "image": "example.com/i", "env": [OTHER]},
        {"name": "bare", "image": "example.com/i"},
    ]
    made = await admin.create(CLUSTER_SERVICE_VERSION, csv_of(olm, deployment_spec(OTHER, initContainers=listed)))
    await olm.scope(1, csvInjector=ON)
    csv = await injected(olm)
    reads, *others = template_in(csv)["spec"]["initContainers"]
    assert reads["env"] == [OTHER, OURS]
    assert others == listed[1:]
    await olm.scope(1)
    after = await olm.people.until(
        CLUSTER_SERVICE_VERSION, CSV, olm.home, lambda found: "scope-binding/original" not in annotations_of(found)
    )
    assert after["spec"] == made["spec"]


@pytest.mark.check("sb-88")
@pytest.mark.parametrize("end", ["annotation", "scope"])
async def test_injection_ends_with_what_asked_for_it(olm: Operators, admin: Api, people: People, end: str) -> None:
    """The original is back when the annotation is removed or the NamespaceScope is deleted; what others changed since stays."""
    await olm.begin(1)
    made = await admin.create(CLUSTER_SERVICE_VERSION, csv_of(olm, deployment_spec(LITERAL, labels={"intent": "mine"})))
    await olm.scope(1, csvInjector=ON)
    await injected(olm)
    path = "/spec/install/spec/deployments/0/spec/replicas"
    await people.edit(CLUSTER_SERVICE_VERSION, CSV, olm.home, ("replace", path, 2))
    if end == "annotation":
        await people.edit(
            CLUSTER_SERVICE_VERSION,
            CSV,
            olm.home,
            ("remove", "/metadata/annotations/nss.operator.ibm.com~1managed-operators", None),
        )
    else:
        await people.delete(NAMESPACE_SCOPE, "common-service", olm.home)
    after = await olm.people.until(CLUSTER_SERVICE_VERSION, CSV, olm.home, lambda found: env_in(found) == [LITERAL])
    assert template_in(after) == template_in(made)
    assert after["spec"]["install"]["spec"]["deployments"][0]["spec"]["replicas"] == 2


@pytest.mark.check("sb-86")
async def test_malformed_operators_crash_nothing(olm: Operators, admin: Api) -> None:
    """A ClusterServiceVersion that nobody could run is told and left as it is, and the others are served."""
    await olm.begin(1)
    bad: list[Any] = [
        {"name": "no-spec"},
        "not an object",
        {"name": "no-list", "spec": {"template": {"spec": {"containers": [{"name": "c", "env": "text"}, 7]}}}},
        deployment_spec("text", None, {"value": "no name"}, LITERAL, LITERAL),
    ]
    await admin.create(CLUSTER_SERVICE_VERSION, csv_of(olm, *bad, name="bad"))
    await admin.create(CLUSTER_SERVICE_VERSION, csv_of(olm, deployment_spec(LITERAL)))
    odd = csv_of(olm, name="odd")
    await admin.create(CLUSTER_SERVICE_VERSION, {**odd, "spec": {"install": "soon"}})
    await olm.scope(1, csvInjector=ON)
    await injected(olm)
    told = await olm.ready("False", "InjectionFailed", text="bad")
    assert "env of container c is not a list" in told["status"]["conditions"][0]["message"]
    found = await olm.people.get(CLUSTER_SERVICE_VERSION, "bad", olm.home)
    deployments = found["spec"]["install"]["spec"]["deployments"]
    assert deployments[:2] == bad[:2]
    assert deployments[2]["spec"]["template"]["spec"] == bad[2]["spec"]["template"]["spec"]
    assert deployments[3]["spec"]["template"]["spec"]["containers"][0]["env"] == ["text", None, {"value": "no name"}, OURS]
    await olm.scope(1)
    await olm.ready()
    found = await olm.people.until(
        CLUSTER_SERVICE_VERSION, "bad", olm.home, lambda found: "scope-binding/original" not in annotations_of(found)
    )
    assert found["spec"]["install"]["spec"]["deployments"] == bad


async def test_what_olm_has_not_carried_on_is_told(olm: Operators, admin: Api, people: People) -> None:
    """While an operator's Deployment does not show what was injected, the condition says so; its new pod ends that."""
    await olm.begin(1)
    await people.edit(
        DEPLOYMENT,
        "my-op",
        olm.home,
        ("replace", "/spec/template/spec/containers", [{"name": "manager", "image": "example.com/c"}]),
    )
    await admin.create(CLUSTER_SERVICE_VERSION, csv_of(olm, deployment_spec(LITERAL)))
    await olm.scope(1, csvInjector=ON)
    told = await olm.ready(text=f"Deployment my-op does not read WATCH_NAMESPACE from ConfigMap {LIST} yet")
    assert f"ClusterServiceVersion {CSV}" in told["status"]["conditions"][0]["message"]

    injected_one = template_in(await injected(olm))["spec"]["containers"][0]  # from here on what OLM does, and its ReplicaSet
    await people.edit(DEPLOYMENT, "my-op", olm.home, ("replace", "/spec/template/spec/containers/0/env", injected_one["env"]))
    await people.edit(DEPLOYMENT, "my-op", olm.home, ("replace", "/spec/replicas", 1))
    await olm.people.until(
        NAMESPACE_SCOPE,
        "common-service",
        olm.home,
        lambda found: "Deployment" not in found["status"]["conditions"][0]["message"],
        what="the remark is gone",
    )


async def test_two_scopes_and_one_operator(olm: Operators, admin: Api) -> None:
    """Of two NamespaceScopes that claim an operator the older wins and the other is told, until their packages differ."""
    await olm.begin(1)
    await admin.create(CLUSTER_SERVICE_VERSION, csv_of(olm, deployment_spec(LITERAL)))
    await olm.scope(1, name="a-older", csvInjector=ON)
    await injected(olm)
    await olm.scope(1, name="b-younger", csvInjector=ON, configmapName="another")
    await olm.ready("False", "InjectionFailed", name="b-younger", text="a-older")
    await olm.ready(name="a-older")
    await olm.scope(1, name="a-older", csvInjector={"enable": True, "managedOperators": ["other"]})
    await injected(olm, config_map="another")
    await olm.ready(name="b-younger")


@pytest.mark.check("sb-87")
@pytest.mark.parametrize("kind", [VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS], ids=["validating", "mutating"])
async def test_webhooks_see_members_only(olm: Operators, admin: Api, people: People, kind: Kind) -> None:
    """Webhooks of an operator that asks for it are narrowed to the members, and put back as they were at the end."""
    await olm.begin(2)
    given = {"nss.operator.ibm.com/managed-webhooks": ""}
    await admin.create(CLUSTER_SERVICE_VERSION, csv_of(olm, deployment_spec(LITERAL), annotations=given))
    labels = {"olm.owner": CSV, "olm.owner.kind": "ClusterServiceVersion", "olm.owner.namespace": olm.home}
    rule = {"apiGroups": ["nowhere.example"], "apiVersions": ["v1"], "resources": ["things"], "operations": ["CREATE"]}
    before = {"matchLabels": {"team": "x"}}
    hooks = [
        {
            "name": f"{name}.example.com",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "clientConfig": {"url": "https://127.0.0.1:1/"},
            "rules": [rule],
            **selector,
        }
        for name, selector in (("one", {"namespaceSelector": before}), ("two", {}))
    ]
    body = obj(kind, f"{olm.home}-hooks", labels=labels, webhooks=hooks)
    made = await admin.create(kind, body)
    name = made["metadata"]["name"]

    await olm.scope("ghost", csvInjector=ON)
    await olm.ready("False", "MembersMissing")
    assert (await people.get(kind, name))["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    for members in ((1,), (1, 2)):
        await olm.scope(*members, csvInjector=ON)
        values = sorted([olm.home, *(olm.member(number) for number in members)])
        wanted = {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": values}]}
        await olm.people.until(
            kind, name, "", lambda found, w=wanted: all(hook["namespaceSelector"] == w for hook in found["webhooks"])
        )  # type: ignore[misc]
    scope = await olm.ready()
    assert (scope["status"]["managedWebhookList"], scope["status"]["patchedWebhookList"]) == ([name], [name])
    await olm.scope(1, 2)
    after = await olm.people.until(kind, name, "", lambda found: "scope-binding/original" not in annotations_of(found))
    assert [hook["namespaceSelector"] for hook in after["webhooks"]] == [before, {}]
    await admin.delete(kind, name)
