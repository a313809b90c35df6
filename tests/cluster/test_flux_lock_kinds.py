"""Access locks under each profile, of each kind: what is stopped and how, and what is told where nothing is (2.2, 2.4, 3.4)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio
from flawless import Calm
from flux_crds import install_flux
from flux_locking import CONSUMER_KINDS, LOCKS, FluxLocks, condition_types, has_no_lock, named_elsewhere, stop_of
from fluxing import SOURCES, served
from times import LEFT_TO_MAKE_WHOLE

from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.model.conditions import find_condition
from tenantry.model.flux.names import ACCESS_DENIED, TENANCY_PROFILE
from tenantry.model.kinds import Object, annotations_of
from tenantry.testing import eventually

CLUSTER_SCOPED = "ClusterScopedResourceDenied"
OPERATED = ("ResourceSet", "ResourceSetInputProvider")


@pytest.fixture(scope="module")
def flux(admin: Api) -> FluxLocks:
    """Owners of sources, teams that use them, and the platform."""
    return FluxLocks(admin)


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def system(flawlessly: Callable[..., Awaitable[Knative]], admin: Api) -> Knative:
    """Both functions with Flux' kinds, without policies, until the module ends."""
    await install_flux(admin)
    running = await flawlessly({}, functions=[SOURCES, LOCKS])
    await running.drain()
    return running


@pytest_asyncio.fixture(loop_scope="session")
async def several(system: Knative, flux: FluxLocks) -> None:
    """A profile for several tenants."""
    await flux.profile()
    await system.drain()


async def corrected(flux: FluxLocks, consumer: Object) -> None:
    """Its author names only what is in its own namespace."""
    metadata, kind = consumer["metadata"], consumer["kind"]
    live = await flux.now(consumer)
    spec = {**live["spec"], **named_elsewhere(kind, "")}
    await flux.edit(served(kind), metadata["name"], metadata["namespace"], ("replace", "/spec", spec))


@pytest.mark.check("f-109")
@pytest.mark.parametrize("kind", CONSUMER_KINDS)
async def test_every_kind_is_stopped_by_its_own_means(several: None, flux: FluxLocks, kind: str) -> None:
    """By its field or annotation; one that its user had set stays; conditions are those that the kind has."""
    other, home, stop = await flux.home(), await flux.home(), stop_of(kind)
    spec = named_elsewhere(kind, other)
    by_user: dict[str, Any] = (
        {"spec": {**spec, "suspend": True}} if stop.field else {"annotations": {stop.annotation: stop.value}}
    )
    plain = await flux.consumer(home, kind, spec=spec)
    stopped = await flux.consumer(home, kind, **{"spec": spec, **by_user})
    for each, by_lock in ((plain, True), (stopped, False)):
        found = await flux.locked(each, by_lock=by_lock)
        assert {name for name in ("Ready", "Stalled") if find_condition(found, name)} == set(condition_types(kind))
        assert ("status" in found) == bool(condition_types(kind))
        (event,) = await flux.events(each, ACCESS_DENIED)
        assert other in event["message"]
        await corrected(flux, each)
        freed = await flux.unlocked(each)
        still = not by_lock
        if stop.field:
            assert freed["spec"].get("suspend") is (True if still else None)
        else:
            assert annotations_of(freed).get(stop.annotation) == (stop.value if still else None)


@pytest.mark.check("f-121")
@pytest.mark.parametrize("kind", OPERATED)
async def test_what_was_there_before_the_switch_is_stopped(system: Knative, flux: FluxLocks, calm: Calm, kind: str) -> None:
    """By the annotation of its operator, and told; corrected it goes on."""
    await flux.profile(profile="single-tenant")
    other, home = await flux.home(), await flux.home()
    made = await flux.consumer(home, kind, spec=named_elsewhere(kind, other))
    await calm(system)
    assert await flux.now(made) == made
    await flux.profile()
    found = await flux.locked(made)
    assert annotations_of(found)["fluxcd.controlplane.io/reconcile"] == "disabled"
    await corrected(flux, made)
    assert "fluxcd.controlplane.io/reconcile" not in annotations_of(await flux.unlocked(made))


@LEFT_TO_MAKE_WHOLE
async def test_a_single_tenant_has_no_locks(system: Knative, flux: FluxLocks, calm: Calm) -> None:
    """Switched, all that was locked is unlocked, and then nothing is written (f-37)."""
    await flux.profile()
    other, home = await flux.home(), await flux.home()
    made = [await flux.consumer(home, kind, spec=named_elsewhere(kind, other)) for kind in CONSUMER_KINDS]
    for each in made:
        await flux.locked(each)
    await flux.profile(profile="single-tenant")
    for each in made:
        await flux.unlocked(each)
    await calm(system)
    before = [await flux.now(each) for each in made]
    await calm(system)
    assert [await flux.now(each) for each in made] == before


