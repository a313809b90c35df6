"""``tenantry plan``: what functions would write because of a change, before it is made."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from tenantry.api import Api, ConnectError
from tenantry.api.errors import ApiError
from tenantry.cli.foresee.change import BadChange, PlannedChange, read_manifests
from tenantry.cli.foresee.outcome import PlanOutcome, outcome_of
from tenantry.cli.foresee.shown import as_dict, notes, show
from tenantry.cli.foresee.target import NotInstalled, configuration, installed_services
from tenantry.cli.options import kubeconfig_option
from tenantry.cli.output import in_a_line, output_option, structured
from tenantry.cli.progress import ReadProgress
from tenantry.engine.overlay.asking import DryRuns
from tenantry.engine.overlay.store import Overlay
from tenantry.engine.unit import Owner
from tenantry.model.names import SYSTEM_NAMESPACE
from tenantry.serving.config import ConfigError
from tenantry.serving.foresight import Foresight, foresight
from tenantry.serving.installed import UnknownFunction

PERSON = "kubectl"
"""The field manager of what is applied, as `kubectl apply --server-side` has it."""
NOTHING, FAILED, CHANGES = 0, 1, 2


class _Failed(click.ClickException):
    """No plan; the message is one line.  Exit code 1: 2 says that there are changes."""

    exit_code = FAILED


class _Misused(click.UsageError):
    """What was typed cannot be planned."""

    exit_code = FAILED


class _Plan(click.Command):
    """Every error has exit code 1, also what was typed wrong."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read what was typed."""
        try:
            return super().parse_args(ctx, args)
        except click.exceptions.NoArgsIsHelpError:
            raise
        except click.UsageError as error:
            raise _Misused(error.format_message(), ctx) from error

    def invoke(self, ctx: click.Context) -> Any:
        """Plan."""
        try:
            return super().invoke(ctx)
        except click.exceptions.NoArgsIsHelpError:
            raise
        except click.UsageError as error:
            raise _Misused(error.format_message(), ctx) from error
        except (ConfigError, ConnectError, ApiError, BadChange, NotInstalled, UnknownFunction) as error:
            raise _Failed(in_a_line(" ".join(str(error).split()))) from error


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is to be planned."""

    change: PlannedChange
    owners: Sequence[str]
    config: Path | None
    functions: Sequence[str]
    manager: str
    server: bool
    kubeconfig: Path | None


@click.command(cls=_Plan)
@click.argument("owners", metavar="[OWNER]...", nargs=-1)
@click.option("-f", "--filename", "files", multiple=True, metavar="FILE|DIR|-", help="Objects that would be applied.")
@click.option("--delete", "deletions", multiple=True, metavar="KIND/NAME", help="An object that would be deleted.")
@click.option(
    "--label", "labels", multiple=True, type=(str, str), metavar="KIND/NAME CHANGE", help="key=value, or key- to remove it."
)
@click.option("-n", "--namespace", default="", metavar="NS", help="Of what names none.  [default: default]")
@click.option("--owner", "further", multiple=True, metavar="FUNCTION:UNIT:OWNER", help="One owner of one unit, as logs name it.")
@click.option(
    "--config", type=click.Path(path_type=Path), help="A configuration that would be in force: every owner is looked at."
)
@click.option("--function", "functions", multiple=True, metavar="NAME", help="Only these functions.  [default: those installed]")
@click.option("--field-manager", default=PERSON, show_default=True, help="Who applies.")
@click.option("--diff", is_flag=True, help="Show what changes in each object.")
@click.option("--server", is_flag=True, help="Ask the API server about each write by a dry run: quota and admission are seen.")
@kubeconfig_option
@output_option
def plan(
    owners: tuple[str, ...],
    files: tuple[str, ...],
    deletions: tuple[str, ...],
    labels: tuple[tuple[str, str], ...],
    namespace: str,
    further: tuple[str, ...],
    config: Path | None,
    functions: tuple[str, ...],
    field_manager: str,
    diff: bool,
    server: bool,
    kubeconfig: Path | None,
    output: str,
) -> None:
    """Foresee what functions would write because of a change.  Nothing is written.

    The functions' own units run over the cluster with the change laid on top, and over what they themselves would write, step by
    step to the end.  It needs only the rights to read what functions read; what cannot be read is named.

    Exit code 0: nothing would be written.  2: something would.  1: no plan, not the whole plan, or a write would be refused.

    \b
    Examples:
      tenantry plan --label namespace/team-a field.cattle.io/projectId=p-1
      tenantry plan -f deploy/ --diff
      tenantry plan --delete projecthelmchart/monitoring -n cattle-project-p-1
      tenantry plan --config new.yaml -o json
      tenantry plan project/p-1
    """
    if not (owners or files or deletions or labels or further or config):
        raise click.UsageError("say what would change: -f, --delete, --label, --config, or name an owner")
    change = PlannedChange(read_manifests(files), deletions, labels, namespace)
    asked = _Asked(change, (*owners, *further), config, functions, field_manager, server, kubeconfig)
    outcome, overlay, dry_runs, source = asyncio.run(_planned(asked))
    said = list(notes(outcome, overlay, dry_runs))
    whole = not (overlay.unseen or outcome.foreseen.problems or outcome.foreseen.restless)
    if output != "text":
        click.echo(structured(as_dict(outcome, overlay, dry_runs, source, diff=diff), output))
    else:
        show(outcome, diff=diff, whole=whole)
        for line in said:
            click.echo(in_a_line(line), err=line.startswith(("could not be read", "not foreseen to the end", "comes to no rest")))
    sys.exit(FAILED if overlay.refused or not whole else CHANGES if outcome.writes else NOTHING)


async def _planned(asked: _Asked) -> tuple[PlanOutcome, Overlay, DryRuns | None, str]:
    async with await Api.connect(field_manager=asked.manager, kubeconfig=asked.kubeconfig) as api:
        services, unsure = await installed_services(api, asked.functions)
        config, source = await configuration(api, asked.config)
        as_functions = asked.server and await _may_impersonate(api)
    click.echo(f"configuration: {source}", err=True)
    dry_runs = DryRuns() if asked.server else None
    if asked.server and not as_functions:
        click.echo("tenantry: you may not impersonate the functions' accounts: dry runs are in your own name", err=True)
    async with (
        foresight(
            config,
            services,
            kubeconfig=asked.kubeconfig,
            hands=asked.manager,
            ask=dry_runs,
            as_functions=as_functions,
        ) as future,
        ReadProgress("looking ahead") as progress,
    ):
        if unsure:
            future.overlay.unseen[unsure] = "forbidden"
        await asked.change.lay(future.hands)
        for text in asked.owners:
            _run(future, text)
        if asked.config is not None:
            future.sweep()
        found = await future.to_rest(progress.count)
        return await outcome_of(found, future.hands), future.overlay, dry_runs, source


def _run(future: Foresight, text: str) -> None:
    """Have an owner looked at, which is named with or without function and unit."""
    function, unit, name = text.split(":", 2) if text.count(":") >= 2 else ("", "", text)
    owner = Owner.parse(name)
    if owner is None:
        raise BadChange(f"{text}: write an owner as TYPE/NAME or TYPE/NAMESPACE/NAME, such as project/p-1")
    if not future.run(owner, function, unit):
        known = "; ".join(f"{name}: {', '.join(units)}" for name, units in future.units.items())
        raise BadChange(f"{text}: no unit has such an owner; there are {known}")


async def _may_impersonate(api: Api) -> bool:
    attributes = {"verb": "impersonate", "resource": "serviceaccounts", "namespace": SYSTEM_NAMESPACE}
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    answer = await api.request("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", None, body)
    return bool(answer["status"].get("allowed"))
