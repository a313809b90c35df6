"""What tenants commit, applied by the real controllers of Flux: as whom, how far it reaches, and what is refused (2.2 to 2.4)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import pytest_asyncio
from admitting import MERGE
from flux_controllers import REAL_FLUX
from flux_locking import FLUX_FINALIZER, KUSTOMIZATION, LOCKS, has_lock
from flux_real import FAILED, GIT, RUN_S, RealFlux, applied_by, config_map, delivery
from fluxing import SOURCES
from people import CORE_EVENT, token
from times import FLUX_S

from tenantry.local.control_plane import ControlPlane
from tenantry.local.knative import Knative
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    CONFIG_MAP,
    NAMESPACE,
    ROLE_BINDING,
    SERVICE_ACCOUNT,
    Object,
    finalizers_of,
    labels_of,
)
from tenantry.testing import eventually
from tenantry.testing.audit import AuditLog
from tenantry.testing.objects import obj

pytestmark = [REAL_FLUX, pytest.mark.timeout(300)]
CONTROLLER = "system:serviceaccount:flux-system:kustomize-controller"


@pytest.fixture(scope="module")
def control_plane(audited_plane: tuple[ControlPlane, AuditLog]) -> ControlPlane:
    return audited_plane[0]


@pytest.fixture(scope="module")
def log(audited_plane: tuple[ControlPlane, AuditLog]) -> AuditLog:
    return audited_plane[1]


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def system(delivering: Callable[..., Awaitable[Knative]]) -> Knative:
    """Both functions, policies and controllers, until the module ends."""
    return await delivering(SOURCES, LOCKS)


@pytest.fixture
def flux(real_flux: RealFlux) -> RealFlux:
    return real_flux


async def owned(flux: RealFlux) -> str:
    """A namespace with GitRepository app1, which nobody else may use."""
    owner = await flux.home()
    await flux.source(owner)
    return owner


@pytest.mark.check("f-101")
async def test_a_denied_child_fails_its_parent(flux: RealFlux) -> None:
    """With our text; the child is not there, nor is the ConfigMap that came with it."""
    owner, user = await owned(flux), await flux.team()
    parent = await flux.delivered(user, [config_map("beside"), delivery("child", owner, user)])
    said = await flux.failed(parent, "spec.sourceRef", f"GitRepository/{owner}/app1 is not shared with namespace {user}")
    assert "Kustomization" in said
    assert await flux.admin.get(KUSTOMIZATION, "child", user) is None
    assert not await flux.is_applied(user, "beside")


@pytest.mark.check("f-102")
async def test_a_denied_child_is_quarantined(system: Knative, flux: RealFlux) -> None:
    """Its parent and what is beside it are applied; further runs do not write it; with a grant it applies its content."""
    await flux.enforce(onDenied="Quarantine")
    try:
        owner, labels = await owned(flux), {"team": token()}
        user = await flux.team(**labels)
        parent = await flux.delivered(user, [config_map("beside"), delivery("child", owner, user)])
        await flux.ready(parent)
        await flux.applied(user, "beside")
        child = await flux.locked(await flux.get(KUSTOMIZATION, "child", user))
        await flux.until(KUSTOMIZATION, "child", user, lambda found: FLUX_FINALIZER in finalizers_of(found), within=RUN_S)
        await system.drain()
        before = await flux.now(child)
        for _ in range(2):
            await flux.reconciled(parent)
            await flux.ready(parent)
        assert await flux.now(child) == before
        assert has_lock(before)
        assert not await flux.is_applied(user, "of-app1")

        await flux.grant(owner, labels)
        await flux.unlocked(child)
        await flux.ready(child)
        await flux.applied(user, "of-app1")
    finally:
        await flux.enforce()


@pytest.mark.check("f-111")
async def test_the_artifact_of_another_tenant_is_not_deployed(flux: RealFlux) -> None:
    """Written into the status of one's own source it is refused, on each way, and what is deployed stays one's own."""
    owner, user = await flux.home(), await flux.home()
    tenant = await flux.tenant(user)
    await flux.source(owner, "secret")
    made = await flux.delivered(user, [config_map("mine")])
    await flux.ready(made)
    own = await flux.get(GIT, "own", user)

    def there(found: Object) -> bool:
        return bool((found.get("status") or {}).get("artifact"))

    artifact = (await flux.until(GIT, "secret", owner, there, within=RUN_S))["status"]["artifact"]
    path = GIT.path(user, "own") + "/status"
    stolen = {"status": {**own["status"], "artifact": artifact}}
    whole = {**own, **stolen}
    bare = {"apiVersion": own["apiVersion"], "kind": own["kind"], "metadata": {"name": "own", "namespace": user}, **stolen}
    ways = (
        await flux.admitting.ask("PATCH", path, stolen, user=tenant, content=MERGE),
        await flux.admitting.ask("PUT", path, whole, user=tenant),
        await flux.admitting.ask(
            "PATCH", path, bare, user=tenant, content="application/apply-patch+yaml", query={"fieldManager": "t", "force": "true"}
        ),
    )
    for answer in ways:
        assert answer.status == 403, answer
        assert "tenantry-source-status" in answer.message
    await flux.reconciled(made)
    await flux.ready(made)
    assert (await flux.get(GIT, "own", user))["status"]["artifact"] == own["status"]["artifact"]
    assert await flux.is_applied(user, "mine")
    assert not await flux.is_applied(user, "of-secret")


@pytest.mark.check("f-125")
async def test_a_namespace_in_a_repository_is_not_applied(flux: RealFlux) -> None:
    """As it is RBAC refuses it; renamed to the tenant's own, ``protected-labels`` does, and its labels stay."""
    user, name = await flux.team(stage="test"), f"evil-{token()}"
    before = labels_of(await flux.get(NAMESPACE, user))
    namespace = obj(NAMESPACE, name, labels={"env": "prod"})
    plain = await flux.delivered(user, [namespace], name="plain", targetNamespace=None)
    said = await flux.failed(plain, f"Namespace/{name}", "(Forbidden)", f'namespaces "{name}" is forbidden')
    assert f'User "system:serviceaccount:{user}:flux"' in said
    renamed = await flux.delivered(user, [namespace], name="renamed")
    await flux.failed(renamed, f"Namespace/{user}", "tenantry-protected-labels")
    assert await flux.admin.get(NAMESPACE, name) is None
    assert labels_of(await flux.get(NAMESPACE, user)) == before


