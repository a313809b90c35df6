"""The command ``tenantry`` under the kubeconfig of an administrator, or of a ServiceAccount."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import yaml
from click.testing import CliRunner, Result

from tenantry.api import Api
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


async def account_kubeconfig(admin: Api, control_plane: ControlPlane, namespace: str, name: str, path: Path) -> Path:
    """Write the kubeconfig of a ServiceAccount that is there."""
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = await admin.request("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token", None, asked)
    written = yaml.safe_load(control_plane.kubeconfig.read_text())
    written["users"][0]["user"] = {"token": answer["status"]["token"]}
    path.write_text(yaml.safe_dump(written))
    return path
