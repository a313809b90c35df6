"""Processes that are forked instead of executed."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenantry.local.processes import FunctionFailed, FunctionProcess, Process, Spawn, execute
from tenantry.testing import eventually
from tenantry.testing.forks import Forks

FUNCTION = "namespace-registration"
KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: here, user: me}}]
clusters: [{name: here, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: me, user: {token: t}}]
"""


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


async def _said(process: Process) -> str:
    assert process.stderr is not None
    return "".join([line.decode() async for line in process.stderr])


async def test_a_forked_process_ends_as_an_executed_one(listener: socket.socket, tmp_path: Path) -> None:
    """The same code, and the same words about the same wrong configuration, which only its environment names."""
    config = tmp_path / "wrong.yaml"
    config.write_text("helmProjectOperator: {projectLabel: 7}\n")
    environment = {**os.environ, "TENANTRY_CONFIG": str(config)}
    ends = []
    async with Forks() as forks:
        spawns: list[Spawn] = [execute, forks.spawn]
        for spawn in spawns:
            process = await spawn(["tenantry.cli"], ["serve", FUNCTION], environment, listener)
            assert process.returncode is None
            ends.append((await _said(process), await process.wait()))
            assert process.returncode == ends[-1][1]
            assert process.stdin is not None
            process.stdin.close()
    assert ends[0] == ends[1]
    assert "projectLabel" in ends[0][0]
    assert ends[0][1] == 2


async def test_what_is_forked_serves_and_ends_with_its_forks(tmp_path: Path) -> None:
    """It leads a session of its own, and is told to have been killed when what it was forked from goes."""
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(KUBECONFIG)
    forks = Forks()
    function = FunctionProcess(FUNCTION, kubeconfig, say=lambda _: None, spawn=forks.spawn)
    try:
        await function.start()
        assert os.getsid(function.pid) == function.pid
        assert function._process is not None
        await forks.close()
        assert await function._process.wait() == -signal.SIGKILL
    finally:
        await function.stop()
        function.close()
        await forks.close()


async def test_what_was_stopped_is_watched_again_when_it_is_started(tmp_path: Path) -> None:
    """Its lines are heard, and it is started again when it was killed."""
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(KUBECONFIG)
    heard: list[str] = []
    async with Forks() as forks:
        function = FunctionProcess(FUNCTION, kubeconfig, say=heard.append, spawn=forks.spawn)
        try:
            for _ in range(2):
                await function.start()
                await _killed_and_back(function)
                await function.stop()
        finally:
            function.close()
    assert heard == [f"{FUNCTION} ended with code -9; starting it again"] * 2


async def _killed_and_back(function: FunctionProcess) -> None:
    killed = function.pid

    async def another() -> bool:
        return function.pid != killed

    function.kill()
    await eventually(another, within=10, what="another process")


async def test_a_bug_that_is_not_there_is_told(listener: socket.socket) -> None:
    """What cannot be forked from fails the one who asks."""
    async with Forks() as forks:
        with pytest.raises(FunctionFailed, match="no-such-bug"):
            await forks.spawn(["tenantry.testing.seeded", "no-such-bug", "--"], ["serve", FUNCTION], {}, listener)
