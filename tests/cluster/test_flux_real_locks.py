"""Access locks under the real controllers of Flux: nothing they do takes one off, and its end is an orderly one (2.2)."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager

import pytest
import pytest_asyncio
from flux_controllers import REAL_FLUX
from flux_locking import (
    ACCESS,
    FLUX_FINALIZER,
    KUSTOMIZATION,
    LOCKS,
    REQUESTED_AT,
    has_lock,
)
from flux_real import RUN_S, RealFlux, config_map, delivery, says
from fluxing import SOURCES
from people import token
from times import FLUX_S

from tenantry.local.control_plane import ControlPlane
from tenantry.local.knative import Knative
from tenantry.model.flux.names import ACCESS_DENIED, LOCK_FINALIZER, LOCKED, SUSPENDED_BY_LOCK
from tenantry.model.kinds import DEPLOYMENT, NAMESPACE, Object, annotations_of, finalizers_of, is_terminating
from tenantry.testing.audit import AuditLog
from tenantry.testing.objects import obj

pytestmark = [REAL_FLUX, pytest.mark.timeout(300)]
LOCKED_STAYS_S = 30.0
"""f-98: what waits for its lock to end is there after 30 s."""


@pytest.fixture(scope="module")
def control_plane(audited_plane: tuple[ControlPlane, AuditLog]) -> ControlPlane:
    return audited_plane[0]


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def system(delivering: Callable[..., Awaitable[Knative]]) -> Knative:
    """Both functions, policies and controllers, until the module ends."""
    return await delivering(SOURCES, LOCKS)


@pytest.fixture
def flux(real_flux: RealFlux) -> RealFlux:
    return real_flux


@contextmanager
def stopped(system: Knative) -> Iterator[None]:
    """While the Service that locks stands still."""
    pid = system.functions[ACCESS].pid
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def deployment(name: str) -> Object:
    """A Deployment, whose pods never run: there is no node."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "none"}]}}
    return obj(DEPLOYMENT, name, spec={"selector": {"matchLabels": labels}, "template": template})


async def shared(flux: RealFlux) -> tuple[str, str, dict[str, str]]:
    """As ``flux.shared``, with a tenant in the second namespace."""
    owner, user, labels = await flux.shared()
    await flux.tenant(user)
    return owner, user, labels


@pytest.mark.check("f-29")
async def test_what_was_committed_meanwhile_is_applied(system: Knative, flux: RealFlux) -> None:
    """Locked, a commit is not applied; granted again nothing of the lock is left, a run is asked for, and applies it."""
    owner, user, labels = await shared(flux)
    made = await flux.kustomization(user, owner)
    await flux.ready(made)
    await flux.applied(user, "of-app1")
    await flux.revoke(owner)
    await flux.locked(made)
    commit = await flux.commit(owner, [config_map("meanwhile")])
    await flux.stays(made, has_lock, seconds=FLUX_S)
    assert not await flux.is_applied(user, "meanwhile")

    await flux.grant(owner, labels)
    found = await flux.unlocked(made)
    assert "suspend" not in found["spec"]
    assert annotations_of(found).keys() == {REQUESTED_AT}
    assert list(finalizers_of(found)) == [FLUX_FINALIZER]
    await flux.ready(made, commit)
    await flux.applied(user, "meanwhile")
    await flux.pruned(user, "of-app1")
    await system.drain()
    (event,) = await flux.events(made, "AccessGranted")
    assert event["type"] == "Normal"
    assert len(await flux.events(made, ACCESS_DENIED)) == 1


@pytest.mark.check("f-33")
async def test_a_locked_object_that_is_deleted_is_pruned(flux: RealFlux) -> None:
    """Its controller may not take its finalizer off while it is locked; then the lock goes, and what it applied."""
    owner, user, _ = await shared(flux)
    controller = await flux.controller()
    made = await flux.kustomization(user, owner)
    await flux.ready(made)
    await flux.revoke(owner)
    await flux.locked(made)
    letting_go = {"metadata": {"finalizers": [LOCK_FINALIZER]}}
    assert (await flux.merge(made, letting_go, user=controller)).status == 403
    assert await flux.is_applied(user, "of-app1")
    await flux.admin.delete(KUSTOMIZATION, made["metadata"]["name"], user)
    await flux.away(KUSTOMIZATION, made["metadata"]["name"], user, within=RUN_S)
    await flux.pruned(user, "of-app1")


