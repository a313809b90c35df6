"""``tenantry guards``: whom the admission policies for everybody would refuse today."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tenantry.cli.options import kubeconfig_option
from tenantry.cli.output import output_option, structured, table

if TYPE_CHECKING:
    from tenantry.local.preflight import Preflight

PERSON = "tenantry-cli"


@click.command()
@kubeconfig_option
@output_option
def guards(kubeconfig: Path | None, output: str) -> None:
    """Say whom the guards would refuse, before they are installed or after; nothing is written.

    Lists users, groups and ServiceAccounts that may write namespaces or the kinds of Tenantry and lack the verb `join` on
    `projects.tenantry.dev` or `write` on `marks.tenantry.dev`, with which the guards let project labels and Tenantry's own
    marks be changed; then namespaces that only an administrator could put right.  Needs the right to list Roles, bindings
    and namespaces and to ask for access reviews.  Exit code 1 when there is somebody or something to look at.

    \b
    Examples:
      tenantry guards
      tenantry guards -o yaml
      tenantry guards -o json | jq -r '.people[].who'
    """
    from tenantry.api import Api
    from tenantry.local.preflight import preflight
    from tenantry.serving.config import load_config

    async def run() -> Preflight:
        async with await Api.connect(field_manager=PERSON, kubeconfig=kubeconfig) as api:
            return await preflight(api, load_config(), lambda line: click.echo(line, err=True))

    found = asyncio.run(run())
    if output == "text":
        _show(found)
    else:
        click.echo(structured(found.as_dict(), output))
    sys.exit(1 if found.people or found.namespaces else 0)


def _show(found: Preflight) -> None:
    for names, what in ((found.installed, "installed"), (found.missing, "not installed")):
        if names:
            click.echo(f"{what}: {', '.join(names)}")
    click.echo(f"namespaces in use, which are not deleted without the annotation tenantry.dev/allow-deletion: {found.in_use}")
    if found.people:
        click.echo("\nThese would be refused what they lack:")
        table(("who", "may", "lacks"), [(each.who, "; ".join(each.may), "; ".join(each.lacks)) for each in found.people])
    if found.namespaces:
        click.echo("\nThese namespaces only an administrator can put right:")
        table(("namespace", "why"), [(each.namespace, each.why) for each in found.namespaces])
    if not found.people and not found.namespaces:
        click.echo("nobody would be refused anything that he may do today")
