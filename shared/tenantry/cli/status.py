"""``tenantry status``: whether the functions run, what waits, what was given up, and what is wrong, on one screen."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import click

from tenantry.cli.options import kubeconfig_option
from tenantry.cli.output import output_option, structured
from tenantry.cli.standing.draw import head_lines, status_lines
from tenantry.cli.standing.glyphs import Glyphs, Line
from tenantry.cli.standing.look import Sight, look_once
from tenantry.cli.standing.printing import show
from tenantry.cli.standing.watch import watch, watch_option
from tenantry.model.kinds import Object


@click.command()
@watch_option
@kubeconfig_option
@output_option
def status(watching: bool, kubeconfig: Path | None, output: str) -> None:
    """Show on one screen whether Tenantry works: functions with their last sweep, backlog, dead letters, and problems with fixes.

    Problems are the conditions that the functions wrote, errors before warnings, and first those that concern most people: whom
    the bindings of the namespaces concerned name.  It reads with your rights; what you may not read is said first.

    Exit code 0: all is well; 3: there are problems; 1: something could not be read.

    \b
    Examples:
      tenantry status
      tenantry status --watch
      tenantry status -o json | jq '.problems[] | select(.people > 10)'
    """
    if watching:
        watch(kubeconfig, output, lines, document, system=True)
    found = asyncio.run(look_once(kubeconfig, system=True))
    if output == "text":
        show(lambda glyphs, width: lines(found, glyphs, width))
    else:
        click.echo(structured(document(found), output))
    sys.exit(found.code)


def lines(found: Sight, glyphs: Glyphs, width: int) -> list[Line]:
    """The screen."""
    assert found.system is not None
    head = head_lines(found.map.unread, found.map.missing, glyphs)
    return [*head, *status_lines(found.map, found.system, found.at, glyphs, width)]


def document(found: Sight) -> Object:
    """For programs."""
    assert found.system is not None
    map_ = found.map
    return {
        **map_.lacks(),
        "well": found.code == 0,
        **found.system.document(found.at),
        "people": map_.people,
        "namespaces": map_.namespaces,
        "problems": [each.document() for each in map_.problems],
    }
