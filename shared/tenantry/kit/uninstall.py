"""``tenantry uninstall``: take Tenantry out of a cluster."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import click

from tenantry.cli.output import output_option, structured

_ASKED = """This removes from {server}:
  the releases of {charts} ProjectHelmCharts,
  {removed} objects of Tenantry{crds}.
Namespaces of projects stay, and so does what people put into them."""


@click.command()
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    help="An administrator's; else KUBECONFIG, the pod's account, or ~/.kube/config.",
)
@click.option("--crds", is_flag=True, help="Remove our CustomResourceDefinitions too, and with them all objects of these kinds.")
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--timeout",
    type=click.IntRange(1),
    default=300,
    show_default=True,
    help="Seconds that releases, functions and CRDs may each take to go.",
)
@output_option
def uninstall(kubeconfig: Path | None, crds: bool, dry_run: bool, yes: bool, timeout: int, output: str) -> None:
    """Remove releases, then sources, triggers, functions and rights, then what the functions made.

    Leave the functions running: it is they who take releases away; they end here, `tenantry up` included.  What the
    configuration says (TENANTRY_CONFIG) decides which ProjectHelmCharts are meant.  Exit code 1 when releases or functions
    do not go in time; nothing that comes after them is removed then.

    \b
    Examples:
      tenantry uninstall --dry-run
      tenantry uninstall --yes --crds -o yaml
    """
    from tenantry.api import Api
    from tenantry.local.install import INSTALL_MANAGER
    from tenantry.local.taking import Uninstallation
    from tenantry.local.uninstall import Uninstaller
    from tenantry.serving.config import load_config

    config = load_config()

    def say(line: str) -> None:
        click.echo(line, err=True)

    async def run(*, only_look: bool) -> tuple[str, Uninstallation]:
        async with await Api.connect(field_manager=INSTALL_MANAGER, kubeconfig=kubeconfig) as api:
            made = Uninstaller(api, config, say, crds=crds, dry_run=only_look, timeout_s=timeout)
            return api.server, await made.run()

    if not dry_run and not yes:
        server, seen = asyncio.run(run(only_look=True))
        more = ", and its CustomResourceDefinitions with every object of these kinds" if crds else ""
        click.echo(_ASKED.format(server=server, charts=len(seen.cleaned_up), removed=len(seen.removed), crds=more), err=True)
        click.confirm("Go on?", abort=True, err=True)
    _, done = asyncio.run(run(only_look=dry_run))
    if output == "text":
        _show(done.as_dict())
    else:
        click.echo(structured(done.as_dict(), output))
    if done.remaining:
        click.echo(
            "tenantry: these did not go in time, and nothing that comes after them was removed. Of releases look at the Jobs and "
            "Events in the system namespace, and see that the functions run; of functions at the pods. Then call this again.",
            err=True,
        )
        sys.exit(1)


def _show(done: dict[str, object]) -> None:
    verb = "would be " if done["dry_run"] else ""
    titles = {"cleaned_up": f"{verb}asked for clean-up", "removed": f"{verb}removed", "kept": "kept", "remaining": "still there"}
    for part, title in titles.items():
        lines = done[part]
        assert isinstance(lines, list)
        click.echo(f"{title}: {len(lines) or 'nothing'}")
        for line in lines:
            click.echo(f"  {line}")
