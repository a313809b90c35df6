"""A name means one thing in all that a function's image has."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

from test_sizes import ROOT

PARTS = (*(f"shared/tenantry/{layer}" for layer in ("model", "api", "engine", "serving", "cli")), "functions")


def test_no_two_classes_have_one_name() -> None:
    """Who has met a class by its name knows it wherever it is met again; what stays within one module is its own affair."""
    found: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(each for part in PARTS for each in (ROOT / part).rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for statement in tree.body:
            if isinstance(statement, ast.ClassDef) and not statement.name.startswith("_"):
                found[statement.name].append(path.relative_to(ROOT))
    twice = [f"{name}: {', '.join(map(str, places))}" for name, places in sorted(found.items()) if len(places) > 1]

    assert len(found) > 150
    assert not twice, "\n".join(twice)