@LEFT_TO_MAKE_WHOLE
async def test_audit_changes_nothing(system: Knative, flux: FluxLocks, calm: Calm) -> None:
    """What is denied is listed, and neither suspended, marked nor told; what was locked is unlocked (f-36)."""
    await flux.profile()
    other, home = await flux.home(), await flux.home()
    locked = await flux.consumer(home, spec=named_elsewhere("Kustomization", other))
    await flux.locked(locked)
    await flux.profile(mode="Audit")
    await flux.unlocked(locked)
    made = await flux.consumer(home, spec=named_elsewhere("Kustomization", other))
    await flux.listed(made)
    await calm(system)
    assert await flux.now(made) == made
    assert not await flux.events(made, ACCESS_DENIED)


@pytest.mark.check("f-108")
@LEFT_TO_MAKE_WHOLE
async def test_a_report_is_no_lock(system: Knative, flux: FluxLocks, calm: Calm) -> None:
    """One Event, and the list of the profile until it is granted again; it goes on all the time."""
    await flux.profile(onRevocation="Report")
    owner, user, labels = await flux.shared()
    made = await flux.kustomization(user, owner)
    await flux.revoke(owner)
    await flux.listed(made)
    await eventually(lambda: flux.events(made, ACCESS_DENIED), within=flux.eventually_s)
    await calm(system)
    found = await flux.now(made)
    assert found == made
    assert has_no_lock(found)
    assert len(await flux.events(made, ACCESS_DENIED)) == 1
    await flux.grant(owner, labels)
    await flux.listed(made, wanted=False)
    await flux.profile()


@pytest.mark.check("f-43")
@LEFT_TO_MAKE_WHOLE
@pytest.mark.parametrize("kind", ["Kustomization", "HelmRelease"])
async def test_a_cluster_scoped_object_is_told(several: None, system: Knative, flux: FluxLocks, calm: Calm, kind: str) -> None:
    """With kind and name in the tenant's namespace, once; an object of another namespace is not."""
    home = await flux.home()
    names = {"ClusterRole": "evil", "Namespace": "n"}
    denied = f'is forbidden: User "system:serviceaccount:{home}:flux" cannot patch resource'
    role, rbac = "clusterroles", "rbac.authorization.k8s.io"
    why = {
        "ClusterRole/evil": f'{role}.{rbac} "evil" {denied} "{role}" in API group "{rbac}" at the cluster scope',
        "Namespace/n": f'namespaces "n" {denied} "namespaces" in API group "" in the namespace "n"',
        "ConfigMap/other/c": f'configmaps "c" {denied} "configmaps" in API group "" in the namespace "other"',
    }
    texts = {each.split("/")[0]: f"{each} dry-run failed (Forbidden): {text}" for each, text in why.items()}
    made = {each: await flux.consumer(home, kind, spec=named_elsewhere(kind, "")) for each in texts}
    for _ in range(2):
        for each, text in texts.items():
            said = {"type": "Ready", "status": "False", "reason": "ReconciliationFailed", "message": text}
            await flux.say(made[each], said, {"type": "Reconciling", "status": "True", "reason": "Progressing"})
        for each in names:
            await eventually(lambda each=each: flux.events(made[each], CLUSTER_SCOPED), within=flux.eventually_s)  # type: ignore[misc]
        await calm(system)
    for each, name in names.items():
        (event,) = await flux.events(made[each], CLUSTER_SCOPED)
        assert event["metadata"]["namespace"] == home
        assert event["message"].startswith(f"{each} {name} ")
    assert not await flux.events(made["ConfigMap"], CLUSTER_SCOPED)


@LEFT_TO_MAKE_WHOLE
async def test_what_nobody_enforces_is_left_alone(system: Knative, flux: FluxLocks, calm: Calm) -> None:
    """Without a TenancyProfile nothing is locked or told, and what was locked is unlocked (f-71)."""
    await flux.profile()
    other, home = await flux.home(), await flux.home()
    locked = await flux.consumer(home, spec=named_elsewhere("Kustomization", other))
    await flux.locked(locked)
    await flux.admin.delete(TENANCY_PROFILE, "default")
    await flux.unlocked(locked)
    made = await flux.consumer(home, spec=named_elsewhere("Kustomization", other))
    await calm(system)
    assert await flux.now(made) == made
    assert not await flux.events(made, ACCESS_DENIED)