@pytest.mark.check("f-97")
async def test_the_end_of_a_run_does_not_hide_a_lock(flux: RealFlux) -> None:
    """A run that waits for what never becomes ready ends after the lock: soon the conditions are the lock's again."""
    owner, user, _ = await shared(flux)
    await flux.commit(owner, [deployment("never")])
    made = await flux.kustomization(user, owner, spec={"wait": True, "timeout": "15s"})
    name = made["metadata"]["name"]
    waiting = await flux.until(
        KUSTOMIZATION, name, user, lambda found: "health check" in str(found.get("status")).lower(), within=RUN_S
    )
    await flux.revoke(owner)
    found = await flux.locked(made)
    assert found["metadata"]["generation"] > waiting["metadata"]["generation"]
    version = found["metadata"]["resourceVersion"]
    changes = flux.admin.watch(KUSTOMIZATION, user, resource_version=version, timeout_s=RUN_S)
    async with aclosing(changes) as seen:  # type: ignore[type-var]
        async for _, changed in seen:
            if changed["metadata"].get("name") == name and says(changed, "False", "HealthCheckFailed"):
                break
        else:
            raise AssertionError("the run did not end")
    await flux.locked(made)
    await flux.stays(made, has_lock, seconds=FLUX_S)
    assert len(await flux.events(made, ACCESS_DENIED)) == 1


def was_refused(log: AuditLog, user: str, name: str) -> bool:
    """Whether kustomize-controller was refused a change of a Kustomization."""
    return any(
        event["responseStatus"]["code"] == 403
        and event["user"]["username"].endswith(":kustomize-controller")
        and "impersonatedUser" not in event
        and (event["objectRef"].get("namespace"), event["objectRef"].get("name")) == (user, name)
        for event in log.events()
    )


@pytest.mark.check("f-98")
async def test_deletion_waits_for_who_takes_locks_off(
    system: Knative, flux: RealFlux, audited_plane: tuple[ControlPlane, AuditLog]
) -> None:
    """Until then everything stays: its controller is refused.  A person may do it, too; a namespace with a lock ends."""
    made: list[tuple[str, Object]] = []
    for _ in range(3):
        owner, user, _ = await shared(flux)
        each = await flux.kustomization(user, owner)
        await flux.ready(each)
        await flux.revoke(owner)
        await flux.locked(each)
        made.append((user, each))
    (first, by_function), (second, by_person), (third, _) = made
    await system.drain()
    with stopped(system):
        for user, each in made[:2]:
            await flux.admin.delete(KUSTOMIZATION, each["metadata"]["name"], user)
        await asyncio.gather(*(flux.stays(each, is_terminating, seconds=LOCKED_STAYS_S) for _, each in made[:2]))
        for user, each in made[:2]:
            assert await flux.is_applied(user, "of-app1")
            assert was_refused(audited_plane[1], user, each["metadata"]["name"])
        freed = {
            "metadata": {"annotations": {LOCKED: None, SUSPENDED_BY_LOCK: None}, "finalizers": [FLUX_FINALIZER]},
            "spec": {"suspend": None},
        }
        answer = await flux.merge(by_person, freed, dry=False)
        assert answer.status == 200, answer
        await flux.away(KUSTOMIZATION, by_person["metadata"]["name"], second, within=RUN_S)
        await flux.pruned(second, "of-app1")
        assert await flux.is_applied(first, "of-app1")
    await flux.away(KUSTOMIZATION, by_function["metadata"]["name"], first, within=RUN_S)
    await flux.pruned(first, "of-app1")

    await flux.admin.delete(NAMESPACE, third)
    await flux.away(NAMESPACE, third, within=RUN_S)


@pytest.mark.check("f-100")
async def test_a_parent_does_not_take_the_lock_off_its_child(system: Knative, flux: RealFlux) -> None:
    """Its runs succeed while the child stays locked; that it shall run is refused, or in quarantine without effect."""
    owner, user, _ = await shared(flux)
    name = f"child-{token()}"
    parent = await flux.delivered(user, [delivery(name, owner, user)])
    await flux.ready(parent)
    child = await flux.get(KUSTOMIZATION, name, user)
    await flux.ready(child)
    await flux.applied(user, "of-app1")
    await flux.revoke(owner)
    await flux.locked(child)

    await flux.reconciled(parent)
    await flux.ready(parent)
    assert has_lock(await flux.now(child))
    changed = await flux.commit(user, [delivery(name, owner, user, interval="30m")], "own")
    await flux.ready(parent, changed)
    found = await flux.locked(child)
    assert found["spec"]["interval"] == "30m"

    running = await flux.commit(user, [delivery(name, owner, user, interval="30m", suspend=False)], "own")
    said = await flux.failed(parent, "tenantry-lock-guard-")
    assert name in said
    assert has_lock(await flux.now(child))
    await flux.enforce(onDenied="Quarantine")
    try:
        await system.drain()
        await flux.reconciled(parent)
        await flux.ready(parent, running)
        assert has_lock(await flux.now(child))
        await flux.reconciled(parent)
        await flux.ready(parent, running)
        await flux.locked(child)
    finally:
        await flux.enforce()
