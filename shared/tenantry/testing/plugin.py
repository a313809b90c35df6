"""pytest fixtures: ``control_plane``, ``admin``, ``identity``, ``forks``, ``knative``; ``fault_proxy``, ``fault_arena``,
``fault_matrix``.

``TENANTRY_WITHOUT`` names admission policies, with commas between them, or says ``all``: `identity`, `knative` and `fault_arena`
leave these out, so that it shows which tests fail without them.  It may name protections of functions, too
(`tenantry.testing.unprotected`).
Modules follow each other on one control plane, which is put back between them; their tests keep apart by the names of their
projects and namespaces.
Everything heavy is imported when a fixture is first used, so that the plugin costs nothing where it is only
installed.
"""

from __future__ import annotations

import functools
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

if TYPE_CHECKING:
    from pathlib import Path

    from tenantry.api import Api
    from tenantry.local.control_plane import ControlPlane
    from tenantry.local.knative import Knative
    from tenantry.testing.arena import Arena
    from tenantry.testing.audit import AuditLog
    from tenantry.testing.forks import Forks
    from tenantry.testing.planes import ControlPlanes
    from tenantry.testing.proxy import FaultProxy
    from tenantry.testing.report import Report
    from tenantry.testing.workload import Workload

ADMIN_MANAGER = "tests-admin"
WITHOUT = "TENANTRY_WITHOUT"


def pytest_configure() -> None:
    """Where protections of functions are left out, every function process runs without them."""
    if not os.environ.get(WITHOUT):
        return
    from tenantry.local.processes import FunctionProcess
    from tenantry.testing import unprotected

    if unprotected.concerned(policies_left_out()):
        FunctionProcess.program = unprotected.__name__
    unprotected.take_away_among(unprotected.AROUND)


@pytest.fixture(scope="session")
def audit_log(tmp_path_factory: pytest.TempPathFactory) -> AuditLog:
    """The audit log of ``control_plane``: what functions asked for under their identities."""
    from tenantry.testing.audit import AuditLog

    return AuditLog(tmp_path_factory.mktemp("audit"))


@pytest.fixture(scope="session")
def control_planes(audit_log: AuditLog) -> Iterator[ControlPlanes]:
    """Where ``control_plane`` comes from."""
    from tenantry.testing.planes import ControlPlanes

    with ControlPlanes(audit_log.api_server_args) as planes:
        yield planes


@pytest.fixture(scope="module")
def control_plane(control_planes: ControlPlanes, request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """A real etcd, kube-apiserver and kube-controller-manager, in a temporary folder, without namespaces of another module.

    Admission policies of other modules may be there, without effect; a module with the mark ``no_policies`` finds none.
    """
    plane = control_planes.take(policies=request.node.get_closest_marker("no_policies") is None)
    yield plane
    control_planes.give_back(plane)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def admin(control_plane: ControlPlane) -> AsyncIterator[Api]:
    """A client with all rights: it plays the people, never a function."""
    from tenantry.api import Api

    async with await Api.connect(field_manager=ADMIN_MANAGER, kubeconfig=control_plane.kubeconfig) as client:
        yield client


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def identity(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Callable[..., Awaitable[Path]]]:
    """``await identity("namespace-registration", config=None)``: the kubeconfig of a function's ServiceAccount, or of a duty's.

    The function's CRDs, identity and rights are installed from ``knative/``, adapted to the configuration.
    """
    from tenantry.api import Api
    from tenantry.local.identity import Identity
    from tenantry.local.install import INSTALL_MANAGER, install
    from tenantry.model.config import Config
    from tenantry.serving.installed import service_named

    folder = tmp_path_factory.mktemp("identities")
    opened: dict[str, Identity] = {}
    async with await Api.connect(field_manager=INSTALL_MANAGER, kubeconfig=control_plane.kubeconfig) as api:

        async def open_identity(function: str, config: Config | None = None) -> Path:
            await install(api, [service_named(function).function], config or Config(), _silent, without=policies_left_out())
            if function not in opened:
                opened[function] = Identity(api, function, folder, control_plane.kubeconfig, _silent)
                await opened[function].open()
            return opened[function].kubeconfig

        yield open_identity
        for each in opened.values():
            await each.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def forks() -> AsyncIterator[Forks]:
    """``spawn=forks.spawn`` for a `Knative`: its functions start in milliseconds."""
    from tenantry.testing.forks import Forks

    async with Forks() as forks:
        yield forks


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def knative(
    control_plane: ControlPlane, forks: Forks, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Callable[..., Awaitable[Knative]]]:
    """``await knative({...configuration...})``: sources, broker, schedule and functions, running until the module ends.

    ``through`` is a proxy that all their requests go through; ask for it before this fixture, so that it ends after.
    """
    from tenantry.local.knative import Knative

    async with AsyncExitStack() as stack:

        async def start(config: dict[str, Any] | None = None, *, through: FaultProxy | None = None, **options: Any) -> Knative:
            options.setdefault("without", policies_left_out())
            options.setdefault("spawn", forks.spawn)
            kubeconfig = through.kubeconfig_for(control_plane.kubeconfig) if through else control_plane.kubeconfig
            running = Knative(kubeconfig, tmp_path_factory.mktemp("knative"), config=config, **options)
            return await stack.enter_async_context(running)

        yield start


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def fault_proxy(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Callable[..., Awaitable[FaultProxy]]]:
    """``await fault_proxy()``: a recording, fault-injecting proxy in front of the API server, until the module ends.

    ``proxy.kubeconfig_for(kubeconfig)`` leads any client through it, with its own identity; ``proxy.faults`` takes the faults of
    `tenantry.testing.faults`, and ``proxy.recording`` has what went through.
    """
    from tenantry.testing.proxy import FaultProxy

    async with AsyncExitStack() as stack:

        async def start() -> FaultProxy:
            return await stack.enter_async_context(FaultProxy(control_plane.kubeconfig, tmp_path_factory.mktemp("proxy")))

        yield start


@pytest.fixture(scope="session")
def arena_planes() -> Iterator[ControlPlanes]:
    """Where the control planes of arenas come from; what functions do there under faults is no use of their rights."""
    from tenantry.testing.planes import ControlPlanes

    with ControlPlanes() as planes:
        yield planes


@pytest_asyncio.fixture(loop_scope="session")
async def fault_arena(tmp_path: Path, arena_planes: ControlPlanes) -> AsyncIterator[Callable[..., Awaitable[Arena]]]:
    """``await fault_arena(workload)``: a control plane with proxies, event player and history, until the test ends."""
    from tenantry.testing.arena import Arena

    async with AsyncExitStack() as stack:

        async def start(workload: Workload, **options: Any) -> Arena:
            options.setdefault("without", policies_left_out())
            return await stack.enter_async_context(Arena(workload, tmp_path, planes=arena_planes, **options))

        yield start


@pytest.fixture
def fault_matrix(arena_planes: ControlPlanes) -> Callable[..., Awaitable[Report]]:
    """``report = await fault_matrix(workload, sample=30, seed=1)``: plans performed and judged by the oracle; ``report.ok``."""
    from tenantry.testing.matrix import run_matrix

    return functools.partial(run_matrix, planes=arena_planes)


def policies_left_out() -> frozenset[str]:
    """The admission policies that this run leaves out."""
    from tenantry.local.policies import left_out

    return left_out(os.environ.get(WITHOUT, ""))


def _silent(line: str) -> None:
    del line
