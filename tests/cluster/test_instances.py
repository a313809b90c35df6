"""Several processes of each function behind one address, as a Knative Service has instances: the end is the same."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import psutil
import pytest
from flawless import Calm, flawless
from people import LABEL, PROJECT_ID
from releases import CONFIG, FUNCTIONS, Owners, cattle_of
from times import LEFT_TO_MAKE_WHOLE, SIDE_BY_SIDE

from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.model.kinds import NAMESPACE, PROJECT_HELM_CHART, labels_of
from tenantry.testing.settling import snapshot

Running = Callable[..., AbstractAsyncContextManager[Knative]]
INSTANCES = 4
SLOW_S = 30.0 * SIDE_BY_SIDE
PROJECTS = 6

MADE = (NAMESPACE, PROJECT_HELM_CHART)


@LEFT_TO_MAKE_WHOLE
@pytest.mark.timeout(300)
async def test_the_end_is_the_same_whoever_hears_of_it(running: Running, calm: Calm, admin: Api) -> None:
    """Projects with charts come at once, namespaces move twice: each is where it was put last, and nobody has more to do."""
    owners = Owners(admin, SLOW_S)  # a dozen processes start beside one another
    async with running(CONFIG, functions=FUNCTIONS, instances=INSTANCES) as knative, flawless(knative):
        projects = await asyncio.gather(*(owners.project() for _ in range(PROJECTS)))
        await asyncio.gather(*(owners.ask(f"demo-{each}", each) for each in projects))
        moved = [f"a2-{each}" for each in projects]
        await asyncio.gather(*(owners.namespace(name, each) for name, each in zip(moved, projects, strict=True)))
        for turn in (1, 2):
            goals = [*projects[turn:], *projects[:turn]]
            await asyncio.gather(*(owners.label(name, {LABEL: goal}) for name, goal in zip(moved, goals, strict=True)))
        for name, goal in zip(moved, goals, strict=True):
            wanted = [*sorted([f"a1-{goal}", name]), f"demo-{goal}-dummy"]
            await owners.provisioned(f"demo-{goal}-dummy", holds=_has(wanted))
        await calm(knative)
        assert [labels_of(await owners.get(NAMESPACE, name)).get(PROJECT_ID) for name in moved] == goals
        assert len(_served_by(knative)) > 1
        before = await snapshot(admin, MADE)
    async with running(CONFIG, functions=FUNCTIONS) as alone:  # who knows nothing of all that finds nothing to do
        await calm(alone)
    assert await snapshot(admin, MADE) == before


def _has(wanted: list[str]) -> Callable[[Any], bool]:
    return lambda found: cattle_of(found)["projectNamespaces"] == wanted


def _served_by(knative: Knative) -> list[int]:
    """The processes of one function that the broker has a connection to."""
    first = knative.functions["namespace-registration"]
    every = [first, *(each for each in knative.beside if each.port == first.port)]
    assert len(every) == INSTANCES
    return [
        each.pid
        for each in every
        if any(
            found.laddr.port == each.port and found.status == psutil.CONN_ESTABLISHED
            for found in psutil.Process(each.pid).net_connections("tcp")
        )
    ]
