"""``tenantry tree``: projects, Paas, tenants and their namespaces with all that is in them, as a tree with marks."""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from pathlib import Path

import click

from tenantry.cli.completing import targets
from tenantry.cli.options import kubeconfig_option
from tenantry.cli.output import output_option, structured
from tenantry.cli.standing.draw import head_lines, tree_lines
from tenantry.cli.standing.glyphs import Glyphs, Line
from tenantry.cli.standing.look import NOT_READ, PROBLEMS, WELL, Sight, look_once, nodes_of, parsed_target
from tenantry.cli.standing.printing import show
from tenantry.cli.standing.watch import watch, watch_option
from tenantry.model.kinds import Object


def _target(ctx: click.Context, parameter: click.Parameter, text: str) -> str:
    try:
        return "/".join(parsed_target(text)) if text else ""
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, parameter) from error


@click.command()
@click.argument("target", default="", metavar="[TYPE/NAME]", callback=_target, shell_complete=targets)
@watch_option
@kubeconfig_option
@output_option
def tree(target: str, watching: bool, kubeconfig: Path | None, output: str) -> None:
    """Show what belongs to what: projects, Paas and tenants with their namespaces, releases, bindings, scopes, locks and sources.

    TYPE/NAME is project/NAME, paas/NAME, tenant/NAME or namespace/NAME; without it everything is shown.  What is wrong has a mark
    and the reason of its condition; `tenantry status` has the message and the fix.

    Exit code 0: nothing in it is wrong; 3: something is; 1: something could not be read, or there is nothing of that name.

    \b
    Examples:
      tenantry tree
      tenantry tree project/p-a
      tenantry tree namespace/team-a -o yaml
      tenantry tree paas/my-paas --watch
    """
    if watching:
        watch(kubeconfig, output, partial(lines, target), partial(document, target), system=False)
    within = target.removeprefix("namespace/") if target.startswith("namespace/") else ""
    found = asyncio.run(look_once(kubeconfig, system=False, within=within))
    if output == "text":
        show(lambda glyphs, width: lines(target, found, glyphs, width))
    else:
        click.echo(structured(document(target, found), output))
    sys.exit(_code(target, found))


def _code(target: str, found: Sight) -> int:
    if found.map.unread:
        return NOT_READ
    problems = (each for node in nodes_of(found.map, target) for below in node.walk() for each in below.problems)
    return WELL if all(each.warns for each in problems) else PROBLEMS


def lines(target: str, found: Sight, glyphs: Glyphs, width: int) -> list[Line]:
    """The tree."""
    del width
    nodes = nodes_of(found.map, target)
    drawn = list(tree_lines(nodes, glyphs))
    return [*head_lines(found.map.unread, found.map.missing, glyphs), *(drawn or [Line("nothing is here yet")])]


def document(target: str, found: Sight) -> Object:
    """For programs."""
    return {**found.map.lacks(), "tree": [node.document() for node in nodes_of(found.map, target)]}
