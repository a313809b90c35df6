"""What the settings of a TenancyProfile change at admission: accounts, targets, labels, switches (2.3, 1.5)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from flux_cases import HOME
from flux_policing import (
    APP1,
    FLUX,
    TEAM1,
    TEAM2,
    TWO,
    Policing,
    admitted,
    denied,
    flux_object,
    helm_release,
    kustomization,
)
from people import token
from times import LEFT_TO_MAKE_WHOLE, POLICY_S

from tenantry.cli.profile.applied import apply_profile
from tenantry.model.flux.names import ACCESS_INDEX, ACCOUNT_LABEL, DEFAULT, TENANCY_PROFILE, TENANT_LABEL
from tenantry.model.flux.policies import GENERATED
from tenantry.model.flux.policies.parts import LABELS
from tenantry.model.flux.profile import Profile
from tenantry.model.kinds import (
    ADMISSION_POLICY,
    ADMISSION_POLICY_BINDING,
    CUSTOM_RESOURCE_DEFINITION,
    EVENT,
    NAMESPACE,
    Object,
)
from tenantry.testing import eventually
from tenantry.testing.objects import obj

pytestmark = [LEFT_TO_MAKE_WHOLE, pytest.mark.no_policies]
MINE = ",".join(f"{key}={value}" for key, value in LABELS.items())
DENIED = kustomization("dev-team2", APP1, "app1")
"""f-4."""


@pytest_asyncio.fixture(autouse=True, loop_scope="session")
async def emptied(policing: Policing) -> AsyncIterator[None]:
    """The index has no grants after each test, if it is there."""
    yield
    if await policing.admin.get(ACCESS_INDEX, DEFAULT) is None:
        await policing.admin.create(ACCESS_INDEX, obj(ACCESS_INDEX, DEFAULT, spec={}))


async def generated(policing: Policing) -> list[Object]:
    """What of ours there is of policies, mutations and bindings."""
    return [each for kind in GENERATED for each in (await policing.admin.list(kind, label_selector=MINE)).items]


@pytest.mark.check("f-71")
async def test_by_default_nothing_is_enforced(policing: Policing) -> None:
    """After the installation, and with a profile of a single tenant: no policy of ours is bound, nothing is marked or told."""
    assert await policing.admin.get(TENANCY_PROFILE, DEFAULT) is None
    for _ in range(2):
        assert await generated(policing) == []
        body = kustomization("dev-team2", APP1)
        stored = await policing.made(body, user=TEAM2)
        assert "annotations" not in stored["metadata"]
        assert "finalizers" not in stored["metadata"]
        assert (await policing.admin.list(EVENT, "dev-team2")).items == []
        await policing.enforce(profile="single-tenant")


@pytest.mark.check("f-24")
async def test_a_single_tenant_is_not_judged(policing: Policing) -> None:
    """What was denied under multi-tenant is admitted after the switch."""
    await policing.enforce()
    await policing.denied(DENIED, user=TEAM2)
    await policing.enforce(profile="single-tenant")
    await policing.admitted(DENIED, user=TEAM2)
    assert await generated(policing) == []


@pytest.mark.check("f-70")
@pytest.mark.check("f-38")
@pytest.mark.check("f-39")
async def test_accounts_are_filled_or_required(policing: Policing) -> None:
    """By default an absent or empty name becomes flux, also while the ACL is not enforced; Require refuses both."""
    alert = flux_object(
        "Alert",
        HOME,
        "a",
        spec={"eventSources": [{"kind": "Kustomization", "name": "*", "namespace": "dev-team2"}], "providerRef": {"name": "p"}},
    )
    for acl in (True, False):
        await policing.enforce(enforceSourceACL=acl)
        if acl:
            await policing.denied(DENIED, user=TEAM2)
        else:
            await policing.admitted(DENIED, user=TEAM2)
        await policing.denied(alert, user=TEAM1)
        for name in (None, ""):
            for body in (kustomization(HOME, serviceAccountName=name), helm_release(HOME, serviceAccountName=name)):
                stored = await policing.made(body, user=TEAM1)
                assert stored["spec"]["serviceAccountName"] == "flux"
        stored = await policing.admitted(kustomization(HOME, serviceAccountName="other"), user=TEAM1)
        assert stored["spec"]["serviceAccountName"] == "other"

    await policing.enforce(serviceAccountMode="Require")
    for name in (None, ""):
        for body in (kustomization(HOME, serviceAccountName=name), helm_release(HOME, serviceAccountName=name)):
            await policing.denied(body, "spec.serviceAccountName", user=TEAM1)
    for body in (kustomization(HOME), helm_release(HOME)):
        await policing.admitted(body, user=TEAM1)


@pytest.mark.check("f-40")
async def test_only_the_account_of_the_tenant(policing: Policing) -> None:
    """That of the label of the Namespace, or else the profile's default."""
    await policing.enforce(pinToTenant=True)
    await policing.labelled(HOME, **{ACCOUNT_LABEL: "flux"})
    await policing.denied(kustomization(HOME, serviceAccountName="other"), "only flux", user=TEAM1)
    await policing.admitted(kustomization(HOME, serviceAccountName="flux"), user=TEAM1)
    await policing.labelled(HOME, **{ACCOUNT_LABEL: "deployer"})
    await policing.until(lambda: policing.create(kustomization(HOME, serviceAccountName="deployer"), user=TEAM1), 201)
    await policing.denied(kustomization(HOME, serviceAccountName="flux"), "only deployer", user=TEAM1)
    stored = await policing.admitted(kustomization(HOME, serviceAccountName=None), user=TEAM1)
    assert stored["spec"]["serviceAccountName"] == "deployer"
    await policing.labelled(HOME, **{ACCOUNT_LABEL: None})
    await policing.until(lambda: policing.create(kustomization(HOME), user=TEAM1), 201)
    await policing.denied(helm_release(HOME, serviceAccountName="deployer"), "only flux", user=TEAM1)
    await policing.enforce(pinToTenant=True, serviceAccountMode="Off")
    await policing.denied(kustomization(HOME, serviceAccountName=None), "only flux", user=TEAM1)
    await policing.admitted(kustomization(HOME), user=TEAM1)


