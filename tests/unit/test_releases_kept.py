"""What is kept of ProjectHelmCharts and of dashboard values while they are read, and the budget of values."""

from __future__ import annotations

from typing import Any

import pytest
from cost import cpu_of

from release_provisioning.kept import SweptCharts, SweptHelmCharts, are_small, digests_of, kept_chart
from release_provisioning.projects.dashboards import KeptDashboards, dashboards_of
from release_provisioning.projects.values import values_problem
from tenantry.model import limits
from tenantry.model.digest import Digest
from tenantry.model.kinds import Object
from tenantry.model.names import DASHBOARD_VALUES
from tenantry.model.releases import header_of
from tenantry.model.values import LeftOut, Oversized, as_yaml, budget_problem


def chart(values: Any, **status: Any) -> Object:
    metadata = {"name": "demo", "namespace": "p", "annotations": {"short": "x", "long": "x" * 5000}}
    return {"metadata": metadata, "spec": {"helmApiVersion": "v1", "values": values}, "status": status}


def board(name: str, namespace: str, data: dict[str, str]) -> Object:
    return {"metadata": {"name": name, "namespace": namespace, "labels": {DASHBOARD_VALUES: "r"}}, "data": data}


def deep(levels: int) -> Any:
    value: Any = {}
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (None, ""),
        ({"a": 1}, ""),
        ({"x": "y" * (limits.VALUES_BYTES - 8)}, ""),
        ({"x": "y" * (limits.VALUES_BYTES - 7)}, "262,145 bytes as JSON, more than 262,144 bytes"),
        ({str(number): number for number in range(limits.VALUES)}, ""),
        ({str(number): number for number in range(limits.VALUES + 1)}, "more than 10,000 values"),
        ({"x": [[]] * limits.VALUES}, "more than 10,000 values"),
        (deep(limits.VALUES_LEVELS), ""),
        (deep(limits.VALUES_LEVELS + 1), "more than 100 levels"),
    ],
)
def test_values_over_a_budget_are_told_and_not_kept(values: Any, words: str) -> None:
    """The limit is named, also when the values themselves were not kept; what fits is kept as it is."""
    problem = budget_problem(values)

    assert words in problem if words else problem == ""
    kept = kept_chart(chart(values))
    assert values_problem(kept) == values_problem(chart(values)) == (f"spec.values {problem}" if words else "")
    assert isinstance(kept["spec"]["values"], Oversized) == bool(words)
    assert words or kept["spec"]["values"] == values


def test_of_large_values_a_digest_is_kept_wherever_they_are_read() -> None:
    """How many releases of large values are looked at decides nothing of a process's memory."""
    large = {"x": "y" * limits.VALUES_SMALL_BYTES}
    kept = kept_chart(chart(large))
    assert isinstance(kept["spec"]["values"], Digest)
    assert kept["spec"]["values"] == large
    assert kept_chart(kept) is kept
    assert SweptCharts()(kept)["spec"]["values"] == large


def test_long_texts_become_digests() -> None:
    """Short texts and everything else of the object stay."""
    long = "x" * (limits.SWEEP_TEXT_BYTES + 1)
    kept = digests_of({"kind": "Secret", "data": {"long": long, "short": "y", "number": 1}}, "data")
    assert {name: type(value) for name, value in kept["data"].items()} == {"long": Digest, "short": str, "number": int}
    assert kept["data"]["long"] == long
    assert kept["kind"] == "Secret"
    assert digests_of({"kind": "Secret"}, "data") == {"kind": "Secret"}


