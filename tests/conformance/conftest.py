"""The function under test: a process that serves namespace-registration in front of a real API server."""

from __future__ import annotations

import http.client
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
import pytest_asyncio
from wire import Entry

from tenantry.local.processes import free_port

FUNCTION = "namespace-registration"
READY_WITHIN = 60.0
STOPS_WITHIN = 20.0


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def kubeconfig(identity: Callable[..., Awaitable[Path]]) -> Path:
    """The function's own identity, with the rights that it has in a cluster."""
    return await identity(FUNCTION)


@pytest.fixture(scope="module")
def entry(kubeconfig: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Entry]:
    """Serve the function on a free port until the module ends."""
    port = free_port()
    log = tmp_path_factory.mktemp("entry") / "serve.log"
    command = [str(Path(sys.executable).with_name("tenantry")), "serve", FUNCTION]
    command += ["--port", str(port), "--kubeconfig", str(kubeconfig)]
    with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=output) as process:
        try:
            _wait_until_ready(port, process, log)
            yield Entry(f"http://127.0.0.1:{port}")
        finally:
            process.terminate()
            try:
                process.wait(STOPS_WITHIN)
            except subprocess.TimeoutExpired:
                process.kill()


def _wait_until_ready(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + READY_WITHIN
    seen = "no answer"
    while time.monotonic() < deadline:
        if process.poll() is not None:
            pytest.fail(f"the entry stopped with {process.returncode}:\n{log.read_text()[-2000:]}")
        try:
            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=2)) as connection:
                connection.request("GET", "/health/readiness")
                answer = connection.getresponse()
                if answer.status == 200:
                    return
                seen = f"{answer.status} {answer.read(200)!r}"
        except OSError:
            pass
        time.sleep(0.05)
    pytest.fail(f"the entry was not ready within {READY_WITHIN:.0f} s ({seen}):\n{log.read_text()[-2000:]}")
