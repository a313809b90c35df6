"""Lines and marks for a terminal: Unicode where its encoding has them, else ASCII."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from typing import TextIO

import click

from tenantry.cli.output import in_a_line


@dataclass(frozen=True, slots=True)
class Glyphs:
    """The branches of a tree, and the marks of problems."""

    branch: str
    last: str
    down: str
    space: str
    error: str
    warning: str
    well: str
    more: str


UNICODE = Glyphs("├── ", "└── ", "│   ", "    ", "✗", "⚠", "✓", "…")
ASCII = Glyphs("|-- ", "`-- ", "|   ", "    ", "x", "!", "+", "...")


def glyphs_for(stream: TextIO | None = None) -> Glyphs:
    """Those that a stream can show; a terminal called ``dumb`` shows no Unicode."""
    stream = stream or sys.stdout
    if stream.isatty() and os.environ.get("TERM", "") in ("", "dumb"):
        return ASCII
    try:
        "".join((*(UNICODE.branch, UNICODE.last, UNICODE.down), *(UNICODE.error, UNICODE.warning, UNICODE.more))).encode(
            stream.encoding or "ascii"
        )
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return UNICODE


def width_of(stream: TextIO | None = None) -> int:
    """The width of a terminal in columns; 0 where there is none, and nothing is cut."""
    return shutil.get_terminal_size().columns if (stream or sys.stdout).isatty() else 0


def cut(text: str, width: int, glyphs: Glyphs) -> str:
    """A line that fits; what is cut off leaves a sign."""
    return text if not width or len(text) <= width else text[: max(0, width - len(glyphs.more))] + glyphs.more


def printable(text: str, glyphs: Glyphs) -> str:
    """A text that others wrote: what is not printable is escaped, and in ASCII what is not ASCII."""
    shown = in_a_line(text)
    return shown.encode("ascii", "backslashreplace").decode() if glyphs is ASCII else shown


@dataclass(frozen=True, slots=True)
class Line:
    """A line of output, and its colour; colours are for terminals alone."""

    text: str
    colour: str = ""
    bold: bool = False

    def styled(self, width: int, glyphs: Glyphs) -> str:
        """As it is printed."""
        text = cut(self.text, width, glyphs)
        return click.style(text, fg=self.colour or None, bold=self.bold or None) if self.colour or self.bold else text
