"""``tenantry invoke``: one event for one function, through its real entry."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import click

from tenantry.cli.options import known_function, kubeconfig_option
from tenantry.cli.output import output_option, structured
from tenantry.local.invocation import UnknownKind, invoke_once


@click.command()
@click.argument("function", callback=known_function)
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
