"""Least privilege, judged when a whole run is over: rights and the lists of fences hold what the tests used and no more.

Every process of the run reads the audit log of its own control plane; the process that started them puts them together.
The run fails when a function has a right, or its fence an entry, that no test used, or lacks one; `make rights` then writes them.
Beside it stand the fixtures that several folders share.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
import pytest_asyncio
from flawless import flawless
from locking import Helm
from scoping import SCOPES
from times import WHOLE
from variants import leave_out

from tenantry.local.control_plane import ControlPlane
from tenantry.local.knative import Knative
from tenantry.testing import fences, rights
from tenantry.testing.audit import AuditLog, Used, why_partial
from tenantry.testing.proxy import FaultProxy

USED = pytest.StashKey[Used]()
SAID = pytest.StashKey[list[str]]()
FINDINGS = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[USED] = Used()
    config.stash[SAID] = []


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not WHOLE:
        leave_out(items)


@pytest.fixture(scope="session", autouse=True)
def rights_used(request: pytest.FixtureRequest, audit_log: AuditLog) -> Iterator[None]:
    """The rights that functions used in this process, kept until the end of the run."""
    yield
    request.config.stash[USED].include(audit_log.read())


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def proxy(fault_proxy: Callable[[], Awaitable[FaultProxy]]) -> FaultProxy:
    """What the requests of those go through that a module puts behind it."""
    return await fault_proxy()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def flawlessly(knative: Callable[..., Awaitable[Knative]]) -> AsyncIterator[Callable[..., Awaitable[Knative]]]:
    """``await flawlessly({...}, functions=[...])``: as ``knative``, and `flawless` until the module ends."""
    async with AsyncExitStack() as stack:

        async def start(*config: Any, **options: Any) -> Knative:
            return await stack.enter_async_context(flawless(await knative(*config, **options)))

        yield start


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def scopes(flawlessly: Callable[..., Awaitable[Knative]]) -> Knative:
    """scope-binding, fed by the real source and broker, until the module ends."""
    return await flawlessly({}, functions=[SCOPES])


@pytest.fixture(scope="module")
def helm(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """The real helm."""
    return Helm(control_plane.kubeconfig, tmp_path_factory.mktemp("helm"))


@pytest.fixture(params=["managed", "own-roles"])
def projection(request: pytest.FixtureRequest) -> str:
    """Both projections of NamespaceScopes, one after the other."""
    return str(request.param)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: Any) -> None:
    """Another process of the run has ended: what its tests used counts too."""
    output = getattr(node, "workeroutput", {})
    if "rights" in output:
        node.config.stash[USED].include(Used.of(output["rights"]))


def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    used = config.stash[USED]
    if hasattr(config, "workeroutput"):
        config.workeroutput["rights"] = used.document()
        return
    if reason := why_partial(session):
        config.stash[SAID].append(f"not judged: {reason}")
        return
    if (cache := getattr(config, "cache", None)) is not None:
        cache.set("tenantry/rights", used.document())
    if findings := [*rights.judge_all(used), *fences.judge_all(used.written, used.refused)]:
        config.stash[FINDINGS] = findings
        config.stash[SAID].extend([*findings, "`make rights` changes them so"])
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    else:
        config.stash[SAID].append("each function may do what its tests use, by rights and fence, and nothing else")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Say last what made the run fail, behind the list of what was skipped."""
    for line in config.stash.get(FINDINGS, ()):
        sys.stderr.write(f"{line}\n")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if said := config.stash[SAID]:
        terminalreporter.section("rights")
        for line in said:
            terminalreporter.write_line(str(line))
