"""Ordinary work with all policies of Flux tenancy in force, by the identities that do it: nothing is refused (f-94)."""

from __future__ import annotations

import pytest
import pytest_asyncio
from flux_crds import crd, flux_kind, version_of
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
    reference,
)
from people import token
from times import LEFT_TO_MAKE_WHOLE, NAMESPACE_GONE_S

from tenantry.model.kinds import (
    CUSTOM_RESOURCE_DEFINITION,
    NAMESPACE,
    ROLE_BINDING,
    SECRET,
    SERVICE_ACCOUNT,
    Kind,
    Object,
)
from tenantry.testing import eventually
from tenantry.testing.objects import obj

pytestmark = LEFT_TO_MAKE_WHOLE

TERRAFORM = Kind("infra.contrib.fluxcd.io/v1alpha2", "Terraform", "terraforms")
ROW: Object = {
    "group": TERRAFORM.group,
    "resource": TERRAFORM.plural,
    "references": [
        {"path": "spec.sourceRef", "class": "read"},
        {"path": "spec.dependsOn[]", "class": "local", "kind": "Terraform"},
        {"path": "spec.inputs[].ref", "class": "read"},
    ],
    "stop": {"field": "spec.suspend"},
}


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def enforced(policing: Policing) -> None:
    """Profile multi-tenant with every policy, and nothing shared."""
    await policing.enforce(kubeConfig="Deny", pinToTenant=True, onDenied="Quarantine")
    await policing.index()


@pytest.mark.check("f-94")
async def test_controllers_write_what_is_theirs(policing: Policing) -> None:
    """Finalizers and status of consumers and sources, charts beside sources, artifacts: with the rights of an installation."""
    kustomize, helm, source, watcher, image = [
        await policing.controller(f"{each}")
        for each in (
            "kustomize-controller",
            "helm-controller",
            "source-controller",
            "source-watcher",
            "image-reflector-controller",
        )
    ]
    body = await policing.made(kustomization("dev-team1"), user=TEAM1)
    admitted(await policing.merge(body, {"metadata": {"finalizers": ["finalizers.fluxcd.io"]}}, user=kustomize, dry=False))
    admitted(await policing.merge(body, {"status": {"observedGeneration": 1}}, user=kustomize, dry=False, subresource="status"))
    admitted(await policing.delete(body, user=TEAM1, dry=False))
    admitted(await policing.merge(body, {"metadata": {"finalizers": None}}, user=kustomize, dry=False))

    release = await policing.made(helm_release("dev-team1"), user=TEAM1)
    chart = flux_object("HelmChart", "dev-team1", f"dev-team1-{token()}", spec={"chart": "redis"})
    admitted(await policing.apply(chart, user=helm, manager="helm-controller"))
    status = {"status": {"helmChart": f"dev-team1/{chart['metadata']['name']}"}}
    admitted(await policing.merge(release, status, user=helm, dry=False, subresource="status"))
    admitted(await policing.delete(chart, user=helm, dry=False))

    artifact = {"status": {"artifact": {"url": "http://source-controller/x", "revision": "main@sha1:0"}}}
    for kind, user in (("GitRepository", source), ("Bucket", source), ("ImageRepository", image)):
        found = await policing.made(flux_object(kind, "dev-team1", spec={}), user=TEAM1)
        admitted(await policing.merge(found, {"metadata": {"finalizers": ["finalizers.fluxcd.io"]}}, user=user, dry=False))
        admitted(await policing.merge(found, artifact, user=user, dry=False, subresource="status"))
    made = await policing.made(flux_object("ExternalArtifact", "dev-team1", spec={}), user=watcher)
    admitted(await policing.merge(made, artifact, user=watcher, dry=False, subresource="status"))
    admitted(await policing.delete(made, user=watcher, dry=False))


@pytest.mark.check("f-94")
async def test_what_is_unchanged_is_applied_again(policing: Policing) -> None:
    """By server-side apply, as Flux does it every ten minutes: also a consumer that has become illegal meanwhile."""
    await policing.index({APP1: TWO})
    bodies = [kustomization("dev-team2", APP1), kustomization("dev-team2"), helm_release("dev-team2")]
    first = [admitted(await policing.apply(each, user=TEAM2)) for each in bodies]
    await policing.index()
    for body, before in zip(bodies, first, strict=True):
        after = admitted(await policing.apply(body, user=TEAM2))
        assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


