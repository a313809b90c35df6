"""A cluster whose policies are there before the first function runs, and what the functions find (3.6)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest
import pytest_asyncio
import yaml
from commanding import commanding
from flawless import Calm
from flux_guarding import EXPORTED
from flux_locking import KUSTOMIZATION, LOCKS, FluxLocks
from flux_policing import APP1, TEAM1, TEAM2, Policing, kustomization
from fluxing import SOURCES, TWO
from times import LEFT_TO_MAKE_WHOLE

from tenantry.api import Api
from tenantry.local.control_plane import ControlPlane
from tenantry.local.knative import Knative
from tenantry.model.flux.access import AccessEntries
from tenantry.model.flux.names import ACCESS_INDEX, DEFAULT, LOCKED
from tenantry.model.kinds import Kind, Object, annotations_of
from tenantry.testing import eventually

pytestmark = [LEFT_TO_MAKE_WHOLE, pytest.mark.no_policies]
Running = Callable[..., AbstractAsyncContextManager[Knative]]
OTHER = "GitRepository/dev-team1/other"


@pytest.fixture
def flux(admin: Api) -> FluxLocks:
    """Owners of sources, and the platform."""
    return FluxLocks(admin)


@pytest_asyncio.fixture(loop_scope="session")
async def consumers(policing: Policing, flux: FluxLocks) -> tuple[Object, Object]:
    """Of a source that is shared and of one that is not, made before anything was enforced."""
    for name in ("app1", "other"):
        await flux.source("dev-team1", name)
    await flux.grant("dev-team1", TWO)
    made = [await policing.made(kustomization("dev-team2", source)) for source in (APP1, OTHER)]
    return made[0], made[1]


async def history(admin: Api, kind: Kind, since: str, says: Callable[[Object], bool]) -> list[tuple[int, str]]:
    """The writes since a resourceVersion after which an object says something, with its name."""
    found = []
    async for _, each in admin.watch(kind, resource_version=since, timeout_s=1.0):
        if "spec" in each and says(each):
            found.append((int(each["metadata"]["resourceVersion"]), str(each["metadata"]["name"])))
    return found


def is_marked(consumer: Object) -> bool:
    """Whether a lock is on it."""
    return LOCKED in annotations_of(consumer)


@pytest.mark.check("f-73")
async def test_policies_count_before_the_first_function_runs(
    policing: Policing,
    flux: FluxLocks,
    admin: Api,
    running: Running,
    consumers: tuple[Object, Object],
    control_plane: ControlPlane,
    calm: Calm,
) -> None:
    """Local references are admitted, others refused by 403; functions find the grants before they lock; the manifests applied
    again take none away."""
    granted, denied = consumers
    await policing.enforce()
    await policing.admitted(kustomization("dev-team1", "GitRepository//app1", "app1"), user=TEAM1)
    for source in (APP1, OTHER):
        await policing.denied(kustomization("dev-team2", source, "app1"), source, user=TEAM2)
    shipped = await flux.get(ACCESS_INDEX, DEFAULT)
    assert shipped["spec"] == {}

    async with running({}, functions=[LOCKS]) as system:
        await calm(system)
        assert [await flux.now(each) for each in consumers] == [granted, denied]
        assert not await flux.violations()
    since = (await admin.list(KUSTOMIZATION)).resource_version
    async with running({}, functions=[SOURCES, LOCKS]) as system:
        await flux.grants("dev-team1", app1="team=two")
        await policing.until(lambda: policing.create(kustomization("dev-team2", APP1), user=TEAM2), 201)
        await flux.locked(denied)
        await calm(system)
        assert await flux.now(granted) == granted
        completed = await history(admin, ACCESS_INDEX, since, lambda each: AccessEntries.of(each).complete)
        locked = await history(admin, KUSTOMIZATION, since, is_marked)
        assert {name for _, name in locked} == {denied["metadata"]["name"]}
        assert min(completed) < min(locked)

        before = await flux.get(ACCESS_INDEX, DEFAULT)
        run = commanding(control_plane)
        code, output, errors = await run("profile", "export", "--security-profile=multi-tenant", "--part=cluster")
        assert (code, errors) == (0, "")
        exported = list(yaml.safe_load_all(output))
        assert ACCESS_INDEX.kind in {each["kind"] for each in exported}
        for each in exported:
            await admin.apply(EXPORTED[each["kind"]], each, manager="kubectl")
        await calm(system)
        after = await flux.get(ACCESS_INDEX, DEFAULT)
        assert (after["spec"], after["metadata"]["generation"]) == (before["spec"], before["metadata"]["generation"])

        async def still() -> bool:
            return (await policing.create(kustomization("dev-team2", APP1), user=TEAM2)).status == 201

        assert await eventually(still, within=flux.eventually_s)
        assert is_marked(await flux.now(denied))
        assert await flux.now(granted) == granted
