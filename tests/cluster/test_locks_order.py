"""Neither the order of events nor their repetition or loss matters to locks (hpo-85, hpo-86)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio
from line import Line
from locking import FUNCTION, SYSTEM, Locks, config_map, locking, marked_for
from people import pointer, token
from times import LEFT_TO_MAKE_WHOLE

from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.local.manifests import spec_of
from tenantry.local.specs import SourceSpec
from tenantry.model.conditions import find_condition
from tenantry.model.kinds import CONFIG_MAP, HELM_RELEASE, SECRET
from tenantry.testing.helm import locked_source, record
from tenantry.testing.settling import normalised, snapshot

pytestmark = LEFT_TO_MAKE_WHOLE

KINDS = (HELM_RELEASE, CONFIG_MAP, SECRET)
PAUSE = f"/metadata/annotations/{pointer('tenantry.dev/lock')}"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def line(knative: Callable[..., Awaitable[Knative]], admin: Api) -> AsyncIterator[Line]:
    """lock-enforcement behind the broker, and the way of its events in our hands, those of locked objects included."""
    running = await knative(locking(failedGraceSeconds=0), functions=[FUNCTION], watch=False)
    await Locks(admin).lockable(CONFIG_MAP)
    locked = spec_of("locked", locked_source(CONFIG_MAP))
    assert isinstance(locked, SourceSpec)
    async with Line(running, admin, [FUNCTION, "release-provisioning"], locked) as made:
        yield made
    assert not running.dead_letters.exists(), running.dead_letters.read_text()


@pytest_asyncio.fixture(loop_scope="session")
async def locks(line: Line, admin: Api) -> AsyncIterator[Locks]:
    """The administrators of one run, whose HelmReleases go when it ends."""
    made = Locks(admin)
    line.lose()
    yield made
    line.lose()
    await made.leave(lambda: line.knative.sweep(FUNCTION))


async def _says(admin: Api, release: str, home: str, revision: int, status: str, **objects: str) -> None:
    """What Helm records of a release: its status, and a ConfigMap for each name with that value."""
    manifest = [config_map(f"{release}-{name}", {"a": value}) for name, value in objects.items()]
    await admin.apply(SECRET, record(release, home, revision, status, *manifest))


async def _before(locks: Locks, run: str) -> None:
    """Six releases of two ConfigMaps, five of which are locked."""
    home = f"n-{run}"
    await locks.namespace(home)
    for release in "abcdef":
        for name in ("one", "two"):
            await locks.admin.create(CONFIG_MAP, marked_for(release, home, config_map(f"{release}-{name}", {"a": "1"})))
        await _says(locks.admin, release, home, 1, "deployed", one="1", two="1")
    for release in "abcde":
        await locks.lock(f"{release}-{run}", release, home)


async def _acts(locks: Locks, run: str) -> None:
    """Objects drift and go; Helm upgrades, fails and uninstalls; people pause, resume, lock and unlock."""
    admin, home, extra = locks.admin, f"n-{run}", ("add", "/data/extra", "x")

    async def drifts(name: str, *more: tuple[str, str, Any], value: str = "x") -> None:
        await locks.edit(CONFIG_MAP, name, home, ("replace", "/data/a", value), *more)

    await drifts("a-one", extra)
    await admin.delete(CONFIG_MAP, "a-two", home)
    await _says(admin, "b", home, 2, "pending-upgrade", one="2", two="2")
    await drifts("b-one", extra)
    await locks.edit(HELM_RELEASE, f"c-{run}", SYSTEM, ("add", "/spec/suspend", True))
    await drifts("c-one")
    await drifts("b-two", value="2")
    await _says(admin, "b", home, 1, "superseded", one="1", two="1")
    await _says(admin, "b", home, 2, "deployed", one="2", two="2")
    await admin.delete(HELM_RELEASE, f"d-{run}", SYSTEM)
    await drifts("d-one")
    await admin.delete(CONFIG_MAP, "d-two", home)
    await locks.edit(CONFIG_MAP, "c-two", home, ("add", PAUSE, "paused"))
    await drifts("c-two")
    await locks.edit(HELM_RELEASE, f"c-{run}", SYSTEM, ("remove", "/spec/suspend", None))
    await _says(admin, "e", home, 2, "failed", one="9", two="9")
    await drifts("e-one", value="9")
    await locks.lock(f"f-{run}", "f", home)
    await drifts("f-one")
    await locks.lock(f"second-{run}", "a", home)
    await drifts("a-one", value="y")


async def _end(admin: Api, run: str) -> dict[str, Any]:
    return await normalised(admin, KINDS, containing=run)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def reference(line: Line, admin: Api) -> AsyncIterator[dict[str, Any]]:
    """Where the changes end when every event is delivered at once and in order."""
    run, locks = token(), Locks(admin)
    await _before(locks, run)
    await line.settle()
    await _acts(locks, run)
    await line.settle()
    yield await _end(admin, run)
    await locks.leave(lambda: line.knative.sweep(FUNCTION))


def test_the_reference_is_as_declared(reference: dict[str, Any]) -> None:
    """The end that the others are compared with is the right one."""
    data = {key.partition("/")[2]: each["data"] for key, each in reference.items() if key.startswith("ConfigMap n-RUN/")}
    locked = {
        key.partition("/")[2]: (find_condition({"status": each}, "Locked") or {}).get("reason")
        for key, each in reference.items()
        if key.startswith("HelmRelease ")
    }

    assert {name: found for name, found in data.items() if name != "kube-root-ca.crt"} == {
        "a-one": {"a": "1", "extra": "x"},
        "a-two": {"a": "1"},
        "b-one": {"a": "2", "extra": "x"},
        "b-two": {"a": "2"},
        "c-one": {"a": "1"},
        "c-two": {"a": "x"},
        "d-one": {"a": "x"},
        "e-one": {"a": "1"},
        "e-two": {"a": "1"},
        "f-one": {"a": "1"},
        "f-two": {"a": "1"},
    }
    assert locked == {**{f"{name}-RUN": "Enforced" for name in "abcef"}, "second-RUN": "Conflict"}


@pytest.mark.check("hpo-85")
@pytest.mark.parametrize(
    ("order", "together"), [("reversed", True), ("every event twice", True), ("shuffled 1", True), ("reversed", False)]
)
async def test_order_and_repetition_do_not_matter(
    line: Line, locks: Locks, admin: Api, reference: dict[str, Any], order: str, together: bool
) -> None:
    """The events of many changes, held back and delivered in another order or twice, lead to the same objects."""
    run = token()
    await _before(locks, run)
    await line.settle()
    line.hold(run)
    await _acts(locks, run)
    await line.release_as(order, together=together)
    assert await _end(admin, run) == reference


@pytest.mark.check("hpo-86")
@pytest.mark.parametrize(("share", "seed"), [(0.1, 1), (0.1, 2), (1.0, 3)])
async def test_lost_events_are_made_up_by_one_sweep(
    line: Line, locks: Locks, admin: Api, reference: dict[str, Any], share: float, seed: int
) -> None:
    """With a tenth or all of the events lost, one sweep brings the same end, and a second writes nothing."""
    run = token()
    await _before(locks, run)
    await line.settle()
    with line.losing(run, share, seed):
        await _acts(locks, run)
        await line.settle()
    await line.knative.sweep(FUNCTION)

    assert await _end(admin, run) == reference
    before = await snapshot(admin, KINDS, containing=run)
    await line.knative.sweep(FUNCTION)
    assert await snapshot(admin, KINDS, containing=run) == before
