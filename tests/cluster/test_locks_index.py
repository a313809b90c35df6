"""Who is led to a HelmRelease: an event of what it locks finds it from its first look on, whatever else is read meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import pytest_asyncio
from locking import FUNCTION, SYSTEM, Locks, condition, config_map, locking, marked_for, token
from people import swept, tell

from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.model.kinds import CONFIG_MAP, HELM_RELEASE, SECRET
from tenantry.testing import faults
from tenantry.testing.helm import record
from tenantry.testing.proxy import FaultProxy


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(proxy: FaultProxy, flawlessly: Callable[..., Awaitable[Knative]]) -> Knative:
    """lock-enforcement, which hears only what a test sends it."""
    return await flawlessly(locking(), functions=[FUNCTION], watch=False, through=proxy)


@pytest_asyncio.fixture(loop_scope="session")
async def locks(admin: Api, system: Knative) -> AsyncIterator[Locks]:
    made = Locks(admin)
    await made.lockable(CONFIG_MAP)
    yield made

    async def sweep() -> None:
        assert (await swept(system, FUNCTION))[0] == 204

    await made.leave(sweep)


async def one_claims_what_is_the_others(system: Knative, locks: Locks) -> str:
    """Two releases whose charts have the same object, which is b's by Helm's marks, and a HelmRelease for a; their namespace."""
    home = f"n-{token()}"
    await locks.namespace(home)
    shared = config_map("shared", {"a": "1"})
    await locks.admin.create(CONFIG_MAP, marked_for("b", home, shared))
    for release in "ab":
        await locks.admin.apply(SECRET, record(release, home, 1, "deployed", shared))
    await locks.lock(f"a-{home}", "a", home)
    await tell(system, FUNCTION, HELM_RELEASE, f"a-{home}", SYSTEM)
    await locks.status(f"a-{home}", lambda status: condition(status, "Complete").get("reason") == "ForeignObject")
    return home


async def drift_is_put_right(system: Knative, locks: Locks, home: str) -> None:
    """What somebody changes of the object is put back by the event that tells of it."""
    await locks.edit(CONFIG_MAP, "shared", home, ("replace", "/data/a", "drift"))
    await tell(system, FUNCTION, CONFIG_MAP, "shared", home)
    found = await locks.admin.get(CONFIG_MAP, "shared", home)
    assert found is not None
    assert found["data"] == {"a": "1"}


@pytest.mark.check("hpo-81")
async def test_a_helm_release_is_led_to_from_its_first_look_on(system: Knative, locks: Locks, proxy: FaultProxy) -> None:
    """Also while what is to be watched for it is not known yet, and where another HelmRelease has claimed the object before."""
    home = await one_claims_what_is_the_others(system, locks)
    watched = faults.Gate(where=faults.on("apiserversources", verb="get"))
    proxy.faults.append(watched)
    try:
        await locks.lock(f"b-{home}", "b", home)
        told = asyncio.create_task(tell(system, FUNCTION, HELM_RELEASE, f"b-{home}", SYSTEM))
        await watched.next()
        await locks.locked(f"b-{home}")
        await drift_is_put_right(system, locks, home)
        assert not told.done()
    finally:
        watched.disarm()
    await told


@pytest.mark.check("hpo-81")
async def test_a_slow_sweep_forgets_no_helm_release(system: Knative, locks: Locks, proxy: FaultProxy) -> None:
    """A sweep that began before a HelmRelease was made, and ends after, has not seen it; events of its objects find it still."""
    home = await one_claims_what_is_the_others(system, locks)
    helm_releases = faults.Gate(where=faults.on("helmreleases", verb="list"))
    records = faults.Gate(where=faults.on("secrets", verb="list"), times=1)
    proxy.faults += [helm_releases, records]
    try:
        sweep = asyncio.create_task(swept(system, FUNCTION))
        seen, _ = await helm_releases.next(), await records.next()
        helm_releases.disarm()
        await seen.answered.wait()

        await locks.lock(f"b-{home}", "b", home)
        await tell(system, FUNCTION, HELM_RELEASE, f"b-{home}", SYSTEM)
        assert not sweep.done()
    finally:
        records.disarm()
    assert (await sweep)[0] == 204
    await drift_is_put_right(system, locks, home)
