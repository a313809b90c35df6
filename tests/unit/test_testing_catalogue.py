"""The plans of the matrix: which follow from what undisturbed runs did."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, cast

import pytest

from tenantry.testing.catalogue import ANSWERS, PASSING
from tenantry.testing.oracle import Evidence
from tenantry.testing.perturbations import Mixed, Stale
from tenantry.testing.recording import Exchange
from tenantry.testing.workload import Workload

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


def exchange(verb: str, name: str, body: Any = None) -> Exchange:
    sent = json.dumps(body).encode() if body is not None else b""
    return Exchange(1, 0.0, 0.0, "f", verb, "v1", "pods", "", "ns", name, {}, 200, 200, changed=body is not None, sent=sent)


@pytest.mark.parametrize(("path", "stale"), [("/spec", ["get pods ns/a #1", "get pods ns/b #1"]), ("/metadata", [])])
def test_reads_before_a_patch_that_takes_something_away_may_be_stale(path: str, stale: list[str]) -> None:
    """The workload says which steps of a JSON patch do; a read after it is left alone."""
    workload = Workload("some-function", destroys=lambda step: step.get("path") == "/spec")
    steps = [{"op": "test", "path": "/metadata/uid", "value": "u"}, {"op": "add", "path": path, "value": {}}]
    run = Evidence("r000001r", "story", cast(Any, None))
    run.disturbed = [exchange("get", "a"), exchange("get", "b"), exchange("patch", "a", steps), exchange("get", "a")]
    assert list(Stale(workload).targets(run)) == stale
