"""Fixtures of the tests against a real control plane: people who act, and ways to run and to calm the system."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import in_container
import pytest
import pytest_asyncio
from admitting import Admitting
from commanding import Command, commanding
from flawless import Calm, calming
from flux_controllers import MULTI_TENANT, audited, install_real_flux, running_flux
from flux_policing import Policing
from flux_real import RealFlux
from git_server import GitServer
from helm_people import HELM_CONFIG, HelmPeople
from letters import SINK, Sender, empty, sinks
from local_subscriber import Subscriber, subscriber
from locking import DEPLOYMENT, JOB, SERVICE, Locks, locking
from operators import Operators
from paasing import Paasing
from people import C1, FUNCTION, People, token
from releases import CONFIG, FUNCTIONS, PROVISIONING, Demo, Owners
from scoping import Scoping
from standing import World
from times import HELM_S

from tenantry.api import Api
from tenantry.local import jobs
from tenantry.local.control_plane import ControlPlane, Lines, ensure_helm
from tenantry.local.knative import Knative
from tenantry.local.sinks import Poster
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, NAMESPACE_SCOPE, Object
from tenantry.testing.audit import AuditLog
from tenantry.testing.forks import Forks
from tenantry.testing.objects import obj


@pytest.fixture(scope="session", autouse=True)
def job_image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """With the variable TENANTRY_JOB_IMAGE Jobs run in a container of that image (`make image`)."""
    image = os.environ.get("TENANTRY_JOB_IMAGE")
    if not image:
        yield
        return
    container, program = in_container.make(image, tmp_path_factory.mktemp("image"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(jobs, "helm_job_program", lambda: program)
        yield
    in_container.remove(container)


@pytest.fixture(scope="module")
def people(admin: Api) -> People:
    """The users and administrators of the cluster."""
    return People(admin)


@pytest.fixture(scope="module")
def paasing(admin: Api) -> Paasing:
    """Authors of Paas and PaasNS, and the administrator of the PaasConfig."""
    return Paasing(admin)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def c1(flawlessly: Callable[..., Awaitable[Knative]]) -> Knative:
    """The system under the reference configuration, fed by the real source and broker, until the module ends."""
    running = await flawlessly(C1, functions=[FUNCTION])
    await running.drain()  # what was there before is looked at
    return running


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def releasing(flawlessly: Callable[..., Awaitable[Knative]]) -> Knative:
    """Projects and their releases, until the module ends."""
    return await flawlessly(CONFIG, functions=FUNCTIONS)


@pytest.fixture
def owners(admin: Api) -> Owners:
    """Project owners."""
    return Owners(admin)


@pytest.fixture
async def demo(releasing: Knative, owners: Owners) -> Demo:
    """A project with one namespace and a chart that is provisioned: project, ProjectHelmChart and release."""
    project = await owners.project()
    name = f"demo-{project}"
    await owners.ask(name, project)
    await owners.provisioned(f"{name}-dummy")
    await owners.told(name, project, "WaitingForDashboardValues")
    return project, name, f"{name}-dummy"


@pytest.fixture
def running(
    control_plane: ControlPlane, forks: Forks, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., AbstractAsyncContextManager[Knative]]:
    """``async with running({...}) as knative``: the system under a configuration, for a part of a test."""

    def start(config: dict[str, Any], **options: Any) -> Knative:
        options.setdefault("functions", [FUNCTION])
        options.setdefault("spawn", forks.spawn)
        return Knative(control_plane.kubeconfig, tmp_path_factory.mktemp("running"), config=config, **options)

    return start


@pytest.fixture
def calm(admin: Api) -> Calm:
    """``await calm(knative)``: everything is handled, a sweep has looked at all owners, and nothing is written any more."""
    return calming(admin)


@pytest.fixture(scope="module")
def scoping(admin: Api) -> Scoping:
    """The administrators who scope operators."""
    return Scoping(admin)


@pytest_asyncio.fixture
async def own(scopes: Knative, admin: Api) -> AsyncIterator[Operators]:
    """Operators and members for one test; its NamespaceScopes are deleted afterwards."""
    found = Operators(admin)
    yield found
    for each in (await admin.list(NAMESPACE_SCOPE, found.home)).items:
        await admin.delete(NAMESPACE_SCOPE, each["metadata"]["name"], found.home)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def locker(flawlessly: Callable[..., Awaitable[Knative]]) -> Knative:
    """lock-enforcement, for which a failed upgrade has failed at once, until the module ends."""
    return await flawlessly(locking(failedGraceSeconds=0), functions=["lock-enforcement"])


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def locks(admin: Api, locker: Knative) -> AsyncIterator[Locks]:
    """The administrators of releases, whose HelmReleases go when the module ends."""
    made = Locks(admin, locker)
    await made.lockable(CONFIG_MAP, DEPLOYMENT, JOB, SERVICE)
    yield made
    await made.leave()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def helm_jobs(flawlessly: Callable[..., Awaitable[Knative]]) -> Knative:
    """The function and the local runner of its Jobs, with a real Helm, until the module ends."""
    return await flawlessly(HELM_CONFIG, functions=[PROVISIONING], helm=ensure_helm(Lines()))


@pytest.fixture
def helm_people(people: People, helm_jobs: Knative) -> HelmPeople:
    """An administrator who works with HelmCharts."""
    del helm_jobs
    return HelmPeople(People(people.admin, HELM_S))


@pytest.fixture
async def space(admin: Api) -> AsyncIterator[str]:
    """A namespace of one test."""
    name = f"source-{uuid4().hex[:8]}"
    await admin.create(NAMESPACE, obj(NAMESPACE, name))
    yield name
    await admin.delete(NAMESPACE, name)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def sink_identity(identity: Callable[..., Awaitable[Path]]) -> Path:
    """The own identity of the sink of dead letters, with the rights that it has in a cluster."""
    return await identity(SINK)


@pytest_asyncio.fixture(loop_scope="session")
async def url(sink_identity: Path, tmp_path: Path, admin: Api) -> AsyncIterator[str]:
    """A sink of dead letters that begins without a store."""
    await empty(admin)
    async with sinks(1, sink_identity, tmp_path) as ((_, address),):
        yield address


@pytest_asyncio.fixture(loop_scope="session")
async def sender() -> AsyncIterator[Sender]:
    """Who sends dead letters."""
    async with Sender() as made:
        yield made


@pytest.fixture
async def poster() -> AsyncIterator[Poster]:
    """What the local broker sends with."""
    async with Poster() as client:
        yield client


@pytest.fixture
async def function() -> AsyncIterator[Subscriber]:
    """A subscriber in the place of a function."""
    async with subscriber() as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def admitting(
    control_plane: ControlPlane, admin: Api, identity: Callable[..., Awaitable[Path]]
) -> AsyncIterator[Admitting]:
    """Whoever writes Paas, with the CRDs and policies in force and no function at work."""
    await identity(FUNCTION)
    async with Admitting(admin, control_plane) as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def policing(admin: Api, admitting: Admitting, identity: Callable[..., Awaitable[Path]]) -> Policing:
    """The tenants of a cluster with Flux, with no function at work and no policy in force yet."""
    await identity("scope-binding")
    found = Policing(admin, admitting)
    await found.furnish()
    return found


@pytest.fixture(scope="module")
def audited_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ControlPlane, AuditLog]]:
    """A control plane of the module's own, which writes down what Flux' controllers write, and as whom."""
    with audited(tmp_path_factory.mktemp("audit")) as both:
        yield both


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def git_server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[GitServer]:
    """Where teams keep their repositories."""
    async with GitServer(tmp_path_factory.mktemp("git")) as server:
        yield server


@pytest.fixture(scope="module")
def real_flux(admin: Api, admitting: Admitting, git_server: GitServer) -> RealFlux:
    """The platform and tenants of a cluster with the real controllers of Flux."""
    return RealFlux(admin, admitting, git_server)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def delivering(
    control_plane: ControlPlane,
    flawlessly: Callable[..., Awaitable[Knative]],
    real_flux: RealFlux,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Callable[..., Awaitable[Knative]]]:
    """``await delivering(*functions)``: these, the policies of the profile multi-tenant and both real controllers of Flux.

    They run until the module ends.  ``rights`` are applied in place of kustomize-controller's as an administrator, and
    ``options`` are further ones of the export that gives the controllers their arguments.
    """
    async with AsyncExitStack() as stack:

        async def start(*functions: str, options: Sequence[str] = (), rights: Sequence[Object] = ()) -> Knative:
            await install_real_flux(real_flux.admin, rights)
            running = await flawlessly({}, functions=[*functions])
            await real_flux.enforce()
            await running.drain()
            controllers = running_flux(real_flux.admin, control_plane, tmp_path_factory, MULTI_TENANT, *options)
            await stack.enter_async_context(controllers)
            return running

        yield start


@pytest.fixture(scope="module")
def as_admin(control_plane: ControlPlane) -> Command:
    """The command ``tenantry`` with all rights."""
    return commanding(control_plane)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def world(knative: Callable[..., Awaitable[Knative]], admin: Api) -> World:
    """All functions, and something of everything, some of it wrong; TENANTRY_WRITE_DOCS names it for people."""
    made = World(admin, await knative(C1), "a" if os.environ.get("TENANTRY_WRITE_DOCS") else token())
    await made.make()
    return made