@pytest.mark.check("f-133")
@pytest.mark.parametrize("mode", ["Default", "Off"])
async def test_it_is_applied_as_the_account_of_the_tenant(flux: RealFlux, log: AuditLog, mode: str) -> None:
    """Without account as ``flux``, by our mutation or by the controller's argument; one that names another as that."""
    filled = {"Default": "flux", "Off": ""}[mode]
    if mode != "Default":
        await flux.enforce(serviceAccountMode=mode)
    await flux.fills(filled)
    try:
        user = await flux.team()
        await flux.admin.create(SERVICE_ACCOUNT, obj(SERVICE_ACCOUNT, "other", user))
        subject = {"kind": "ServiceAccount", "name": "other", "namespace": user}
        role = {"apiGroup": ROLE_BINDING.group, "kind": "ClusterRole", "name": "cluster-admin"}
        await flux.admin.create(ROLE_BINDING, obj(ROLE_BINDING, "other", user, subjects=[subject], roleRef=role))
        without = await flux.unnamed(user, "without")
        assert without["spec"].get("serviceAccountName", "") == filled
        named = await flux.unnamed(user, "named", serviceAccountName="other")
        for made, account in ((without, "flux"), (named, "other")):
            await flux.ready(made)
            who = {(CONTROLLER, f"system:serviceaccount:{user}:{account}")}
            assert await applied_by(log, user, f"of-{made['metadata']['name']}") == who
    finally:
        if mode != "Default":
            await flux.enforce()
            await flux.fills("flux")


@pytest.mark.check("f-134")
async def test_without_account_nothing_is_applied(flux: RealFlux) -> None:
    """In a namespace without account and RoleBinding each request is Forbidden."""
    user = await flux.home()
    made = await flux.unnamed(user, "app1")
    assert made["spec"]["serviceAccountName"] == "flux"
    await flux.failed(made, "(Forbidden)", f'User "system:serviceaccount:{user}:flux"')
    assert not await flux.is_applied(user, "of-app1")


@pytest.mark.check("f-136")
async def test_a_cluster_role_in_a_repository_is_rejected_and_told(system: Knative, flux: RealFlux) -> None:
    """Not made; Ready, Flux' Warning and our Event in the tenant's namespace say so."""
    user, name = await flux.team(), f"evil-{token()}"
    made = await flux.delivered(user, [obj(CLUSTER_ROLE, name, rules=[]), config_map("beside")])
    said = await flux.failed(
        made,
        f'ClusterRole/{name} dry-run failed (Forbidden): clusterroles.rbac.authorization.k8s.io "{name}" is forbidden: '
        f'User "system:serviceaccount:{user}:flux" cannot patch resource',
    )
    assert await flux.admin.get(CLUSTER_ROLE, name) is None

    async def told(reason: str) -> list[Object]:
        fields = f"involvedObject.kind=Kustomization,involvedObject.name={made['metadata']['name']},reason={reason},type=Warning"
        return (await flux.admin.list(CORE_EVENT, user, field_selector=fields)).items

    theirs = await eventually(lambda: told(FAILED), within=FLUX_S, what="Flux tells it")
    assert said[:200] in theirs[0]["message"]
    ours = await eventually(lambda: told("ClusterScopedResourceDenied"), within=FLUX_S, what="we tell it")
    assert ours[0]["message"].startswith(f"ClusterRole {name} is cluster-scoped")
    await system.drain()
    assert len(await told("ClusterScopedResourceDenied")) == 1
    assert await flux.admin.get(CONFIG_MAP, "beside", user) is None
