"""Access locks: what loses its grant is stopped, says so, and goes on when it has it again (2.2)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
import pytest_asyncio
from flawless import Calm
from flux_crds import install_flux
from flux_locking import ACCESS, KUSTOMIZATION, LOCKS, REQUESTED_AT, FluxLocks, has_lock, source_ref
from fluxing import SOURCES, served
from people import look, post
from times import LEFT_TO_MAKE_WHOLE

from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.model.flux.names import ACCESS_DENIED, ACCESS_INDEX, DEFAULT
from tenantry.model.kinds import annotations_of, finalizers_of

pytestmark = LEFT_TO_MAKE_WHOLE

GIT = served("GitRepository")


@pytest.fixture(scope="module")
def flux(admin: Api) -> FluxLocks:
    """Owners of sources, teams that use them, and the platform."""
    return FluxLocks(admin)


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def system(flawlessly: Callable[..., Awaitable[Knative]], admin: Api, flux: FluxLocks) -> Knative:
    """Both functions with Flux' kinds, under a profile for several tenants, until the module ends."""
    await install_flux(admin)
    running = await flawlessly({}, functions=[SOURCES, LOCKS])
    await flux.profile()
    await running.drain()
    return running


@pytest.mark.check("f-27")
@pytest.mark.check("f-28")
async def test_what_loses_its_grant_is_locked_once(system: Knative, flux: FluxLocks, calm: Calm) -> None:
    """Suspended, with conditions of its generation and one Warning; the same event again, and sweeps, change nothing."""
    owner, user, _ = await flux.shared()
    made = await flux.kustomization(user, owner)
    await calm(system)
    assert not annotations_of(await flux.now(made))
    await flux.revoke(owner)
    await flux.locked(made)
    (event,) = await flux.events(made, ACCESS_DENIED)
    assert event["type"] == "Warning"
    assert f"spec.sourceRef: GitRepository/{owner}/app1 is not shared with namespace {user}" in event["message"]
    await calm(system)
    before = await flux.now(made)
    for _ in range(5):
        status, text = await post(system.functions[ACCESS].url, *look(KUSTOMIZATION, made["metadata"]["name"], user))
        assert status == 204, text
    await calm(system)
    await calm(system)
    assert await flux.now(made) == before
    assert len(await flux.events(made, ACCESS_DENIED)) == 1


@pytest.mark.check("f-29")
async def test_what_has_its_grant_again_goes_on(system: Knative, flux: FluxLocks, calm: Calm) -> None:
    """No mark, condition or suspension is left, a run is asked for, and one Normal Event tells it."""
    owner, user, labels = await flux.shared()
    made = await flux.kustomization(user, owner)
    await flux.revoke(owner)
    await flux.locked(made)
    await flux.grant(owner, labels)
    found = await flux.unlocked(made)
    assert "suspend" not in found["spec"]
    assert annotations_of(found).keys() == {REQUESTED_AT}
    assert not finalizers_of(found)
    assert not (found.get("status") or {}).get("conditions")
    await calm(system)
    (event,) = await flux.events(made, "AccessGranted")
    assert event["type"] == "Normal"
    assert len(await flux.events(made, ACCESS_DENIED)) == 1


@pytest.mark.check("f-30")
async def test_a_suspension_of_its_user_stays(flux: FluxLocks) -> None:
    """Through the lock and after it."""
    owner, user, labels = await flux.shared()
    made = await flux.kustomization(user, owner, spec={"suspend": True})
    await flux.revoke(owner)
    await flux.locked(made, by_lock=False)
    await flux.grant(owner, labels)
    assert (await flux.unlocked(made))["spec"]["suspend"] is True


@pytest.mark.check("f-31")
async def test_a_label_that_goes_takes_its_grants_along(flux: FluxLocks) -> None:
    """Every reference that relies on it is locked, and unlocked when it is there again; the index is not written."""
    owner, user, labels = await flux.shared()
    several = [await flux.kustomization(user, owner) for _ in range(3)]
    release = {"chart": {"spec": {"chart": "x", "sourceRef": source_ref(owner)}}}
    several.append(await flux.consumer(user, "HelmRelease", spec={"interval": "1m", **release}))
    local = await flux.consumer(user)
    index = await flux.get(ACCESS_INDEX, DEFAULT)
    await flux.label(user, {"team": None})
    for each in several:
        await flux.locked(each)
    await flux.label(user, labels)
    for each in several:
        await flux.unlocked(each)
    assert await flux.get(ACCESS_INDEX, DEFAULT) == index
    assert await flux.now(local) == local


@pytest.mark.check("f-35")
async def test_a_source_that_is_gone_is_as_one_that_is_not_shared(flux: FluxLocks) -> None:
    """Its consumer is locked, with the same words; made again with its grant it unlocks."""
    owner, user, _ = await flux.shared()
    made = await flux.kustomization(user, owner)
    nowhere = await flux.kustomization(user, owner, spec={"sourceRef": source_ref(owner, "nope")})
    await flux.admin.delete(GIT, "app1", owner)
    texts = []
    for each, name in ((made, "app1"), (nowhere, "nope")):
        await flux.locked(each)
        (event,) = await flux.events(each, ACCESS_DENIED)
        texts.append(event["message"].replace(f"/{name} ", "/it "))
    assert texts[0] == texts[1]
    await flux.source(owner)
    await flux.unlocked(made)
    assert has_lock(await flux.now(nowhere))


@pytest.mark.check("f-96")
async def test_what_a_run_says_later_is_corrected(system: Knative, flux: FluxLocks, calm: Calm) -> None:
    """Ready says AccessDenied again, by one write for each of theirs, and without another Event."""
    owner, user, _ = await flux.shared()
    made = await flux.kustomization(user, owner)
    await flux.revoke(owner)
    await flux.locked(made)
    await calm(system)
    version = (await flux.now(made))["metadata"]["resourceVersion"]
    times = 3
    for _ in range(times):
        await flux.say(
            made,
            {"type": "Ready", "status": "False", "reason": "HealthCheckFailed"},
            {"type": "Reconciling", "status": "True", "reason": "Progressing"},
        )
        await flux.locked(made)
        await calm(system)
    assert len(await flux.events(made, ACCESS_DENIED)) == 1
    seen = 0
    async for _, found in flux.admin.watch(KUSTOMIZATION, user, resource_version=version, timeout_s=1.0):
        seen += found.get("metadata", {}).get("name") == made["metadata"]["name"] and "spec" in found
    assert seen == 2 * times


async def test_who_comes_while_his_grant_comes_and_goes_is_locked(flux: FluxLocks) -> None:
    """An index that says what it said before concerns who has been looked at with the one between."""
    for _ in range(20):
        owner, user, _ = await flux.shared()
        made = await flux.kustomization(user, owner)
        await flux.revoke(owner)
        await flux.locked(made)


async def test_both_functions_at_once_end_in_the_same(flux: FluxLocks) -> None:
    """Grants that come and go faster than locks: the last one counts."""
    owner, user, labels = await flux.shared()
    several = [await flux.kustomization(user, owner) for _ in range(10)]
    for _ in range(3):
        await flux.revoke(owner)
        await asyncio.sleep(0)
        await flux.grant(owner, labels, name="g")
    await flux.revoke(owner)
    await asyncio.gather(*map(flux.locked, several))
