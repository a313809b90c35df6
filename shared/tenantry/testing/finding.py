"""What is wrong with a line of a file that says what a function may do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong, at a line (from one), and the line as it should be; empty: it goes."""

    line: int
    wrong: str
    change: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.wrong}; change it to: {self.change or '(remove it)'}"
