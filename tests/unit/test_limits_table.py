"""docs/limits.md says the figures that the code has."""

from __future__ import annotations

import runpy
from pathlib import Path

TABLE = runpy.run_path(str(Path(__file__).parents[1] / "limits_table.py"))


def test_the_page_has_the_budgets_of_the_code() -> None:
    """Each budget is listed with its figure; ``python tests/limits_table.py`` writes the table anew."""
    page = TABLE["PAGE"].read_text()
    assert page == TABLE["written"](page)
    assert "| 2,000 | Owners whose runs are under way or wait" in page
