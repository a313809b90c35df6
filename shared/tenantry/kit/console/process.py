"""The page as a process of its own, beside ``tenantry up`` and not longer than it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tenantry.local.tether import tethered

START_S = 30.0
"""Within which it prints its address."""
_SAYS = "console: "


@asynccontextmanager
async def console_process(kubeconfig: Path) -> AsyncIterator[str]:
    """Serve the page while the block runs; gives its address, empty where it could not be served: it has said why."""
    command = ("-m", "tenantry.cli", "console", "--no-open", "--kubeconfig", str(kubeconfig))
    process = await asyncio.create_subprocess_exec(
        *tethered(sys.executable, *command),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        said = ""
        try:
            async with asyncio.timeout(START_S):
                said = (await process.stdout.readline()).decode().strip()
        except TimeoutError:
            pass
        yield said.removeprefix(_SAYS) if said.startswith(_SAYS) else ""
    finally:
        process.stdin.close()  # its tether ends it
        await process.wait()
