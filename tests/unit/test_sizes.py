"""Nobody has to read more than 400 lines to know a module."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
LINES = 400


def test_no_module_is_longer_than_one_reading() -> None:
    """Each has one subject: what grows beyond is two."""
    modules = [path for part in ("shared/tenantry", "functions", "tools", "tests") for path in (ROOT / part).rglob("*.py")]
    sizes = {path.relative_to(ROOT): len(path.read_text(encoding="utf-8").splitlines()) for path in sorted(modules)}
    longer = [f"{path} has {lines} lines" for path, lines in sizes.items() if lines > LINES]

    assert len(sizes) > 400
    assert not longer, "\n".join(longer)