@pytest.mark.check("f-137")
async def test_a_filled_account_is_nobodys(policing: Policing) -> None:
    """The third apply of a manifest without it writes nothing; with a kubeconfig and in exempt namespaces it is not filled."""
    await policing.enforce()
    body = kustomization(HOME, serviceAccountName=None)
    stored = [admitted(await policing.apply(body, user=TEAM1)) for _ in range(4)]
    assert [each["spec"]["serviceAccountName"] for each in stored] == ["flux"] * 4
    versions = [each["metadata"]["resourceVersion"] for each in stored]
    assert versions[2] == versions[3] == versions[1]
    dry = admitted(await policing.apply(body, user=TEAM1, dry=True))
    live = admitted(await policing.ask("GET", policing.path(body)))
    assert dry["spec"] == live["spec"]
    assert dry["metadata"]["resourceVersion"] == live["metadata"]["resourceVersion"]
    kube = {"secretRef": {"name": "k"}}
    for body in (
        kustomization(HOME, serviceAccountName=None, kubeConfig=kube),
        kustomization(FLUX, serviceAccountName=None),
        helm_release(FLUX, serviceAccountName=None),
    ):
        stored_one = await policing.admitted(body)
        assert "serviceAccountName" not in stored_one["spec"]


@pytest.mark.check("f-119")
async def test_resource_sets_depend_on_what_is_theirs(policing: Policing) -> None:
    """Or on what has no namespace; and they have an account."""
    await policing.enforce()
    secret = {"apiVersion": "v1", "kind": "Secret", "name": "s"}
    crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "name": "x.example.com"}
    body = flux_object("ResourceSet", HOME, "r", spec={"dependsOn": [{**secret, "namespace": "dev-team2"}]})
    await policing.denied(body, "spec.dependsOn: Secret/dev-team2/s", user=TEAM1)
    for each in (secret, {**secret, "namespace": HOME}, crd):
        stored = await policing.admitted(flux_object("ResourceSet", HOME, "r", spec={"dependsOn": [each]}), user=TEAM1)
        assert stored["spec"]["serviceAccountName"] == "flux"


@pytest.mark.check("f-41")
async def test_deliveries_go_to_their_own_namespace(policing: Policing) -> None:
    """No grant and no setting but one opens others."""
    await policing.enforce()
    said = await policing.denied(kustomization(HOME, targetNamespace="kube-system"), user=TEAM1)
    assert "spec.targetNamespace: kube-system" in said
    said = await policing.denied(helm_release(HOME, storageNamespace="dev-team2"), user=TEAM1)
    assert "spec.storageNamespace: dev-team2" in said
    await policing.admitted(kustomization(HOME, targetNamespace=HOME), user=TEAM1)
    await policing.admitted(helm_release(HOME, storageNamespace=HOME, targetNamespace=HOME), user=TEAM1)


@pytest.mark.check("f-22")
async def test_what_depends_on_others_is_local(policing: Policing) -> None:
    """With and without an expression; not while it is not to be checked."""
    await policing.enforce()
    depends: list[Any] = [
        [{"name": "a", "namespace": "dev-team2"}],
        [{"name": "a", "namespace": "dev-team2", "readyExpr": "dep.status.ready"}],
    ]
    bodies = [make(each) for each in depends for make in (depending, depending_release)]
    for body in bodies:
        await policing.denied(body, f"spec.dependsOn: {body['kind']}/dev-team2/a", user=TEAM1)
    await policing.enforce(checkDependsOn=False)
    for body in bodies:
        await policing.admitted(body, user=TEAM1)


