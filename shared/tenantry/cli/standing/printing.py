"""Prints lines: as wide as the terminal, with colours and Unicode where it has them."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence

import click

from tenantry.cli.output import wants_colours
from tenantry.cli.standing.glyphs import Glyphs, Line, glyphs_for, width_of

Drawn = Callable[[Glyphs, int], Sequence[Line]]
"""Lines for glyphs and a width (0: without end)."""
_CLEAR = "\x1b[H\x1b[2J\x1b[3J"


def show(drawn: Drawn) -> None:
    """Print all lines."""
    glyphs, width = glyphs_for(), width_of()
    for line in drawn(glyphs, width):
        click.echo(line.styled(width, glyphs))


def redraw(drawn: Drawn, foot: str) -> None:
    """Print what fits on the screen in place of what was there."""
    glyphs, width = glyphs_for(), width_of()
    height = max(5, shutil.get_terminal_size().lines)
    found = list(drawn(glyphs, width))
    room = height - 2
    left = len(found) - room
    shown = found[:room] if left > 0 else found
    more = f"{glyphs.more} {left} more lines; " if left > 0 else ""
    text = "\n".join([*(line.styled(width, glyphs) for line in shown), Line(f"{more}{foot}").styled(width, glyphs)])
    text = text if wants_colours() else click.unstyle(text)
    sys.stdout.write(f"{_CLEAR}{text}")
    sys.stdout.flush()
