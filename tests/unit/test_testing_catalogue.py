"""The plans of the matrix: which follow from what undisturbed runs did."""

from __future__ import annotations

from collections import Counter

import pytest

from tenantry.testing.catalogue import ANSWERS, PASSING
from tenantry.testing.perturbations import Mixed

TOGETHER = next(each for each in ANSWERS if issubclass(each, Mixed))


@pytest.mark.parametrize("count", [1, 2, 4, 5, 6, 23])
def test_each_request_is_given_each_answer_that_passes(count: int) -> None:
    """Plans that try several at once try all on all: each answer on each request once, and no request twice in a plan."""
    targets = [f"get pods ns/{number} #1" for number in range(count)]
    plans = TOGETHER.combined(targets)
    given = [(target, answer) for plan in plans for target, answer in zip(plan.split(" and "), PASSING, strict=True) if target]

    assert Counter(given) == Counter((target, answer) for target in targets for answer in PASSING)
    assert all(len(hit := [each for each in plan.split(" and ") if each]) == len(set(hit)) for plan in plans)
    assert len(plans) == max(count, len(PASSING))


def test_nothing_to_answer_is_no_plan() -> None:
    """A scenario with nothing new to answer adds none."""
    assert TOGETHER.combined([]) == []
