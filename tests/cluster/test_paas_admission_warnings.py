"""What of a Paas is admitted with a warning: everything that will not do what it says."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from admitting import V1, VERSIONS, Admitting, of_example, paas
from paasing import CONFIG, paas_name

from tenantry.model.kinds import Object

CPU = "limits.cpu"
QUOTA = {CPU: 1}


@pytest_asyncio.fixture(scope="module", autouse=True, loop_scope="session")
async def warned(admitting: Admitting) -> AsyncIterator[None]:
    """The PaasConfig of the checks, where a test does not declare another one."""
    await admitting.configure(**CONFIG)
    yield
    await admitting.forget()


async def test_what_is_all_right_has_no_warning(admitting: Admitting) -> None:
    """Nothing is said of a Paas that does what it says."""
    groups = {"us": {"users": ["me"], "roles": ["admin"]}, "others": {"query": "CN=others"}, "them": {}}
    spec: dict[str, Any] = {"quota": QUOTA, "groups": groups, "namespaces": ["a"], "capabilities": {"argocd": {"quota": QUOTA}}}
    assert await admitting.admitted(paas(labels={"team": "a", "app.kubernetes.io/name": "b"}, **spec)) == ""


@pytest.mark.parametrize("version", VERSIONS)
async def test_the_example_has_two_warnings(admitting: Admitting, version: str) -> None:
    """Group others has users beside its query, under the configuration of the checks; under the source's the role view counts as
    default, and argocd is not configured."""
    said = await admitting.admitted(of_example(paas_name(), version))
    assert "spec.groups[others].users: ignored, since the group has a query" in said
    assert said.count("\n") == 0
    mappings = {"default": ["view"], "edit": ["edit"], "readonly": ["view"], "admin": ["admin"]}
    await admitting.configure(rolemappings=mappings, capabilities={"example-capability": {}})
    said = await admitting.admitted(of_example(paas_name(), version))
    await admitting.configure(**CONFIG)
    for key in ("us", "them"):
        assert f"spec.groups[{key}].roles: view" in said
    assert "counts as default" in said
    assert "spec.capabilities[argocd]: no such capability" in said


async def test_users_beside_a_query_are_told(admitting: Admitting) -> None:
    """They are ignored (p-47)."""
    groups = {"others": {"query": "CN=others", "users": ["me"]}, "us": {"users": ["me"]}, "none": {"query": "", "users": ["me"]}}
    said = await admitting.admitted(paas(quota=QUOTA, groups=groups))
    assert "spec.groups[others].users: ignored" in said
    assert "[us]" not in said
    assert "[none]" not in said


async def test_a_role_or_a_capability_that_is_not_known_is_told(admitting: Admitting) -> None:
    """With what becomes of it, by the policy that is configured (p-45, p-46)."""
    body = paas(quota=QUOTA, groups={"us": {"roles": ["view", "viewer"]}}, capabilities={"nope": {}, "off": {"enabled": False}})
    said = await admitting.admitted(body)
    assert "spec.groups[us].roles: viewer: no such role" in said
    assert "counts as default" in said
    assert "spec.capabilities[nope]: no such capability" in said
    await admitting.configure(**CONFIG, unknownRolePolicy="Ignore")
    said = await admitting.admitted(body)
    await admitting.configure(**CONFIG)
    assert "gives nothing" in said


async def test_users_are_discouraged_where_that_is_configured(admitting: Admitting) -> None:
    """Each group with users and no query is named (p-118)."""
    groups = {"us": {"users": ["me"]}, "them": {"users": ["you"]}, "others": {"query": "CN=others"}, "nobody": {}}
    await admitting.configure(**CONFIG, feature_flags={"group_user_management": "warn"})
    said = await admitting.admitted(paas(quota=QUOTA, groups=groups))
    await admitting.configure(**CONFIG)
    for key in ("us", "them"):
        assert f"spec.groups[{key}].users" in said
    assert "users are going to be managed elsewhere" in said
    assert "others" not in said
    assert await admitting.admitted(paas(quota=QUOTA, groups=groups)) == ""


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"secrets": {"url": "x"}}, "spec.secrets"),
        ({"sshSecrets": {"url": "x"}}, "spec.sshSecrets"),
        ({"capabilities": {"argocd": {"sshSecrets": {"url": "x"}}}}, "spec.capabilities[argocd].sshSecrets"),
        ({"capabilities": {"argocd": {"secrets": {"url": "x"}}}}, "spec.capabilities[argocd].secrets"),
        ({"namespaces": {"a": {"secrets": {"url": "x"}}, "b": None}}, "spec.namespaces[a].secrets"),
    ],
)
async def test_secrets_are_told(admitting: Admitting, spec: Object, path: str) -> None:
    """Nothing is made of them (p-161)."""
    assert f"{path}: ignored, no Secret is made of it" in await admitting.admitted(paas(**{"quota": QUOTA, **spec}))


async def test_extra_permissions_that_are_not_configured_are_told(admitting: Admitting) -> None:
    """Of a capability without them, and of one that is not known (p-156)."""
    await admitting.configure(capabilities={"argocd": CONFIG["capabilities"]["argocd"], "tekton": {}})
    capabilities = {name: {"extra_permissions": True} for name in ("argocd", "tekton")}
    said = await admitting.admitted(paas(quota=QUOTA, capabilities=capabilities))
    await admitting.configure(**CONFIG)
    assert "spec.capabilities[tekton].extra_permissions: gives nothing" in said
    assert "argocd" not in said


@pytest.mark.parametrize(
    "key",
    [
        "pod-security.kubernetes.io/enforce", "kubernetes.io/x", "a.k8s.io/x", "field.cattle.io/projectId", "openshift.io/x",
        "toolkit.fluxcd.io/x", "argocd.argoproj.io/x", "sidecar.istio.io/inject", "tenantry.dev/x", "cpet.belastingdienst.nl/x",
        "clusterquotagroup", "requestor", "argocd.argoproj.io/managed-by", "mine", "example.com/x", "a.example.com/x",
    ],
)  # fmt: skip
async def test_a_protected_label_is_told(admitting: Admitting, key: str) -> None:
    """It is not copied to the namespaces (p-122); whether it is new with the Paas or comes later."""
    await admitting.configure(**CONFIG, protectedLabels=["mine", "*.example.com/*"])
    told = f"metadata.labels[{key}]: not copied"
    assert told in await admitting.admitted(paas(quota=QUOTA, labels={key: "a", "team": "a"}))
    async with admitting.kept(paas(quota=QUOTA)) as body:
        assert told in (await admitting.merge(body, {"metadata": {"labels": {key: "a"}}})).told
    await admitting.configure(**CONFIG)


@pytest.mark.parametrize(
    "key", ["team", "mykubernetes.io/x", "istio.io", "example.org/x", "app.kubernetes.io/x", "helm.sh/chart"]
)
async def test_other_labels_are_not_told(admitting: Admitting, key: str) -> None:
    """What only resembles one, and what tools write on everything."""
    assert await admitting.admitted(paas(quota=QUOTA, labels={key: "a"})) == ""


async def test_a_quota_that_bounds_nothing_or_cannot_be_used_is_told(admitting: Admitting) -> None:
    """None at all with namespaces, and more requests than limits (p-154)."""
    assert "spec.quota: empty" in await admitting.admitted(paas(namespaces=["a"]))
    assert "spec.quota" not in await admitting.admitted(paas(namespaces=[]))
    more = {"requests.cpu": "1500m", CPU: 1, "requests.memory": "1Gi", "limits.memory": "1Gi", "requests.storage": 1}
    said = await admitting.admitted(paas(quota=more, capabilities={"argocd": {"quota": more}}))
    assert "spec.quota[requests.cpu], spec.capabilities[argocd].quota: more requests than limits" in said


async def test_warnings_come_with_changes_alone(admitting: Admitting) -> None:
    """Who changes neither spec nor labels hears nothing; nor does anybody while there is no PaasConfig."""
    async with admitting.kept(paas(version=V1, namespaces=["a"])) as body:
        assert "spec.quota: empty" in (await admitting.merge(body, {"spec": {"namespaces": ["a", "b"]}})).told
        for change in ({"metadata": {"annotations": {"a": "b"}}}, {"metadata": {"finalizers": ["example.com/x"]}}):
            answer = await admitting.merge(body, change)
            assert (answer.status, answer.told) == (200, "")
    await admitting.forget()
    assert await admitting.admitted(paas(namespaces=["a"])) == ""
    await admitting.configure(**CONFIG)
