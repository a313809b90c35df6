"""Two functions that change the same objects, request by request in turns, end where they end when nobody disturbs them."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio
from people import LABEL, changed, registration, token
from releases import CONFIG, PROVISIONING, REGISTRATION, SYSTEM, Owners
from rights import AGGREGATION, Project, named, user
from times import LEFT_TO_MAKE_WHOLE

from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.model.kinds import HELM_CHART, HELM_RELEASE, NAMESPACE, PROJECT_HELM_CHART, ROLE, ROLE_BINDING
from tenantry.testing.disturbances import Turns
from tenantry.testing.fault import Forward
from tenantry.testing.proxy import FaultProxy
from tenantry.testing.settling import normalised, settle
from tenantry.testing.wire import Request, Response

pytestmark = LEFT_TO_MAKE_WHOLE

KINDS = (NAMESPACE, PROJECT_HELM_CHART, HELM_CHART, HELM_RELEASE, ROLE, ROLE_BINDING)
LEVELS = {"clusterRoleRefs": {"admin": "admin", "edit": "edit", "view": "nobody-has-made-this"}}
REQUESTS, SWITCHES = 40, 3
"""In how many requests of the two the turn changes, and how often at most."""


class Taking:
    """A fault that lets the requests of two functions through by turns."""

    def __init__(self, functions: tuple[str, str], seed: int) -> None:
        chance = random.Random(seed)
        self.turns = Turns(chance.sample(range(1, REQUESTS), chance.randrange(1, SWITCHES + 1)))
        self._functions = functions

    async def meet(self, request: Request, forward: Forward) -> Response | None:
        """Wait for one's turn; watches and other people have none."""
        del forward
        name = request.function.removeprefix("tenantry-")
        if name in self._functions:
            await self.turns.wait(self._functions.index(name))
        return None


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(proxy: FaultProxy, flawlessly: Callable[..., Awaitable[Knative]]) -> Knative:
    """Three functions behind the proxy, fed by the real sources and broker."""
    config = changed(CONFIG, operator={"releaseRoleBindings": LEVELS})
    running = await flawlessly(config, functions=(REGISTRATION, PROVISIONING, AGGREGATION), through=proxy)
    await running.drain()
    return running


@asynccontextmanager
async def _story(system: Knative, admin: Api, run: str) -> AsyncIterator[None]:
    """Two projects with a release each; what is done inside is undisturbed, then people act."""
    owners = Owners(admin)
    for project in "ab":
        for number in (1, 2):
            await owners.namespace(f"{project}{number}-{run}", f"p-{run}-{project}")
        await owners.registered(f"p-{run}-{project}")
        await owners.ask(f"{project}-{run}", f"p-{run}-{project}")
        await owners.provisioned(f"{project}-{run}-dummy")
    await settle(system, admin)
    yield
    first, second = (Project(owners, run, project=f"p-{run}-{each}", chart=f"{each}-{run}") for each in "ab")
    await first.role()
    await first.role("r-view", "view")  # for which there is no ClusterRole: told on the ProjectHelmChart
    await first.bind("alice", "admin", user("alice"))
    await owners.edit(PROJECT_HELM_CHART, f"a-{run}", first.home, ("add", "/spec/values", {"data": {"x": "y"}}))
    await owners.ask(f"late-{run}", f"p-{run}-a")
    await owners.ask(f"a-{run}", f"p-{run}-b")  # clashes
    await owners.label(f"a2-{run}", {LABEL: f"p-{run}-b"})
    await second.role("r-edit", "edit")
    await second.bind("bob", "edit", user("bob"), user("carol"))
    await owners.delete(PROJECT_HELM_CHART, f"b-{run}", second.home)
    await owners.label(f"b1-{run}", {LABEL: None})
    await owners.delete(HELM_CHART, f"a-{run}-dummy", SYSTEM)


async def _end(system: Knative, admin: Api, run: str) -> dict[str, Any]:
    await settle(system, admin)
    for function in system.names:
        await system.sweep(function)
    await settle(system, admin)
    return await normalised(admin, KINDS, containing=run)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def reference(system: Knative, admin: Api) -> dict[str, Any]:
    """Where it ends undisturbed."""
    run = token()
    async with _story(system, admin, run):
        pass
    return await _end(system, admin, run)


def test_the_reference_is_as_declared(reference: dict[str, Any]) -> None:
    """The end that the others are compared with is the right one."""
    made = {key.rpartition("/")[2] for key in reference if key.startswith("HelmChart ")}
    home = registration("p-RUN-a")
    told = {each["type"]: each["reason"] for each in reference[f"ProjectHelmChart {home}/a-RUN"]["conditions"]}

    assert made == {"a-RUN-dummy", "late-RUN-dummy"}
    assert named(reference["RoleBinding a-RUN-dummy/r-admin"]) == ["User alice"]
    assert told["tenantry.dev/RolesBound"] != "RolesBound", "both functions write the conditions of this object"
    assert len(told) > 1


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("functions", [(REGISTRATION, PROVISIONING), (PROVISIONING, AGGREGATION)], ids="-".join)
async def test_turns_do_not_matter(
    system: Knative, proxy: FaultProxy, admin: Api, reference: dict[str, Any], functions: tuple[str, str], seed: int
) -> None:
    """With few switches at seeded requests between two functions the end is the same."""
    run, taking = token(), Taking(functions, seed)
    async with _story(system, admin, run):
        proxy.faults.append(taking)
    try:
        end = await _end(system, admin, run)
    finally:
        taking.turns.end()
        proxy.faults.remove(taking)

    assert taking.turns.seen >= REQUESTS, "all switches were made"
    assert end == reference
