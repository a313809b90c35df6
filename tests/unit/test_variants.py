"""Which variants of a test a run takes."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import cast

import pytest
from variants import LEFT_OUT, leave_out


class Item:
    """What is asked of one test of a run."""

    def __init__(self, name: str, indices: dict[str, int], *marks: pytest.MarkDecorator) -> None:
        self.nodeid = f"{name}[{'-'.join(map(str, indices.values()))}]"
        self.callspec = SimpleNamespace(indices=indices)
        self.marks = list(marks)

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return next((mark.mark for mark in self.marks if mark.name == name), None)

    def add_marker(self, mark: pytest.MarkDecorator) -> None:
        self.marks.append(mark)


def kept(items: list[Item]) -> list[Item]:
    leave_out(cast("list[pytest.Item]", items))
    return [item for item in items if LEFT_OUT not in item.marks]


def table(name: str, *marks: pytest.MarkDecorator) -> list[Item]:
    return [Item(name, {"a": a, "b": b}, *marks) for a, b in product(range(3), range(2))]


def test_one_of_all() -> None:
    assert len(kept(table("test", pytest.mark.one_variant("a", "b")))) == 1


def test_one_value_for_each_of_the_others() -> None:
    found = kept(table("test", pytest.mark.one_variant("a")))
    assert [item.callspec.indices["b"] for item in sorted(found, key=lambda item: item.callspec.indices["b"])] == [0, 1]


def test_others_are_left_alone() -> None:
    assert len(kept(table("test", pytest.mark.check("a-1")))) == 6


def test_what_may_not_run_is_not_the_one_that_is_kept() -> None:
    late = pytest.mark.skipif(True, reason="takes long")
    for name in "abcdef":
        items = [Item(name, {"a": 0}, pytest.mark.one_variant("a"), late), Item(name, {"a": 1}, pytest.mark.one_variant("a"))]
        assert kept(items) == items


def test_it_is_always_the_same_one_and_not_the_same_for_all() -> None:
    def chosen(name: str) -> tuple[int, ...]:
        return tuple(kept(table(name, pytest.mark.one_variant("a", "b")))[0].callspec.indices.values())

    assert [chosen(name) for name in "abcdef"] == [chosen(name) for name in "abcdef"]
    assert len({chosen(name) for name in "abcdef"}) > 1
