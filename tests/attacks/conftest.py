"""Attackers and their victims for the tests of a module."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import pytest_asyncio
from attackers import Attackers
from cages import Cages
from people import People
from releases import CONFIG, FUNCTIONS, Owners

from tenantry.api import Api
from tenantry.local.control_plane import ControlPlane
from tenantry.local.knative import Knative


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
