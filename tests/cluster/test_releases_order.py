"""Neither the order of events nor their repetition or loss matters to releases (hpo-85, hpo-86)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio
from line import Line
from people import LABEL, registration, token
from releases import CLEANUP, CONFIG, FUNCTIONS, SYSTEM, Owners
from times import LEFT_TO_MAKE_WHOLE

from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.local.schedule import Schedule
from tenantry.model.kinds import HELM_CHART, HELM_RELEASE, NAMESPACE, PROJECT_HELM_CHART
from tenantry.testing import eventually
from tenantry.testing.settling import normalised, snapshot

pytestmark = LEFT_TO_MAKE_WHOLE

KINDS = (NAMESPACE, PROJECT_HELM_CHART, HELM_CHART, HELM_RELEASE)
PERIOD_S = 60
"""The shortest period that a schedule can have."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def line(knative: Callable[..., Awaitable[Knative]], admin: Api) -> AsyncIterator[Line]:
    """Both functions behind the broker, and the way of their events in our hands."""
    async with Line(await knative(CONFIG, functions=FUNCTIONS, watch=False), admin, FUNCTIONS) as made:
        yield made


async def _before(owners: Owners, run: str) -> None:
    """Three projects with two namespaces each, and four charts that are provisioned."""
    for project in "abc":
        for number in (1, 2):
            await owners.namespace(f"{project}{number}-{run}", f"p-{run}-{project}")
    for project in "abc":
        await owners.registered(f"p-{run}-{project}")
    for name, project in (("one", "a"), ("two", "a"), ("three", "b"), ("four", "c")):
        await owners.ask(f"{name}-{run}", f"p-{run}-{project}")


async def _acts(owners: Owners, run: str) -> None:
    """Charts are asked for, changed, taken back and clash; namespaces move; what was made is damaged."""

    def home(project: str) -> str:
        return registration(f"p-{run}-{project}")

    await owners.ask(f"five-{run}", f"p-{run}-b", values={"a": 1})
    await owners.ask(f"one-{run}", f"p-{run}-b")  # younger, and later by name: it clashes
    await owners.label(f"a2-{run}", {LABEL: f"p-{run}-b"})
    await owners.edit(PROJECT_HELM_CHART, f"two-{run}", home("a"), ("add", "/spec/values", {"data": {"x": "y"}}))
    await owners.delete(HELM_CHART, f"two-{run}-dummy", SYSTEM)
    await owners.edit(HELM_RELEASE, f"one-{run}-dummy", SYSTEM, ("replace", "/spec/release/name", "evil"))
    await owners.label(f"one-{run}-dummy", {LABEL: None, "team": "x"})
    await owners.delete(PROJECT_HELM_CHART, f"three-{run}", home("b"))
    await owners.label(f"c1-{run}", {LABEL: None})
    await owners.label(f"c2-{run}", {LABEL: f"p-{run}-a"})
    await owners.edit(PROJECT_HELM_CHART, f"five-{run}", home("b"), ("add", "/metadata/labels", {CLEANUP: "true"}))
    await owners.label(f"a2-{run}", {LABEL: "p-denied"})
    await owners.edit(PROJECT_HELM_CHART, f"five-{run}", home("b"), ("remove", "/metadata/labels", None))


async def _end(admin: Api, run: str) -> dict[str, Any]:
    return await normalised(admin, KINDS, containing=run)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def reference(line: Line, admin: Api) -> dict[str, Any]:
    """Where the workload ends when every event is delivered at once and in order."""
    run, owners = token(), Owners(admin)
    await _before(owners, run)
    await line.settle()
    await _acts(owners, run)
    await line.settle()
    return await _end(admin, run)


def test_the_reference_is_as_declared(reference: dict[str, Any]) -> None:
    """The end that the others are compared with is the right one."""
    made = {key.rpartition("/")[2] for key in reference if key.startswith("HelmChart ")}
    stalled = {
        f"{each['metadata']['namespace'][-1]}/{each['metadata']['name']}": condition["reason"]
        for key, each in reference.items()
        if key.startswith("ProjectHelmChart ")
        for condition in each["conditions"]
        if condition["type"] == "Stalled" and condition["status"] == "True"
    }

    assert made == {f"{name}-RUN-dummy" for name in ("one", "two", "five")}
    assert stalled == {"b/one-RUN": "ReleaseNameTaken", "c/four-RUN": "NoTargets"}


@pytest.mark.check("hpo-85")
@pytest.mark.parametrize(
    ("order", "together"),
    [("reversed", True), ("twice, the second time reversed", True), ("shuffled 1", True), ("reversed", False)],
)
async def test_order_and_repetition_do_not_matter(
    line: Line, owners: Owners, admin: Api, reference: dict[str, Any], order: str, together: bool
) -> None:
    """The events of many changes, held back and delivered in another order or twice, lead to the same objects."""
    run = token()
    line.lose()
    await _before(owners, run)
    await line.settle()
    line.hold(run)
    await _acts(owners, run)
    await line.release_as(order, together=together)
    assert await _end(admin, run) == reference


async def _with_losses(line: Line, owners: Owners, run: str, share: float, seed: int) -> None:
    """The changes, with a share of their events lost."""
    line.lose()
    await _before(owners, run)
    await line.settle()
    with line.losing(run, share, seed):
        await _acts(owners, run)
        await line.settle()


@pytest.mark.check("hpo-86")
@pytest.mark.parametrize(("share", "seed"), [(0.1, 1), (0.1, 2), (1.0, 3)])
async def test_lost_events_are_made_up_by_one_sweep(
    line: Line, owners: Owners, admin: Api, reference: dict[str, Any], share: float, seed: int
) -> None:
    """With a tenth or all of the events lost, one sweep of each function brings the same end, and a second writes nothing."""
    run = token()
    await _with_losses(line, owners, run, share, seed)
    for function in FUNCTIONS:
        await line.knative.sweep(function)

    assert await _end(admin, run) == reference
    before = await snapshot(admin, KINDS, containing=run)
    line.lose()
    for function in FUNCTIONS:
        await line.knative.sweep(function)
    await line.settle()
    assert await snapshot(admin, KINDS, containing=run) == before


@pytest.mark.check("hpo-86")
async def test_lost_events_are_made_up_within_one_period(
    line: Line, owners: Owners, admin: Api, reference: dict[str, Any]
) -> None:
    """Not only a tenth but all of the events lost: nobody need ask for anything, the schedule's next tick brings the same end."""
    run = token()
    await _with_losses(line, owners, run, 1.0, 1)
    assert await _end(admin, run) != reference
    each_minute = [ping.model_copy(update={"schedule": "* * * * *"}) for ping in line.knative.schedule.pings.values()]
    async with Schedule(each_minute, lambda _: line.knative.broker.accept):
        await eventually(
            lambda: _end(admin, run), lambda found: found == reference, within=PERIOD_S + 10, what="the end of the reference"
        )
    line.lose()
