"""The page about attacks, and the run that switches a policy off."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any, cast

import pytest

from attacks_table import BUDGETS, page, policies, protections, shown, unknown
from attacks_titles import ATTACKS, PARTS
from attacks_without import Judge, usage
from checks_titles import TITLES
from tenantry.testing.unprotected import AROUND, PROTECTIONS


def item(test: str, *marks: pytest.Mark) -> pytest.Item:
    return cast("pytest.Item", SimpleNamespace(nodeid=test, iter_markers=lambda name: [m for m in marks if m.name == name]))


def check(*numbers: str, **more: Any) -> pytest.Mark:
    return pytest.mark.check(*numbers, **more).mark


def row(number: str, text: str) -> list[str]:
    (line,) = re.findall(rf"^\| {number} \|(.*)\|$", text, re.MULTILINE)
    return [cell.strip() for cell in line.split(" |")]


def test_each_attack_has_a_title_and_a_place_on_the_page() -> None:
    """The two lists of attacks name the same numbers, and the parts of the page leave none out."""
    numbers = {f"a-{number}" for part in PARTS for number in range(part.first, part.last + 1)}

    assert set(ATTACKS) == {number for number in TITLES if number.startswith("a-")}
    assert set(ATTACKS) <= numbers


def test_a_row_says_what_the_markers_say() -> None:
    """Tests with their cases, every policy and every open sentence of a check are in its row; others' are not."""
    found = shown([
        item("tests/attacks/test_a.py::one[x]", check("a-33", without="guard-a")),
        item("tests/attacks/test_a.py::one[y]", check("a-33", without="guard-a"), check("a-33", "a-34", open="Not by night.")),
        item("tests/attacks/test_b.py::two", check("a-33", without=("guard-b", "guard-c")), check("hpo-1")),
    ])  # fmt: skip
    text = page(found, ["guard-a", "guard-b", "guard-c", "guard-d"])
    attack, stops, tests, without, not_held = row("a-33", text)

    assert (attack, stops) == ATTACKS["a-33"]
    assert tests == "[test_a.py](../tests/attacks/test_a.py): `one` (2)<br>[test_b.py](../tests/attacks/test_b.py): `two`"
    assert without == "`guard-a`<br>`guard-b`<br>`guard-c`"
    assert not_held == "Not by night."
    assert row("a-34", text)[2:] == ["[test_a.py](../tests/attacks/test_a.py): `one`", "", "Not by night."]
    assert "| `guard-c` | a-33 |" in text
    assert "| `guard-d` | none shown yet |" in text


def test_what_stops_an_attack_is_claimed_only_with_a_test() -> None:
    """A check without a test promises nothing."""
    assert row("a-1", page({}, [])) == [ATTACKS["a-1"].does, "", "", "", "no test yet"]


def test_markers_name_policies_and_attacks_that_there_are() -> None:
    """A misspelt name is found: it would show nothing."""
    found = shown([item("tests/a.py::one", check("a-33", without="guard-x")), item("tests/a.py::two", check("a-99"))])

    assert unknown(found, ["guard-a"]) == ["a-33: no policy guard-x", "a-99: no such attack"]
    assert unknown(found, ["guard-x"]) == ["a-99: no such attack"]


def test_policies_are_read_from_what_is_deployed() -> None:
    """All policies are known by the names of their objects, protections by how they are registered."""
    assert len(policies()) > 10
    assert all(name.startswith("tenantry-") for name in policies())
    assert protections().keys() == {*PROTECTIONS, *AROUND, "network-policies", "images-by-digest", "hashes-of-packages"}
    assert BUDGETS in protections()
    assert all(then.endswith(".") for then in protections().values())


def test_only_tests_that_name_the_policy_run_without_it() -> None:
    """The others show nothing about it; with all switched off all that name any run."""
    named, other = item("one", check("a-33", without=("guard-a", "guard-b"))), item("two", check("a-34", without="guard-c"))
    plain, apart = item("three", check("a-35")), item("four", check("a-36", without="first-come"))

    assert [Judge("guard-b").concerns(each) for each in (named, other, plain, apart)] == [True, False, False, False]
    assert [Judge("first-come").concerns(each) for each in (named, other, plain, apart)] == [False, False, False, True]
    assert [Judge("all").concerns(each) for each in (named, other, plain, apart)] == [True, True, False, False]


def test_each_test_must_fail_itself() -> None:
    """A test that passes, does not run, or was expected to fail shows nothing; without any test nothing is shown either."""
    judge = Judge("guard-a")
    assert judge.findings() == ["no test names guard-a"]
    for test, phases in {
        "fails": [("setup", "passed"), ("call", "failed"), ("teardown", "failed")],
        "passes": [("setup", "passed"), ("call", "passed"), ("teardown", "passed")],
        "breaks": [("setup", "failed"), ("teardown", "passed")],
        "takes long": [("setup", "skipped"), ("teardown", "failed")],
    }.items():
        for when, outcome in phases:
            judge.note(test, when, outcome)

    assert judge.findings() == [
        "breaks: did not run: failed at setup, though it must fail",
        "passes: passed, though it must fail",
    ]
    assert judge.skipped == {"takes long"}
    assert judge.not_run() == ["breaks"]


def test_a_test_that_runs_by_itself_is_not_run_again() -> None:
    """Its fixtures failed without anybody before it."""
    judge = Judge("guard-a")
    judge.note("breaks", "setup", "failed")
    assert judge.not_run() == []


def test_a_policy_must_be_named_that_there_is() -> None:
    """Who misspells a name is told the names."""
    assert [usage([name], ["guard-a"]) for name in ("guard-a", "all", "each")] == ["", "", ""]
    assert usage(["guard-b"], ["guard-a"]) == "no policy guard-b; there are guard-a, all and each"
    assert usage([], ["guard-a"]) == "no policy is named; there are guard-a, all and each"
