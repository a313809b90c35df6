"""The command ``tenantry`` as a process."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from times import START_S

from tenantry.testing import eventually

ROOT = Path(__file__).parents[2]
CONFIGURATION = str(ROOT / "docs/examples/tenantry.yaml")


class Up:
    """``tenantry up`` as a process, and the lines it printed so far."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[str] = []
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            self.lines.append(line.decode().rstrip())

    async def says(self, text: str, within: float = START_S) -> str:
        """Wait for a line that has the text."""

        async def said() -> str:
            found = next((line for line in self.lines if text in line), "")
            assert found or self.process.returncode is None, "\n".join(self.lines)
            return found

        return await eventually(said, within=within, what=text)

    async def ends(self) -> int:
        """Wait for the end and the last line."""
        async with asyncio.timeout(60):
            code = await self.process.wait()
            await self._reading
        return code


@asynccontextmanager
async def run_up(home: Path, *options: str, **environment: str) -> AsyncIterator[Up]:
    """``tenantry up`` with a home of its own, killed at the end if it still runs."""
    inherited = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tenantry.cli", "up", *options),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**inherited, "TENANTRY_HOME": str(home), "TENANTRY_CONFIG": CONFIGURATION, **environment},
        cwd=ROOT,
    )
    running = Up(process)
    try:
        yield running
    finally:
        if process.returncode is None:
            process.kill()
        await running.ends()


async def tenantry(*arguments: str, answer: str = "", within: float = 60.0, **environment: str) -> tuple[int, str, str]:
    """Run a command to its end, within so many seconds, with an answer to what it asks: exit code, output, errors."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tenantry.cli", *arguments),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **environment},
    )
    output, errors = await asyncio.wait_for(process.communicate(answer.encode()), within)
    return process.returncode or 0, output.decode(), errors.decode()


async def uninstall(kubeconfig: str | Path, **environment: str) -> None:
    """Take Tenantry out of a cluster."""
    environment = {"TENANTRY_CONFIG": CONFIGURATION, **environment}
    code, output, errors = await tenantry("uninstall", "--yes", "--kubeconfig", str(kubeconfig), within=90, **environment)
    assert code == 0, output + errors
