"""The command ``tenantry`` under an administrator's kubeconfig."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from click.testing import CliRunner, Result

from tenantry.cli import main
from tenantry.local.control_plane import ControlPlane

Command = Callable[..., Awaitable[tuple[int, str, str]]]
"""``await command("create", "tenant", ...)``: exit code, output and errors; ``kubeconfig`` is somebody else's."""


def commanding(control_plane: ControlPlane) -> Command:
    """The command, in a thread: it brings an event loop of its own."""

    async def run(*arguments: str | Path, kubeconfig: Path | None = None) -> tuple[int, str, str]:
        def invoke() -> Result:
            environment = {"KUBECONFIG": str(kubeconfig or control_plane.kubeconfig)}
            return CliRunner().invoke(main, [*map(str, arguments)], env=environment)

        result = await asyncio.to_thread(invoke)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result.exit_code, result.stdout, result.stderr

    return run
