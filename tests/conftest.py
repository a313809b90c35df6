"""Least privilege, judged when a whole run is over: rights and the lists of fences hold what the tests used and no more.

Every process of the run reads the audit log of its own control plane; the process that started them puts them together.
The run fails when a function has a right, or its fence an entry, that no test used, or lacks one; `make rights` then writes them.
Beside it stands the one fixture that several folders share.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
import pytest_asyncio

from tenantry.testing import fences, rights
from tenantry.testing.audit import AuditLog, Used, why_partial
from tenantry.testing.proxy import FaultProxy

USED = pytest.StashKey[Used]()
SAID = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[USED] = Used()
    config.stash[SAID] = []


@pytest.fixture(scope="session", autouse=True)
def rights_used(request: pytest.FixtureRequest, audit_log: AuditLog) -> Iterator[None]:
    """The rights that functions used in this process, kept until the end of the run."""
    yield
    request.config.stash[USED].include(audit_log.read())


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def proxy(fault_proxy: Callable[[], Awaitable[FaultProxy]]) -> FaultProxy:
    """What the requests of those go through that a module puts behind it."""
    return await fault_proxy()


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
        config.stash[SAID].extend([*findings, "`make rights` changes them so"])
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    else:
        config.stash[SAID].append("each function may do what its tests use, by rights and fence, and nothing else")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if said := config.stash[SAID]:
        terminalreporter.section("rights")
        for line in said:
            terminalreporter.write_line(str(line))
