"""Bad input is told with its fix and runs nothing; what Helm takes runs Helm."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from chart_objects import ALL, ARCHIVE, SYSTEM, chart, event, further, said, seen, writes


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"chartContent": "no base64!"}, "InvalidChart"),
        ({"chartContent": base64.b64encode(b"a tar").decode()}, "InvalidChart"),
        ({"valuesContent": "a: [1"}, "InvalidValues"),
        ({"valuesContent": "- 1"}, "InvalidValues"),
        ({"helmVersion": "v2"}, "UnsupportedVersion"),
        ({"targetNamespace": "No_Name"}, "InvalidTargetNamespace"),
    ],
)
def test_bad_input_is_told_and_runs_nothing(spec: dict[str, Any], reason: str) -> None:
    """A mistake ends in a condition and a Warning, and makes nothing."""
    of = seen(chart(**spec))

    assert writes(of) == []
    assert said(of)["Failed"][:2] == ("True", reason)
    assert said(of)["JobCreated"][0] == "False"
    assert event(of) == reason


@pytest.mark.parametrize(("name", "reason"), [("x" * 51, "NameTooLong"), ("a.-", "InvalidName")])
def test_names_that_do_not_fit(name: str, reason: str) -> None:
    """A name must fit into those of the Job and the account."""
    assert said(seen(chart(name)))["Failed"][1] == reason


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("b: 1\na: ]", "not valid YAML in its line 2"),
        ("a: !!int ''", "not valid YAML"),
        ("- !!bool x", "not valid YAML"),
        ("a: !!timestamp x", "not valid YAML"),
        ("a: " + "[" * 500 + "]" * 500, "nested deeper than 120 levels"),
        ("a: " + "[" * 20_000, "nested deeper than 120 levels"),
        ("a: &a [*a]", "nested deeper than 120 levels"),
        ("just a text", "not a map"),
    ],
)
def test_values_that_cannot_be_used_are_told_with_the_fix(content: str, why: str) -> None:
    """Whatever stands there is told with the object, the field and the fix, and nothing of it."""
    expected = (
        f"spec.valuesContent of HelmChart {SYSTEM}/demo cannot be used ({why}): put one map of values in plain YAML there, "
        "such as `replicas: 2`"
    )

    assert said(seen(chart(valuesContent=content)))["Failed"] == ("True", "InvalidValues", expected)
    assert said(seen(further=further(valuesContent=content)))["Failed"][2] == expected.replace("HelmChart", "HelmChartConfig")
    assert writes(seen(chart(valuesContent=content))) == []


@pytest.mark.parametrize("content", ["a: =", "a: 2024-02-30", "a: 2026-99-99", "a: 12:30:99", "a:\t1", "a: 1\na: 2", "null"])
def test_values_that_helm_takes_run_helm(content: str) -> None:
    """What only looks like a date or an operator is a text to Helm."""
    assert writes(seen(chart(valuesContent=content))) == ALL


def test_good_values_pass() -> None:
    """Empty values, and those of a HelmChartConfig, are fine; its mistakes are told as its own."""
    assert writes(seen(chart(valuesContent="", chartContent=ARCHIVE), further=further(valuesContent="# nothing"))) == ALL
    assert writes(seen(chart(valuesContent="- 1\n" * 60_000))) == ALL, "Helm tells what is wrong with values of that size"
    assert "HelmChartConfig" in said(seen(further=further(valuesContent="- 1")))["Failed"][2]
