"""Quotas of Paas as numbers: shares, limits of capabilities, and what all Paas share, with the figures of the checks."""

from __future__ import annotations

from fractions import Fraction

import pytest
from cost import cpu_of
from hypothesis import given
from hypothesis import strategies as st

from namespace_registration import quotas
from tenantry.model.paas.config import CapabilityConfig

THREE = ("my-paas-cicd", "my-paas-prod", "my-paas-test")
CPU = "limits.cpu"


def tekton(ratio: str = "0.1", default: str = "1", least: str = "3", most: str = "10") -> CapabilityConfig:
    """A clusterwide capability; the figures are those of p-30."""
    return CapabilityConfig(clusterwide=True, ratio=ratio, defaults={CPU: default}, least={CPU: least}, most={CPU: most})


def shared(values: list[str], known: CapabilityConfig) -> str:
    """The shared quota of limits.cpu, where each Paas asks for one of the values; empty: what is the default."""
    return quotas.clusterwide_quota([{CPU: value} if value else {} for value in values], known)[CPU]


# -- shares ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("resource", "total", "expected"),
    [
        ("limits.cpu", "40", ["13334m", "13333m", "13333m"]),
        ("limits.memory", "1Gi", ["357913942", "357913941", "357913941"]),
        ("pods", "10", ["4", "3", "3"]),
        ("requests.nvidia.com/gpu", "2", ["1", "1", "0"]),
        ("limits.cpu", "0.5", ["167m", "167m", "166m"]),
        ("limits.cpu", "1m", ["1m", "0", "0"]),
        ("limits.cpu", "24", ["8", "8", "8"]),
        ("requests.storage", "3Gi", ["1Gi", "1Gi", "1Gi"]),
    ],
)
def test_shares_of_three_namespaces_are_whole_units_with_the_rest_in_order_of_names(
    resource: str, total: str, expected: list[str]
) -> None:
    """p-59, p-145, p-147: each namespace gets the same, and the first ones what is left, one unit each."""
    found = quotas.shares({resource: total}, list(reversed(THREE)))
    assert [found[name][resource] for name in THREE] == expected


def test_shares_of_no_namespace_are_none() -> None:
    """Nobody to share with is no error."""
    assert quotas.shares({CPU: "40"}, []) == {}


def test_an_empty_quota_has_empty_shares() -> None:
    """Each namespace is named, with nothing."""
    assert quotas.shares({}, ["a"]) == {"a": {}}


amounts = st.builds(
    lambda whole, rest, suffix: f"{whole}{rest}{suffix}",
    st.integers(0, 10**6),
    st.sampled_from(["", ".5", ".001", ".123456789"]),
    st.sampled_from(["", "m", "k", "M", "Ki", "Mi", "Gi", "e3", "E-2"]),
)
resources = st.sampled_from(["limits.cpu", "cpu", "limits.memory", "pods", "requests.storage", "gold.x/requests.storage"])


@given(st.dictionaries(resources, amounts), st.sets(st.from_regex(r"[a-z]{1,4}", fullmatch=True), min_size=1, max_size=9))
def test_shares_together_are_the_quota_in_whole_units(total: dict[str, str], names: set[str]) -> None:
    """No unit is lost and none is made; no two shares differ by more than a unit, and earlier names have no less."""
    found = quotas.shares(total, sorted(names))
    for resource, text in total.items():
        unit = quotas.unit_of(resource)
        parts = [quotas.number(found[name][resource]) for name in sorted(names)]
        assert sum(parts) == quotas.number(text) // unit * unit
        assert parts == sorted(parts, reverse=True)
        assert parts[0] - parts[-1] <= unit


# -- numbers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1000m", "1"),
        ("0.5", "500m"),
        ("1.5", "1500m"),
        ("1.5Gi", "1536Mi"),
        ("1e3", "1k"),
        ("12345", "12345"),
        ("100n", "100n"),
        ("8Ei", str(quotas.MOST)),
        ("9" * 4000, str(quotas.MOST)),
        ("1.0000000000000000000000000000000000", "1"),
        ("abc", "0"),
        ("-1", "0"),
        ("1.2.3", "0"),
        ("", "0"),
    ],
)
def test_quantities_are_written_in_the_shortest_exact_form(text: str, expected: str) -> None:
    """Without fractions, as Kubernetes writes them; too much is the most, and no quantity is nothing."""
    assert quotas.normal({"x": text}) == {"x": expected}


@given(amounts)
def test_the_written_form_is_the_same_number(text: str) -> None:
    """What is finer than a billionth counts as one, as in Kubernetes; everything else is exact."""
    assert quotas.number(quotas.normal({"x": text})["x"]) == quotas.number(text)