def test_of_helm_charts_a_sweep_keeps_texts_up_to_a_sum() -> None:
    """Beyond it everything but the long texts is kept, and that they were left out."""
    half = "x" * (limits.SWEEP_VALUES_BYTES // 2)
    keep = SweptHelmCharts()
    made = {"metadata": {"name": "a"}, "spec": {"targetNamespace": "t", "valuesContent": half}}
    assert [keep(made), keep(made)] == [made, made]
    rest = keep(made)
    assert isinstance(rest, LeftOut)
    assert rest == {"metadata": {"name": "a"}, "spec": {"targetNamespace": "t"}}
    small = {"metadata": {"name": "b"}, "spec": {"valuesContent": "y"}}
    assert keep(small) is small
    assert keep({"metadata": {"name": "c"}}) == {"metadata": {"name": "c"}}


def test_what_is_much_too_large_is_refused_at_once() -> None:
    """Half a million empty lists are not walked through: a twentieth of them costs about as much."""
    wide, wider = ({"x": [[]] * number} for number in (25_000, 500_000))

    assert "values" in budget_problem(wider)
    assert cpu_of(lambda: budget_problem(wider)) < 5 * cpu_of(lambda: budget_problem(wide))


def test_a_header_has_neither_values_nor_dashboards() -> None:
    """What is left is who it is, what it asks for, and what it was told."""
    found = header_of(chart({"a": 1}, releaseName="r", dashboardValues={"b": 1}))

    assert found["spec"] == {"helmApiVersion": "v1"}
    assert found["status"] == {"releaseName": "r"}
    assert found["metadata"]["annotations"] == {"short": "x"}
    assert header_of({"metadata": {"name": "x"}}) == {"metadata": {"name": "x"}}


def test_a_sweep_keeps_digests_of_what_is_large() -> None:
    """Small values stay, up to a sum; a digest equals what it was made of, and nothing else."""
    large = {"x": "y" * limits.VALUES_SMALL_BYTES}
    keep = SweptCharts()

    assert keep(chart({"a": 1}))["spec"]["values"] == {"a": 1}
    digest = keep(chart(large, dashboardValues=large))
    assert isinstance(digest["spec"]["values"], Digest)
    assert digest["spec"]["values"] == large == digest["status"]["dashboardValues"]
    assert digest["spec"]["values"] != {"x": "y"}
    assert values_problem(digest) == ""
    small = chart({"x": "y" * 4000})
    kept = [keep(small)["spec"]["values"] for _ in range(1000)]
    assert not isinstance(kept[0], Digest)
    assert isinstance(kept[-1], Digest)
    assert kept[-1] == kept[0]


def test_of_dashboards_as_much_is_kept_as_can_be_used() -> None:
    """Large texts and what is beyond a release's sum are told; other places are empty; beyond the sum of all nothing is known."""
    half = '{"x": "' + "y" * (limits.DASHBOARD_BYTES - 10) + '"}'
    keep = KeptDashboards()
    kept = [keep(board(f"b{number}", "p", {"a.json": half, "large.json": half + half})) for number in range(6)]

    assert [isinstance(each["data"]["a.json"], str) for each in kept] == [True] * 4 + [False] * 2
    assert all(isinstance(each["data"]["large.json"], Oversized) for each in kept)
    assert (
        "b0/large.json is too large: the dashboard values of a release have at most 262,144 bytes" in dashboards_of(kept).left_out
    )
    many = keep(board("z", "q", {f"{number:05}.json": "{}" for number in range(35_000)}))
    assert len(many["data"]) == limits.DASHBOARD_KEYS + 1
    assert keep.has_enough("q", "r")
    assert not keep.has_enough("other", "r")

    swept = KeptDashboards(lambda namespace, _: namespace != "elsewhere", limits.DASHBOARD_BYTES)
    assert swept(board("a", "elsewhere", {"a.json": half}))["data"] == {}
    assert swept(board("a", "p", {"a.json": half}))["data"] == {"a.json": half}
    assert swept(board("a", "q", {"a.json": half}))["data"] is None


def test_values_become_yaml_in_a_time_that_grows_with_their_number() -> None:
    """Four times as many, up to as many as there may be, cost about four times as much, and not sixteen times."""
    some, most = ({f"key-{key} é": f"{key} text" for key in range(number)} for number in (limits.VALUES // 4, limits.VALUES))

    assert as_yaml(most)
    assert cpu_of(lambda: as_yaml(most)) < 10 * cpu_of(lambda: as_yaml(some))


def test_what_was_not_kept_is_not_small() -> None:
    """Values over their budget, and digests of large ones, are no values that a plan could make a text of."""
    assert not are_small(Oversized("too many"))
    assert not are_small(Digest({"a": 1}))
    assert are_small({"a": 1})