def depending(found: Any) -> Object:
    return kustomization(HOME, name="b", dependsOn=found)


def depending_release(found: Any) -> Object:
    return helm_release(HOME, name="b", dependsOn=found)


@pytest.mark.check("f-45")
async def test_kubeconfigs_can_be_refused(policing: Policing) -> None:
    """By default they are admitted."""
    bodies = [make(HOME, kubeConfig={"secretRef": {"name": "k"}}) for make in (kustomization, helm_release)]
    await policing.enforce(kubeConfig="Deny")
    for body in bodies:
        await policing.denied(body, "spec.kubeConfig", user=TEAM1)
    await policing.enforce()
    for body in bodies:
        await policing.admitted(body, user=TEAM1)


@pytest.mark.check("f-49")
@pytest.mark.check("f-124")
async def test_tenants_set_the_labels_that_are_listed(policing: Policing) -> None:
    """A key, or all with a prefix; no other, and none is taken off; annotations are theirs."""
    await policing.enforce(tenantLabelKeys=["example.com/color", "field.cattle.io/*"])
    await policing.labelled(HOME, **{TENANT_LABEL: "one"})
    body = obj(NAMESPACE, HOME)

    async def seen() -> bool:
        answer = await policing.merge(body, {"metadata": {"labels": {TENANT_LABEL: None}}}, user=TEAM1)
        return answer.status == 403

    await eventually(seen, within=POLICY_S, what="the label is there")
    for labels in (
        {TENANT_LABEL: None},
        {TENANT_LABEL: "two"},
        {"foo": "bar"},
        {"env": "prod"},
        {"example.com/colour": "x"},
        {"field.cattle.io": "x"},
        {"example.com/color": "x", "foo": "bar"},
    ):
        denied(await policing.merge(body, {"metadata": {"labels": labels}}, user=TEAM1), "metadata.labels")
    for labels in ({"example.com/color": "x"}, {"field.cattle.io/color": "x"}):
        admitted(await policing.merge(body, {"metadata": {"labels": labels}}, user=TEAM1))
    admitted(await policing.merge(body, {"metadata": {"annotations": {"foo": "bar"}}}, user=TEAM1))
    await policing.labelled(HOME, **{TENANT_LABEL: None})


async def test_namespaces_of_one_tenant_share_while_they_may(policing: Policing) -> None:
    """Sources and targets, by the label that the platform sets; no other tenant's, and nothing local."""
    await policing.enforce(allowIntraTenant=True)
    front, back = f"front-{token()}", f"back-{token()}"
    user = await policing.tenant(front, {TENANT_LABEL: "dev-team"})
    await policing.tenant(back, {TENANT_LABEL: "dev-team"})
    await policing.index(tenants={front: "dev-team", back: "dev-team", "dev-team2": "other"})
    await policing.admitted(kustomization(front, f"GitRepository/{back}/app"), user=user)
    await policing.admitted(kustomization(front, targetNamespace=back), user=user)
    await policing.denied(kustomization(front, "GitRepository/dev-team2/app"), user=user)
    await policing.denied(kustomization(front, targetNamespace="dev-team2"), user=user)
    await policing.denied(kustomization(front, dependsOn=[{"name": "a", "namespace": back}]), user=user)
    await policing.denied(kustomization("dev-team3", f"GitRepository/{back}/app"))
    await policing.enforce()
    await policing.denied(kustomization(front, f"GitRepository/{back}/app"), user=user)
    await policing.denied(kustomization(front, targetNamespace=back), user=user)


async def test_audit_warns_and_refuses_nothing(policing: Policing) -> None:
    """Neither denied references nor missing accounts; nothing is filled or marked."""
    await policing.enforce(mode="Audit", onDenied="Quarantine")
    answer = await policing.create(DENIED, user=TEAM2)
    admitted(answer)
    assert f"{APP1} is not shared with namespace dev-team2" in answer.told
    stored = await policing.admitted(kustomization(HOME, serviceAccountName=None), user=TEAM1)
    assert "serviceAccountName" not in stored["spec"]
    assert "annotations" not in stored["metadata"]


@pytest.mark.check("f-75")
async def test_the_index_is_not_deleted(policing: Policing) -> None:
    """Itself, the collection, its CRD; by an administrator and by who writes it; a single tenant may."""
    await policing.enforce()
    writer = await policing.administrator("tenantry-system", "scope-binding")
    paths = [
        ACCESS_INDEX.path("", DEFAULT),
        ACCESS_INDEX.path(),
        CUSTOM_RESOURCE_DEFINITION.path("", f"{ACCESS_INDEX.plural}.{ACCESS_INDEX.group}"),
        CUSTOM_RESOURCE_DEFINITION.path(),
    ]
    for user in ("", writer):
        for path in paths:
            denied(await policing.ask("DELETE", path, user=user, dry=True), "tenantry-index-undeletable")
    await policing.enforce(profile="single-tenant")
    for path in paths:
        admitted(await policing.ask("DELETE", path, dry=True))


