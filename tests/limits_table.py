"""The table of all budgets in docs/limits.md, from `tenantry.model.limits`: ``python tests/limits_table.py`` writes it."""

from __future__ import annotations

import ast
from pathlib import Path

from tenantry.model import limits

PAGE = Path(__file__).parents[1] / "docs" / "limits.md"
BEGIN, END = "<!-- budgets: written by `python tests/limits_table.py` -->\n", "<!-- end of budgets -->\n"


def _figure(name: str) -> str:
    value = getattr(limits, name)
    if name.endswith("BYTES"):
        return (
            f"{value // limits.MIB} MiB"
            if value >= limits.MIB
            else f"{value // limits.KIB} KiB"
            if value > limits.KIB
            else f"{value:,}"
        )
    return f"{value:,}"


def table() -> str:
    """One row for each budget: the figure, and what it is of."""
    rows = ["| at most | of what |", "|---:|---|"]
    name = ""
    for node in ast.parse(Path(limits.__file__).read_text()).body:
        match node:
            case ast.AnnAssign(target=ast.Name(id=found)):
                name = found
            case ast.Expr(value=ast.Constant(value=str(text))) if name:
                rows.append(f"| {_figure(name)} | {' '.join(text.split())} |")
                name = ""
    return "\n".join(rows) + "\n"


def written(page: str) -> str:
    """The page with the table of now."""
    before, _, rest = page.partition(BEGIN)
    return before + BEGIN + table() + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
