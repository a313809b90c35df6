"""``tenantry serve`` and ``tenantry invoke``: one function behind its real entry, or for one event."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import threading
from pathlib import Path
from typing import Any

import click

from tenantry.cli.options import kubeconfig_option
from tenantry.cli.output import output_option, structured

DEAD_LETTERS = "dead-letters"
"""`tenantry.serving.dead_letters.NAME`, which is not imported before it is needed."""


def _known(ctx: click.Context, parameter: click.Parameter, function: str) -> str:
    """Checked before anything else, also before options that are missing."""
    from tenantry.serving.installed import UnknownFunction, descriptor_of

    try:
        descriptor_of(function)
    except UnknownFunction as error:
        raise click.BadParameter(str(error), ctx, parameter) from error
    return function


def _known_or_sink(ctx: click.Context, parameter: click.Parameter, function: str) -> str:
    """A function, or the sink of dead letters, which is served alike."""
    return function if function == DEAD_LETTERS else _known(ctx, parameter, function)


function_argument = click.argument("function", callback=_known)


@click.command()
@click.argument("function", callback=_known_or_sink)
@click.option("--port", type=click.IntRange(1, 65535), default=8080, show_default=True, envvar="PORT")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; 0.0.0.0 in a pod.")
@kubeconfig_option
@click.option("--listener", type=int, hidden=True, help="File descriptor of a socket that listens already.")
@click.option("--end-with-parent", is_flag=True, hidden=True, help="End when standard input is closed.")
def serve(function: str, port: int, host: str, kubeconfig: Path | None, listener: int | None, end_with_parent: bool) -> None:
    """Serve one FUNCTION over HTTP until SIGTERM, or with dead-letters where events end that no function could handle.

    \b
    Examples:
      tenantry serve namespace-registration --port 8080 --kubeconfig ~/.kube/config
      tenantry serve dead-letters --port 8081 --kubeconfig ~/.kube/config
    """
    from tenantry.serving import server

    if end_with_parent:
        _end_with_parent()
    try:
        inherited = socket.socket(fileno=listener) if listener is not None else None
        if function == DEAD_LETTERS:
            from tenantry.serving.dead_letters import entry

            asyncio.run(entry.serve(host, port, kubeconfig, listener=inherited))
        else:
            asyncio.run(server.serve(function, host, port, kubeconfig, listener=inherited))
    except OSError as error:
        click.echo(f"tenantry: cannot listen on {host}:{port}: {error.strerror}; choose another --port", err=True)
        sys.exit(2)


def _end_with_parent() -> None:
    """End this process when the one that started it is gone: its end of our standard input closes."""

    def wait() -> None:
        while os.read(0, 4096):
            pass
        os.kill(os.getpid(), 15)

    threading.Thread(target=wait, daemon=True).start()


@click.command()
@function_argument
@click.option("--kind", required=True, help="Kind of the object, such as Namespace.")
@click.option("--name", required=True, help="Name of the object.")
@click.option("-n", "--namespace", default="", help="Its namespace; none for cluster-scoped kinds.")
@click.option("--api-version", default="", help="Its apiVersion; only needed for kinds that are not known here.")
@kubeconfig_option
@output_option
def invoke(function: str, kind: str, name: str, namespace: str, api_version: str, kubeconfig: Path | None, output: str) -> None:
    """Send FUNCTION one event about an object, through its HTTP entry, and show the verdict and the writes.

    The event is the same that a source sends; what the function does depends on the live object alone.
    Exit code 1 when the verdict is not a success.

    \b
    Examples:
      tenantry invoke namespace-registration --kind Namespace --name team-a
      tenantry invoke namespace-registration --kind ConfigMap -n cattle-project-p-a --name dummy.cattle.io.v1alpha1
    """
    from tenantry.local.invocation import UnknownKind, invoke_once

    try:
        result = asyncio.run(invoke_once(function, api_version, kind, namespace, name, kubeconfig))
    except UnknownKind as error:
        raise click.UsageError(str(error)) from error
    _show(result, output)
    sys.exit(0 if result["status"] < 300 else 1)


def _show(result: dict[str, Any], output: str) -> None:
    if output != "text":
        click.echo(structured(result, output))
        return
    colour = "green" if result["status"] < 300 else "red"
    click.secho(f"{result['status']} {result['reason']}", fg=colour)
    for change in result["writes"]:
        click.echo(f"  {change}")
    if not result["writes"]:
        click.echo("  no writes")