@pytest.mark.check("f-74")
async def test_a_missing_index_refuses_consumers_and_nothing_else(policing: Policing) -> None:
    """Local ones too, by 422; namespaces, status, sources and exempt namespaces go on; in Audit nothing is refused."""
    await policing.enforce()
    body = await policing.made(kustomization(HOME))
    await policing.made(flux_object("GitRepository", HOME, "kept", spec={}))
    name = "tenantry-index-undeletable"
    await policing.admin.delete(ADMISSION_POLICY_BINDING, name)
    await policing.admin.delete(ADMISSION_POLICY, name)

    async def deleted() -> bool:
        return (await policing.ask("DELETE", ACCESS_INDEX.path("", DEFAULT))).status == 200

    await eventually(deleted, within=POLICY_S, what="the index is deleted")
    finalizer = {"metadata": {"finalizers": ["finalizers.fluxcd.io"]}}
    await policing.until(lambda: policing.create(kustomization(HOME), user=TEAM1), 422)
    for answer in (await policing.create(helm_release(HOME), user=TEAM1), await policing.merge(body, finalizer)):
        assert answer.status == 422, answer

    namespace = obj(NAMESPACE, f"n{token()}")
    admitted(await policing.create(namespace, dry=False))
    admitted(await policing.merge(namespace, {"metadata": {"labels": {"team": "two"}}}, dry=False))
    admitted(await policing.delete(namespace, dry=False))

    async def gone() -> bool:
        return await policing.admin.get(NAMESPACE, namespace["metadata"]["name"]) is None

    await eventually(gone, within=POLICY_S, what="a namespace without consumers ends")
    admitted(await policing.merge(body, {"status": {"observedGeneration": 1}}, subresource="status"))
    admitted(await policing.create(flux_object("GitRepository", HOME, spec={}), user=TEAM1))
    kept = flux_object("GitRepository", HOME, "kept")
    admitted(await policing.merge(kept, {"spec": {"url": "https://y"}}, user=TEAM1))
    admitted(await policing.create(kustomization(FLUX, APP1)))

    spec = {"profile": "multi-tenant", "mode": "Audit"}
    stored = await policing.admin.apply(TENANCY_PROFILE, obj(TENANCY_PROFILE, DEFAULT, spec=spec))
    await apply_profile(policing.admin, Profile.of(stored), prune=True)  # makes the index again
    await policing.until(lambda: policing.ask("DELETE", ACCESS_INDEX.path("", DEFAULT)), 200)
    for make in (
        lambda: policing.create(kustomization(HOME), user=TEAM1),
        lambda: policing.create(DENIED, user=TEAM2),
        lambda: policing.merge(body, finalizer),
    ):
        await policing.until(make, 200, 201)


async def test_shipped_manifests_take_no_grant_away(policing: Policing) -> None:
    """Applied again by force they leave the maps of the index as they are, and change nothing."""
    profile = await policing.enforce()
    await policing.index({APP1: TWO})
    before = await policing.admin.get(ACCESS_INDEX, DEFAULT)
    rows = await apply_profile(policing.admin, profile, prune=False)
    after = await policing.admin.get(ACCESS_INDEX, DEFAULT)
    assert before is not None
    assert after is not None
    assert before["spec"] == after["spec"]
    assert {each["result"] for each in rows if each["kind"] != ACCESS_INDEX.kind} == {"unchanged"}
    await policing.admitted(DENIED, user=TEAM2)


async def test_superfluous_policies_are_named_and_taken_away_when_asked(policing: Policing) -> None:
    """What an older profile wanted stays until then."""
    await policing.enforce(serviceAccountMode="Default")
    spec = {"profile": "multi-tenant", "serviceAccountMode": "Require"}
    stored = await policing.admin.apply(TENANCY_PROFILE, obj(TENANCY_PROFILE, DEFAULT, spec=spec))
    profile = Profile.of(stored)
    superfluous = {
        (kind, f"tenantry-default-account-{each}")
        for kind in ("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding")
        for each in ("kustomizations", "helmreleases", "resourcesets")
    }
    for prune, word in ((False, "superfluous"), (True, "deleted")):
        rows = await apply_profile(policing.admin, profile, prune=prune)
        assert {(each["kind"], each["name"]) for each in rows if each["result"].startswith(word)} == superfluous
    rows = await apply_profile(policing.admin, profile, prune=True)
    assert {each["result"] for each in rows} == {"unchanged"}
