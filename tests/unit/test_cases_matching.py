"""Where an object is not as a test expects it."""

from __future__ import annotations

from typing import Any

import pytest

from tenantry.testing.cases.matching import path_of, unlike

LIVE = {
    "metadata": {"name": "a", "labels": {"team": "a", "x.dev/on": "true"}},
    "subjects": [{"kind": "User", "name": "alice"}, {"kind": "User", "name": "bob"}],
    "status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Broken"}]},
    "count": 1,
}


def found(expected: Any, *exact: str) -> list[str]:
    return [f"{path_of(each.place)} {each.said}" for each in unlike(expected, LIVE, exact)]


@pytest.mark.parametrize(
    "expected",
    [
        {},
        {"metadata": {"labels": {"team": "a"}}},
        {"subjects": [{"name": "bob"}]},
        {"subjects": [{"name": "bob"}, {"name": "alice"}]},
        {"subjects": [{"kind": "User"}, {"name": "alice"}]},
        {"status": {"conditions": [{"type": "Ready"}]}},
        {"metadata": {"annotations": None}},
    ],
)
def test_a_part_of_an_object_is_enough(expected: Any) -> None:
    """Other fields and entries may be there, entries come in any order, and null is what is not there."""
    assert found(expected) == []


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        ({"metadata": {"labels": {"x.dev/on": "false"}}}, ["metadata.labels[x.dev/on] is 'true'; expected 'false'"]),
        ({"spec": {"a": 1}}, ["spec is missing; expected {'a': 1}"]),
        ({"metadata": {"labels": {"team": None}}}, ["metadata.labels.team is 'a', and should not be there"]),
        ({"subjects": [{"name": "carol"}]}, ["subjects[0] is missing: no other entry is like {'name': 'carol'}"]),
        ({"subjects": [{"kind": "User"}] * 3}, ["subjects[2] is missing: no other entry is like {'kind': 'User'}"]),
        (
            {"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
            ["status.conditions[0].status is 'False'; expected 'True'"],
        ),
        ({"count": True}, ["count is 1; expected True"]),
        ({"count": "1"}, ["count is 1; expected '1'"]),
        ({"count": {"a": 1}}, ["count is 1; expected {'a': 1}"]),
    ],
)
def test_what_differs_is_named_with_its_path(expected: Any, said: list[str]) -> None:
    """Each difference has its path, what is there, and what was expected; an entry is compared with the one of its name."""
    assert found(expected) == said


def test_exactly_that_and_nothing_else() -> None:
    """At a path that is exact no other entry or key may be."""
    assert found({"subjects": [{"name": "bob"}, {"name": "alice"}]}, "subjects") == []
    assert found({"subjects": [{"name": "bob"}]}, "subjects") == [
        "subjects has {'kind': 'User', 'name': 'alice'}, and should not"
    ]
    assert found({"metadata": {"labels": {"team": "a"}}}, "metadata.labels") == ["metadata.labels has x.dev/on, and should not"]
