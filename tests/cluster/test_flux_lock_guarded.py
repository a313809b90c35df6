"""Access locks with the admission policies in force: who may touch them, how they end, what admission puts on (2.2)."""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import pytest_asyncio
from admitting import Admitting
from flawless import Calm
from flux_crds import install_flux
from flux_guarding import GuardedLocks
from flux_locking import (
    ACCESS,
    FLUX_FINALIZER,
    KUSTOMIZATION,
    LOCKS,
    has_lock,
    has_no_lock,
    named_elsewhere,
    source_ref,
)
from fluxing import SOURCES
from people import token
from times import LEFT_TO_MAKE_WHOLE, POLICY_S

from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.model.conditions import find_condition
from tenantry.model.flux.names import ACCESS_DENIED, LOCK_FINALIZER, LOCKED, SUSPENDED_BY_LOCK
from tenantry.model.kinds import (
    Object,
    annotations_of,
    finalizers_of,
)
from tenantry.testing import eventually

pytestmark = LEFT_TO_MAKE_WHOLE

RECONCILE = "source.extensions.fluxcd.io/reconcile"
MARKS = {LOCKED: ACCESS_DENIED, SUSPENDED_BY_LOCK: "true"}


@pytest.fixture(scope="module")
def flux(admin: Api, admitting: Admitting) -> GuardedLocks:
    """Owners of sources, tenants, and the platform."""
    return GuardedLocks(admin, admitting)


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def system(flawlessly: Callable[..., Awaitable[Knative]], admin: Api, flux: GuardedLocks) -> Knative:
    """Both functions with Flux' kinds and the policies of a profile for several tenants, until the module ends."""
    await install_flux(admin)
    running = await flawlessly({}, functions=[SOURCES, LOCKS])
    await flux.enforce()
    await running.drain()
    return running


@contextmanager
def stopped(system: Knative) -> Iterator[None]:
    """While the Service that locks stands still."""
    pid = system.functions[ACCESS].pid
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.check("f-32")
async def test_a_tenant_cannot_take_a_lock_off(flux: GuardedLocks) -> None:
    """Neither the suspension, nor a mark, nor any finalizer."""
    owner, user, _ = await flux.shared()
    tenant = await flux.tenant(user)
    made = await flux.kustomization(user, owner, finalizers=[FLUX_FINALIZER])
    await flux.revoke(owner)
    await flux.locked(made)
    annotations = [{mark: value} for mark in MARKS for value in (None, "other")]
    finalizers = [[LOCK_FINALIZER], [FLUX_FINALIZER], []]
    changes: list[Object] = [
        {"spec": {"suspend": False}},
        {"spec": {"suspend": None}},
        *({"metadata": {"annotations": each}} for each in annotations),
        *({"metadata": {"finalizers": each}} for each in finalizers),
    ]
    for change in changes:
        answer = await flux.merge(made, change, user=tenant, dry=False)
        assert answer.status == 403, (change, answer)
        assert "tenantry-lock-guard-" in answer.message
    assert has_lock(await flux.now(made))


@pytest.mark.check("f-33")
async def test_a_locked_object_ends_after_its_lock(system: Knative, flux: GuardedLocks) -> None:
    """Its controller keeps its finalizer until the lock has come off by itself, and then lets go."""
    owner, user, _ = await flux.shared()
    controller = await flux.controller()
    made = await flux.kustomization(user, owner, finalizers=[FLUX_FINALIZER])
    await flux.revoke(owner)
    await flux.locked(made)
    letting_go = {"metadata": {"finalizers": [LOCK_FINALIZER]}}
    assert (await flux.merge(made, letting_go, user=controller)).status == 403
    await system.drain()
    with stopped(system):
        await flux.admin.delete(KUSTOMIZATION, made["metadata"]["name"], user)
        answer = await flux.merge(made, letting_go, user=controller, dry=False)
        assert answer.status == 403, answer
        assert "tenantry-lock-guard-" in answer.message
        assert annotations_of(await flux.now(made))[LOCKED] == ACCESS_DENIED
    found = await flux.unlocked(made)
    assert "suspend" not in found["spec"]
    assert list(finalizers_of(found)) == [FLUX_FINALIZER]
    assert (await flux.merge(made, {"metadata": {"finalizers": []}}, user=controller, dry=False)).status == 200
    await flux.away(KUSTOMIZATION, made["metadata"]["name"], user)


@pytest.mark.check("f-34")
async def test_what_is_added_to_a_denied_object_is_admitted(system: Knative, flux: GuardedLocks) -> None:
    """A finalizer or an annotation, locked or not; one that is removed waits for the unlock, where there is a lock."""
    owner, user, _ = await flux.shared()
    tenant = await flux.tenant(user)
    made = await flux.kustomization(user, owner, finalizers=[FLUX_FINALIZER])
    added: list[Object] = [
        {"metadata": {"finalizers": [FLUX_FINALIZER, "example.com/f"]}},
        {"metadata": {"annotations": {"example.com/a": "b"}}},
    ]
    removed = {"metadata": {"finalizers": []}}
    await system.drain()
    with stopped(system):
        await flux.revoke(owner)
        await flux.grants(owner)
        await flux.denied(user, named_elsewhere("Kustomization", owner), "Kustomization", tenant)
        assert has_no_lock(await flux.now(made))
        for change in (*added, removed):
            assert (await flux.merge(made, change, user=tenant)).status == 200
    await flux.locked(made)
    for change in added:
        live = await flux.now(made)
        kept = {"metadata": {**change["metadata"]}}
        if "finalizers" in kept["metadata"]:
            kept["metadata"]["finalizers"] = [*finalizers_of(live), "example.com/f"]
        assert (await flux.merge(made, kept, user=tenant)).status == 200
    assert (await flux.merge(made, removed, user=tenant)).status == 403


