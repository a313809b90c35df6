"""``tenantry map``: what `tenantry tree` shows as one file for a report."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import click

from tenantry.cli.options import kubeconfig_option
from tenantry.cli.standing.look import NOT_READ, WELL, Sight, look_once

FORMATS = ("html", "svg", "json")


class _Where(click.ParamType[tuple[str, Path | None]]):
    """A format, or a file whose name ends with one."""

    name = "FORMAT|FILE"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, Path | None]:
        if value in FORMATS:
            return value, None
        suffix = Path(value).suffix.removeprefix(".")
        if suffix not in FORMATS:
            self.fail(f"{value!r} is neither {', '.join(FORMATS)} nor a file whose name ends so", param, ctx)
        return suffix, Path(value)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[click.shell_completion.CompletionItem]:
        del ctx, param
        from click.shell_completion import CompletionItem

        names = [CompletionItem(each) for each in FORMATS if each.startswith(incomplete)]
        return names or [CompletionItem(incomplete, type="file")]


@click.command("map")
@click.option(
    "-o", "--output", "where", type=_Where(), required=True, help="html, svg or json, printed; or a file such as map.html."
)
@kubeconfig_option
def map(where: tuple[str, Path | None], kubeconfig: Path | None) -> None:  # noqa: A001 - the command's name
    """Write the map of projects, namespaces, roles, scopes, locks, sources, and who reaches what, as one file.

    The HTML page needs no network and no server: open it, or attach it to a report.  It says who has rights where, so mind who
    gets it.  What you may not read is said in it first, and the exit code is 1.

    \b
    Examples:
      tenantry map -o map.html
      tenantry map -o report.svg
      tenantry map -o json | jq '.reach["User alice"]'
    """
    form, path = where
    if path is None and form != "json" and sys.stdout.isatty():
        raise click.UsageError(f"a terminal shows no {form}: name a file, -o map.{form}")
    found = asyncio.run(look_once(kubeconfig, system=False))
    text = _text(form, found)
    if path is None:
        click.echo(text, nl=False)
    else:
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise click.UsageError(f"{path} cannot be written: {error.strerror}") from error
        click.echo(f"{path}: written, {len(text.encode()):,} bytes", err=True)
    for what, why in sorted(found.map.unread.items()):
        click.echo(f"tenantry: not in it: {what}: {why}", err=True)
    sys.exit(NOT_READ if found.map.unread else WELL)


def _text(form: str, found: Sight) -> str:
    if form == "json":
        return json.dumps(found.map.document(), indent=2, ensure_ascii=False) + "\n"
    if form == "svg":
        from tenantry.cli.standing.picture import picture_of

        return picture_of(found.map, found.at)
    from tenantry.cli.standing.page import page_of

    return page_of(found.map, found.at)
