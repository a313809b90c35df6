"""Hints: what held of owners lately."""

from __future__ import annotations

import pytest

from tenantry.engine.hints import Hints
from tenantry.model import limits


def test_what_is_noted_last_counts() -> None:
    hints = Hints()
    hints.note("a", holds=True)
    hints.note("b", holds=False)
    assert ("a" in hints, "b" in hints) == (True, False)
    hints.note("a", holds=False)
    assert "a" not in hints


def test_of_very_many_all_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "REMEMBERED", 2)
    hints = Hints()
    for name in "abb":
        hints.note(name, holds=True)
    assert all(name in hints for name in "ab")
    hints.note("c", holds=True)
    assert [name for name in "abc" if name in hints] == ["c"]