@pytest.mark.check("f-99")
async def test_a_denied_object_may_be_edited(system: Knative, flux: GuardedLocks) -> None:
    """Before and after the lock: another interval or path, the same reference; another denied one not; a local one unlocks."""
    owner, user, _ = await flux.shared()
    tenant = await flux.tenant(user)
    made = await flux.kustomization(user, owner)
    await system.drain()
    other, paths = {"spec": {"sourceRef": source_ref(owner, "other")}}, list[Object]()

    async def judged() -> None:
        another: list[Object] = [{"interval": f"{len(paths) + 5}m"}, {"path": f"./{token()}"}, {"sourceRef": source_ref(owner)}]
        paths.append(another[1])
        for edit in ({"spec": each} for each in another):
            answer = await flux.merge(made, edit, user=tenant, dry=False)
            assert answer.status == 200, answer
        assert (await flux.merge(made, other, user=tenant)).status == 403

    with stopped(system):
        await flux.revoke(owner)
        await flux.grants(owner)

        async def refused() -> bool:
            return (await flux.merge(made, other, user=tenant)).status == 403

        await eventually(refused, within=POLICY_S, what="denied")
        await judged()
    await flux.locked(made)
    await judged()
    answer = await flux.merge(made, {"spec": {"sourceRef": {**source_ref(), "namespace": None}}}, user=tenant, dry=False)
    assert answer.status == 200, answer
    await flux.unlocked(made)


@pytest.mark.check("f-113")
async def test_an_artifact_generator_is_denied_locked_and_freed(flux: GuardedLocks) -> None:
    """With a local and a foreign source, by the annotation of its controller."""
    labels = {"team": token()}
    owner, user = await flux.home(), await flux.home(**labels)
    tenant = await flux.tenant(user)
    await flux.source(owner)
    spec = named_elsewhere("ArtifactGenerator", owner)
    assert (await flux.make(user, spec, "ArtifactGenerator", user=tenant)).status == 403
    await flux.grant(owner, labels, name="g")
    made = await flux.admitted(user, spec, "ArtifactGenerator", tenant)
    await flux.revoke(owner)
    found = await flux.locked(made)
    assert annotations_of(found)[RECONCILE] == "disabled"
    assert (find_condition(found, "Ready") or {})["status"] == "False"
    await flux.grant(owner, labels)
    assert RECONCILE not in annotations_of(await flux.unlocked(made))


async def forged(flux: GuardedLocks, user: str, tenant: str) -> None:
    """Our marks on an object with an allowed reference are taken off."""
    made = (await flux.make(user, named_elsewhere("Kustomization", ""), user=tenant)).body
    change = {"metadata": {"annotations": MARKS, "finalizers": [LOCK_FINALIZER]}}
    answer = await flux.merge(made, change, user=tenant, dry=False)
    assert answer.status == 200, answer
    await flux.unlocked(made)


@pytest.mark.check("f-107")
@pytest.mark.check("f-106")
async def test_marks_that_a_tenant_writes_and_those_of_quarantine(flux: GuardedLocks, system: Knative, calm: Calm) -> None:
    """On an allowed reference they are taken off; on a denied one they are refused, or quarantined until it is granted."""
    labels = {"team": token()}
    owner, user = await flux.home(), await flux.home(**labels)
    tenant = await flux.tenant(user)
    await flux.source(owner)
    spec = named_elsewhere("Kustomization", owner)
    marks: dict[str, Any] = {"annotations": dict(MARKS), "finalizers": [LOCK_FINALIZER]}
    await forged(flux, user, tenant)
    stopped_spec = {**spec, "suspend": True}
    assert (await flux.make(user, stopped_spec, user=tenant, **marks)).status == 403
    await flux.enforce(onDenied="Quarantine")
    try:
        await forged(flux, user, tenant)
        marked = await flux.make(user, stopped_spec, user=tenant, **marks)
        assert marked.status == 201, marked
        plain, by_author = await flux.make(user, spec, user=tenant), await flux.make(user, stopped_spec, user=tenant)
        made = {"plain": plain.body, "by author": by_author.body}
        assert all(LOCKED in annotations_of(each) for each in (*made.values(), marked.body))
        await flux.locked(made["plain"])
        await flux.locked(made["by author"], by_lock=False)
        await calm(system)
        await flux.grant(owner, labels)
        for name, each in made.items():
            found = await flux.unlocked(each)
            assert found["spec"].get("suspend") == (True if name == "by author" else None)
        await flux.unlocked(marked.body)
    finally:
        await flux.enforce()