@pytest.mark.check("f-94")
async def test_tenants_do_what_is_theirs(policing: Policing) -> None:
    """Sources, Secrets, accounts and bindings: made, changed, deleted."""
    ref = {"apiGroup": ROLE_BINDING.group, "kind": "ClusterRole", "name": "view"}
    name = f"own-{token()}"
    bodies = [
        flux_object("GitRepository", "dev-team1", name, spec={"url": "https://x"}),
        flux_object("HelmChart", "dev-team1", name, spec={"chart": "x"}),
        obj(SECRET, name, "dev-team1", stringData={"a": "b"}),
        obj(SERVICE_ACCOUNT, name, "dev-team1"),
        obj(ROLE_BINDING, name, "dev-team1", roleRef=ref, subjects=[]),
        kustomization("dev-team1", name=name),
    ]
    for body in bodies:
        await policing.made(body, user=TEAM1)
        admitted(await policing.merge(body, {"metadata": {"labels": {"example.com/a": "b"}}}, user=TEAM1, dry=False))
        admitted(await policing.delete(body, user=TEAM1, dry=False))


@pytest.mark.check("f-94")
async def test_a_namespace_ends(policing: Policing) -> None:
    """The controller manager empties it, and takes its finalizer off."""
    name = f"ending-{token()}"
    user = await policing.tenant(name, {"team": "two"})
    for body in (kustomization(name), helm_release(name), flux_object("GitRepository", name, spec={})):
        await policing.made(body, user=user)
    admitted(await policing.delete(obj(NAMESPACE, name), dry=False))

    async def gone() -> bool:
        return await policing.admin.get(NAMESPACE, name) is None

    await eventually(gone, within=NAMESPACE_GONE_S, what=f"namespace {name} is gone")


async def test_a_kind_of_another_system_is_judged_by_its_row(policing: Policing) -> None:
    """Like a Kustomization: each of its references, in a list within a list item, too; others are not touched by the row."""
    text = {"type": "string"}
    found = {"type": "object", "properties": {"kind": text, "name": text, "namespace": text}}
    items = {"type": "array", "items": {"type": "object", "properties": {"ref": found, "name": text, "namespace": text}}}
    fields = {"sourceRef": found, "dependsOn": items, "inputs": items, "suspend": {"type": "boolean"}}
    spec = {"type": "object", "properties": fields}
    stand_in = flux_kind("Kustomization")._replace(group=TERRAFORM.group, kind=TERRAFORM.kind, plural=TERRAFORM.plural)
    await policing.admin.apply(CUSTOM_RESOURCE_DEFINITION, crd(stand_in, version_of("v1alpha2", spec)))

    async def served() -> bool:
        return await policing.admin.served(TERRAFORM.api_version, TERRAFORM.kind, again=True) is not None

    await eventually(served, within=NAMESPACE_GONE_S, what="Terraform is served")
    await policing.enforce(consumers=[ROW, {**ROW, "resource": "unserveds"}])
    path = TERRAFORM.path("dev-team2")
    shared = reference(APP1)
    specs: list[Object] = [{"sourceRef": shared}, {"inputs": [{"ref": {"kind": "Bucket", "name": "own"}}, {"ref": shared}]}]
    for grants, judge in (({}, denied), ({APP1: TWO}, admitted)):
        await policing.index(grants)
        for each in specs:
            body = obj(TERRAFORM, f"t{token()}", "dev-team2", spec=each)
            judge(await policing.ask("POST", path, body, user=TEAM2, dry=True))
    depends = {"dependsOn": [{"name": "a", "namespace": "dev-team1"}]}
    said = denied(await policing.ask("POST", path, obj(TERRAFORM, "t", "dev-team2", spec=depends), user=TEAM2, dry=True))
    assert "spec.dependsOn: Terraform/dev-team1/a" in said
    local = {"sourceRef": reference("GitRepository//x"), "dependsOn": [{"name": "a"}]}
    admitted(await policing.ask("POST", path, obj(TERRAFORM, "t", "dev-team2", spec=local), user=TEAM2, dry=True))
    await policing.admitted(kustomization("dev-team2", APP1), user=TEAM2)


async def test_platform_accounts_of_exempt_namespaces_are_free(policing: Policing) -> None:
    """The platform's own consumers name what they like, without an account, by a kubeconfig."""
    kube = {"secretRef": {"name": "k"}}
    await policing.admitted(kustomization(FLUX, APP1, serviceAccountName=None, kubeConfig=kube, targetNamespace="dev-team1"))
