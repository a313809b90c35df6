"""Attackers and their victims for the tests of a module."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from attackers import Attackers
from cages import Cages
from flawless import flawless
from locking import Locks
from operators import Operators
from people import People
from projects_releases import chart, configuration, own_role
from releases import CONFIG, FUNCTIONS, Owners
from times import FULL, HELM_S

from tenantry.api import Api
from tenantry.local.control_plane import ControlPlane, Lines, ensure_helm
from tenantry.local.knative import Knative
from tenantry.model.kinds import CLUSTER_ROLE, RESOURCE_QUOTA
from tenantry.testing.forks import Forks
from tenantry.testing.plugin import policies_left_out


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def attackers(
    control_plane: ControlPlane, admin: Api, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Attackers]:
    """Who attacks: ``await attackers.someone("owner", namespace)``, each with rights and a token of his own."""
    async with Attackers(admin, Path(control_plane.kubeconfig), tmp_path_factory.mktemp("attackers")) as made:
        yield made


@pytest.fixture(scope="module")
def people(admin: Api) -> People:
    """Users and administrators whom an attack is to leave alone."""
    return People(admin)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(flawlessly: Callable[..., Awaitable[Knative]]) -> Knative:
    """Projects and their releases, where a module does not run anything else."""
    return await flawlessly(CONFIG, functions=FUNCTIONS)


@pytest.fixture
def owners(admin: Api, system: Knative) -> Owners:
    """Project owners, with the rights of an administrator."""
    return Owners(admin)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def cages(
    control_plane: ControlPlane,
    admin: Api,
    identity: Callable[..., Awaitable[Path]],
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Cages]:
    """What thieves try, and a token of each identity."""
    async with Cages(admin, Path(control_plane.kubeconfig), tmp_path_factory.mktemp("thieves")) as made:
        await made.set_up(identity)
        yield made


@pytest.fixture(scope="module", params=["dedicated", *(["registration"] if FULL else [])])
def dedicated(request: pytest.FixtureRequest) -> bool:
    """Where releases are: in namespaces of their own, and at full size also beside their owners, where that is switched off."""
    return str(request.param) == "dedicated"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def deploying(
    control_plane: ControlPlane, admin: Api, forks: Forks, tmp_path_factory: pytest.TempPathFactory, *, dedicated: bool
) -> AsyncIterator[Knative]:
    """The functions, the local runner of Jobs with a real Helm, and charts with each kind of role; one system after the other."""
    await admin.apply(CLUSTER_ROLE, own_role())
    config = configuration(chart(tmp_path_factory.mktemp("chart") / "tiny"), dedicated=dedicated)
    folder, without = tmp_path_factory.mktemp("running"), policies_left_out()
    functions = (*FUNCTIONS, "lock-enforcement")
    options: dict[str, Any] = {"functions": functions, "helm": ensure_helm(Lines()), "without": without, "spawn": forks.spawn}
    async with Knative(control_plane.kubeconfig, folder, config=config, **options) as running, flawless(running):
        await Locks(admin, running).lockable(RESOURCE_QUOTA)  # a source never settles that may not watch what is locked
        yield running


@pytest.fixture
def deployers(admin: Api, deploying: Knative) -> Owners:
    """Project owners whose releases a real Helm makes, with the rights of an administrator."""
    del deploying
    return Owners(admin, HELM_S)


@pytest.fixture
def own(admin: Api) -> Operators:
    """The home and the members of one test."""
    return Operators(admin)
