"""What others wrote is shown in one line, and does nothing to the terminal."""

from __future__ import annotations

import pytest

from tenantry.cli.output import in_a_line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("GitRepository/a/b: ü", "GitRepository/a/b: ü"),
        ("two\nlines\r", "two\\nlines\\r"),
        ("\x1b[2J", "\\x1b[2J"),
        ("a\u202eb", "a\\u202eb"),
    ],
)
def test_what_is_not_printable_is_escaped(text: str, shown: str) -> None:
    """Line breaks, escape sequences, and characters that turn the direction of writing."""
    assert in_a_line(text) == shown