def test_huge_exponents_cost_no_time() -> None:
    """The API server takes 1e999999 for a quantity: it counts as the most there is, for about what 1e9 costs."""
    assert quotas.number("1e999999") == quotas.number("1e999") == quotas.MOST
    assert quotas.number("1e-999999") == quotas.number("0e999999") == 0
    found = quotas.shares({CPU: "1e999999"}, THREE)
    assert sum(quotas.number(each[CPU]) for each in found.values()) == quotas.MOST
    assert quotas.clusterwide_quota([{CPU: "1e999999"}] * 200, tekton(most="1e999999"))[CPU] == str(quotas.MOST)

    def costs(text: str) -> float:
        return cpu_of(lambda: [quotas.shares({CPU: text}, THREE) for _ in range(50)])

    assert costs("1e999999") < 10 * costs("1e9")


# -- capabilities ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("own", "expected"),
    [("", "8"), ("1", "2"), ("4", "4"), ("20", "16"), ("2000m", "2"), ("16001m", "16")],
)
def test_a_capability_has_its_own_value_or_the_default_within_the_limits(own: str, expected: str) -> None:
    """p-152: below min it is min, above max it is max."""
    known = CapabilityConfig(defaults={CPU: "8"}, least={CPU: "2"}, most={CPU: "16"})
    assert quotas.capability_quota({CPU: own} if own else {}, known) == {CPU: expected}


def test_a_key_without_default_is_taken_from_the_paas() -> None:
    """p-152: what only the Paas names is there too, and what neither names is not."""
    known = CapabilityConfig(defaults={CPU: "8"}, most={"limits.memory": "1Gi", "pods": "5"})
    assert quotas.capability_quota({"limits.memory": "4Gi"}, known) == {CPU: "8", "limits.memory": "1Gi"}


def test_nothing_anywhere_is_no_quota() -> None:
    """p-153: the empty maps of the source's example-capability."""
    assert quotas.capability_quota({}, CapabilityConfig()) == {}
    assert quotas.clusterwide_quota([{}, {}], CapabilityConfig(clusterwide=True)) == {}
    assert quotas.clusterwide_quota([], tekton()) == {}


@pytest.mark.parametrize(("own", "expected"), [("", "1"), ("500m", "500m"), ("20", "10")])
def test_without_quotas_of_the_cluster_a_clusterwide_capability_has_its_own_value_up_to_max(own: str, expected: str) -> None:
    """p-149: min and ratio are not used."""
    assert quotas.fallback_quota({CPU: own} if own else {}, tekton()) == {CPU: expected}


@pytest.mark.parametrize(
    ("values", "known", "expected"),
    [
        ([""] * 3, tekton(), "3"),  # p-30: min
        ([""] * 40, tekton(), "4"),  # p-31
        ([""] * 200, tekton(), "10"),  # p-31: max
        (["500m"] * 3, tekton("0.5", least="0"), "1"),  # p-32: the two largest
        (["500m"] * 3, tekton("1", least="0"), "1500m"),  # p-32
        ([""] * 2, tekton(), "3"),  # p-67
        (["6", ""], tekton(), "7"),  # p-67
        (["250m"] * 30, tekton(least="0"), "750m"),  # p-68
        (["250m"] * 29 + ["500m"], tekton(least="0"), "775m"),  # p-68
        (["1"] * 7, tekton("0.3333333333333333", least="0"), "2333m"),
    ],
)
def test_a_clusterwide_quota_follows_from_all_paas(values: list[str], known: CapabilityConfig, expected: str) -> None:
    """min(max(ratio x sum, sum of the two largest, min), max), rounded down to the unit, not to whole numbers."""
    assert shared(values, known) == expected


def test_bytes_of_a_clusterwide_quota_are_whole() -> None:
    """Memory is rounded down to bytes."""
    known = CapabilityConfig(clusterwide=True, ratio="0.5")
    assert quotas.clusterwide_quota([{"memory": "1"}] * 5, known) == {"memory": "2"}


# -- what is told ------------------------------------------------------------------------------------------------------


def test_shares_of_nothing_are_named() -> None:
    """p-145: for QuotaShareZero."""
    assert quotas.zero_shares({"requests.nvidia.com/gpu": "0", "pods": "3", "cpu": "0m"}) == ["cpu", "requests.nvidia.com/gpu"]


def test_requests_above_limits_are_named() -> None:
    """p-154: compared as numbers; cpu alone means requests.cpu."""
    quota = {"requests.cpu": "2", "limits.cpu": "1500m", "requests.memory": "1024Mi", "limits.memory": "1Gi", "cpu": "3"}
    assert quotas.requests_above_limits(quota) == ["cpu", "requests.cpu"]


def test_quotas_are_compared_as_numbers() -> None:
    """1000m is 1; another number, or another resource, is not."""
    assert quotas.equal({CPU: "1", "memory": "1Gi"}, {"memory": "1024Mi", CPU: "1000m"})
    assert not quotas.equal({CPU: "1"}, {CPU: "1001m"})
    assert not quotas.equal({CPU: "1"}, {"cpu": "1"})
    assert not quotas.equal({CPU: "1"}, {CPU: "1", "pods": "0"})


def test_units() -> None:
    """Thousandths of CPUs, whole ones of all else."""
    assert quotas.unit_of("requests.cpu") == Fraction(1, 1000)
    assert {quotas.unit_of(name) for name in ("memory", "gold.storageclass.storage.k8s.io/requests.storage", "pods")} == {1}
