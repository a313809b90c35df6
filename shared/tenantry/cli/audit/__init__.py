"""``tenantry audit``: what would be refused if the profile multi-tenant were switched on now (2.5, f-141)."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tenantry.api import Api
from tenantry.cli.audit.read import read_for_audit
from tenantry.cli.one_line import OneLine, answer_of
from tenantry.cli.options import kubeconfig_option
from tenantry.cli.output import in_a_line, output_option, structured
from tenantry.cli.progress import ReadProgress
from tenantry.model.flux.audit import audited
from tenantry.model.flux.audit.seen import AuditFinding

PERSON = "tenantry-cli"


@click.command(cls=OneLine)
@kubeconfig_option
@output_option
def audit(kubeconfig: Path | None, output: str) -> None:
    """List what would be refused if the profile multi-tenant were switched on now, and what stands in its way.

    Of references that would be denied the grant that would allow them is named; with -o json or yaml it is there as a manifest.
    The rest of the TenancyProfile counts as it is.  Nothing is written.  Exit code 1 when something is listed.

    \b
    Examples:
      tenantry audit
      tenantry audit -o json
    """
    found = answer_of(_found(kubeconfig))
    if output != "text":
        click.echo(structured([each.shown() for each in found], output))
    for each in found if output == "text" else ():
        click.echo(in_a_line(f"{each.reason} {each.about}: {each.text}; {each.fix}"))
    if found:
        sys.exit(1)
    if output == "text":
        click.echo("nothing would be refused with the profile multi-tenant")


async def _found(kubeconfig: Path | None) -> list[AuditFinding]:
    async with (
        await Api.connect(field_manager=PERSON, kubeconfig=kubeconfig) as api,
        ReadProgress("reading the cluster") as progress,
    ):
        return list(audited(await read_for_audit(api, progress)))
