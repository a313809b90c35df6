"""``tenantry serve``: one function behind its real entry."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import threading
from pathlib import Path

import click

from tenantry.cli.options import known_function, kubeconfig_option

DEAD_LETTERS = "dead-letters"
LEDGER = "ledger"
"""`NAME` of `tenantry.serving.dead_letters` and `tenantry.serving.ledger`, which are not imported before they are needed."""


def _known_or_sink(ctx: click.Context, parameter: click.Parameter, function: str) -> str:
    """A function, or the sink of dead letters or the ledger, which are served alike."""
    return function if function in (DEAD_LETTERS, LEDGER) else known_function(ctx, parameter, function)


@click.command()
@click.argument("function", callback=_known_or_sink)
@click.option("--port", type=click.IntRange(1, 65535), default=8080, show_default=True, envvar="PORT")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; 0.0.0.0 in a pod.")
@kubeconfig_option
@click.option("--listener", type=int, hidden=True, help="File descriptor of a socket that listens already.")
@click.option("--end-with-parent", is_flag=True, hidden=True, help="End when standard input is closed.")
def serve(function: str, port: int, host: str, kubeconfig: Path | None, listener: int | None, end_with_parent: bool) -> None:
    """Serve one FUNCTION over HTTP until SIGTERM, or with dead-letters where events end that no function could handle, or with
    ledger what keeps the decisions of all functions.

    \b
    Examples:
      tenantry serve namespace-registration --port 8080 --kubeconfig ~/.kube/config
      tenantry serve dead-letters --port 8081 --kubeconfig ~/.kube/config
      TENANTRY_LEDGER=ledger.db TENANTRY_DECISIONS_KEY=key tenantry serve ledger --port 8082
    """
    from tenantry.serving import server

    if end_with_parent:
        _end_with_parent()
    try:
        inherited = socket.socket(fileno=listener) if listener is not None else None
        if function == DEAD_LETTERS:
            from tenantry.serving.dead_letters import entry

            asyncio.run(entry.serve(host, port, kubeconfig, listener=inherited))
        elif function == LEDGER:
            from tenantry.serving.ledger import entry as ledger

            asyncio.run(ledger.serve(host, port, listener=inherited))
        else:
            asyncio.run(server.serve(function, host, port, kubeconfig, listener=inherited))
    except OSError as error:
        click.echo(f"tenantry: cannot listen on {host}:{port}: {error.strerror}; choose another --port", err=True)
        sys.exit(2)


def _end_with_parent() -> None:
    """End this process with the one that started it, whose end of our standard input then closes."""

    def wait() -> None:
        while os.read(0, 4096):
            pass
        os.kill(os.getpid(), 15)

    threading.Thread(target=wait, daemon=True).start()
