"""One function as a process of its own, without broker and sources."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from people import FUNCTION
from times import START_S

from tenantry.local.processes import free_port
from tenantry.testing import eventually


@asynccontextmanager
async def serving(
    kubeconfig: Path,
    config: Mapping[str, Any] | None,
    folder: Path,
    *,
    port: int = 0,
    environment: Mapping[str, str] | None = None,
    command: Sequence[str] = (sys.executable, "-m", "tenantry.cli", "serve", FUNCTION),
) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """``tenantry serve`` as a process of its own, whether it starts or not; and its URL."""
    port = port or free_port()
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "K_SINK"))}
    variables = {**inherited, "KUBECONFIG": str(kubeconfig), **(environment or {})}
    if config is not None:
        path = folder / "tenantry.yaml"
        path.write_text(yaml.safe_dump(dict(config)))
        variables["TENANTRY_CONFIG"] = str(path)
    process = await asyncio.create_subprocess_exec(
        *(*command, "--port", str(port)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=variables,
        start_new_session=True,
    )
    try:
        yield process, f"http://127.0.0.1:{port}/"
    finally:
        if process.returncode is None:
            process.terminate()  # a server with workers ends them, which it could not if it were killed
            try:
                await asyncio.wait_for(process.communicate(), 10)
            except TimeoutError:
                os.killpg(process.pid, signal.SIGKILL)
                await process.wait()


async def ready(process: asyncio.subprocess.Process, url: str) -> None:
    async def answers() -> bool:
        assert process.returncode is None
        try:
            async with (
                aiohttp.ClientSession(trust_env=False) as session,
                session.get(url + "health/readiness") as response,
            ):
                return response.status == 200
        except aiohttp.ClientError:
            return False

    await eventually(answers, within=START_S, what="the function answers")
