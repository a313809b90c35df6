"""``tenantry replay``: have functions look again, at dead letters or at what was decided in a time."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import IO

import click

from tenantry.api import Api
from tenantry.cli.dead_letters import all_option, broker_option, function_option, send_again, send_letters
from tenantry.cli.ledger import Time, ledger_option, ledger_path
from tenantry.cli.options import kubeconfig_option
from tenantry.cli.output import in_a_line, output_option
from tenantry.serving.dead_letters.letter import Letter
from tenantry.serving.ledger.asked import asked_for, owners_decided, reading
from tenantry.serving.ledger.store import LedgerError, now_ms

Decided = tuple[str, str, str]
"""Function, unit and owner of decisions, each once."""


@click.command()
@click.argument("what", default="", metavar="[KEY|WHAT]")
@all_option
@function_option
@click.option("--since", type=Time(), metavar="TIME", help="What was decided since: 90s, 30m, 2h, 7d, or a time.")
@click.option("--until", type=Time(), metavar="TIME", help="With --since: until then.")
@click.option(
    "--decisions", "given", type=click.File(), metavar="FILE", help="What `tenantry history -o json` said; - for standard input."
)
@click.option("--dry-run", is_flag=True, help="Only say at whom would be looked.")
@broker_option
@ledger_option
@kubeconfig_option
@output_option
def replay(
    what: str,
    every: bool,
    function: str,
    since: int | None,
    until: int | None,
    given: IO[str] | None,
    dry_run: bool,
    broker: str,
    ledger: Path | None,
    kubeconfig: Path | None,
    output: str,
) -> None:
    """Have functions look again: at dead letters by KEY or with --all, or with --since at the owners of decisions.

    With --since every owner that a function decided on in that time is looked at again, once; WHAT narrows it as for `tenantry
    history`.  Functions read the cluster as it is now, and write what is to be written now: nothing is undone, and nothing of
    then is repeated.  Exit code 1 when something was not sent.

    \b
    Examples:
      tenantry replay Namespace/team-a
      tenantry replay --all
      tenantry replay --since 2h
      tenantry replay project/p-a --since 1d --dry-run
      kubectl exec -n tenantry-system deploy/ledger -- tenantry history --since 2h -o json | tenantry replay --decisions -
    """
    if since is None and given is None:
        if until is not None or dry_run:
            raise click.UsageError("--until and --dry-run are for decisions: give --since or --decisions with it")
        sys.exit(send_letters(what, every, function, broker, kubeconfig, output))
    if every or (given is not None and (what or since is not None or until is not None)):
        raise click.UsageError("--since chooses by WHAT and time, --decisions by its file, and --all is for dead letters")
    try:
        found = _given(given) if given is not None else _in_ledger(what, since or 0, until, ledger, kubeconfig)
    except LedgerError as error:
        click.echo(f"tenantry: {error}", err=True)
        sys.exit(1)
    letters = [
        Letter(name, f"{unit}:{owner}", about={"unit": unit, "owner": owner})
        for name, unit, owner in found
        if function in ("", name)
    ]
    if dry_run:
        for letter in letters:
            click.echo(in_a_line(f"{letter.function}: {letter.key}"))
        return

    async def those(_: Api) -> list[Letter]:
        return letters

    sys.exit(send_again(those, broker, kubeconfig, output))


def _in_ledger(what: str, since: int, until: int | None, ledger: Path | None, kubeconfig: Path | None) -> Iterable[Decided]:
    with reading(ledger_path(ledger, kubeconfig)) as connection:
        return owners_decided(connection, asked_for(what), since, until if until is not None else now_ms())


def _given(file: IO[str]) -> Iterable[Decided]:
    try:
        decisions = json.load(file)["decisions"]
        return dict.fromkeys((str(each["function"]), str(each["unit"]), str(each["owner"])) for each in decisions)
    except (ValueError, KeyError, TypeError) as error:
        raise click.UsageError("--decisions: this is not what `tenantry history -o json` says") from error
