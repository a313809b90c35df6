"""What commands print: text for people, YAML or JSON for programs."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

import click
import yaml

output_option = click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "yaml", "json"]),
    default="text",
    show_default=True,
    help="How to print the result.",
)


def wants_colours() -> bool:
    """Whether a terminal may have colours: not where NO_COLOR says no (https://no-color.org), nor where it is called ``dumb``."""
    return not os.environ.get("NO_COLOR") and not is_dumb()


def is_dumb() -> bool:
    """Whether the terminal can do nothing but show one line after the other."""
    return os.environ.get("TERM") == "dumb"


def columns(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A heading and rows as lines, in columns that are as wide as their widest cell."""
    lines = [head, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows in columns, below a heading that is bold on a terminal."""
    for number, line in enumerate(columns(head, rows)):
        click.secho(line, bold=number == 0)


def in_a_line(text: str) -> str:
    """A text that others wrote, for a terminal: what is not printable is escaped."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def structured(value: Any, output: str) -> str:
    """A value as YAML or JSON."""
    if output == "json":
        return json.dumps(value, indent=2, ensure_ascii=False)
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True).rstrip()
