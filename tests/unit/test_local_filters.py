"""Trigger filters: what passes, as observed on the real broker, and what is refused when loading."""

from __future__ import annotations

from typing import Any

import pytest

from tenantry.local.filters import FilterError, parse_filters, parse_legacy
from tenantry.model.event import Event

PREFIX = "dev.knative.apiserver.resource."


def event(kind: str, name: str, verb: str = "add", **extensions: str) -> Event:
    return Event(id="1", source="https://10.0.0.1:443", type=PREFIX + verb, extensions={"kind": kind, "name": name, **extensions})


# A Namespace with an empty namespace attribute, a ConfigMap, the Namespace without the attribute, a deleted ClusterRole.
EVENTS = {
    "N": event("Namespace", "foo", namespace=""),
    "C": event("ConfigMap", "bar", namespace="a"),
    "M": event("Namespace", "foo"),
    "R": event("ClusterRole", "bar", "delete", namespace=""),
}


def passed(predicate: Any) -> str:
    return "".join(name for name, each in EVENTS.items() if predicate.matches(each))


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([{"exact": {"kind": "Namespace"}}], "NM"),
        ([{"exact": {"kind": "Namespace", "name": "foo"}}], "NM"),
        ([{"exact": {"kind": "Namespace"}}, {"exact": {"name": "foo"}}], "NM"),
        ([{"exact": {"kind": "namespace"}}], ""),
        ([{"prefix": {"type": "dev.knative.apiserver."}}], "NCMR"),
        ([{"suffix": {"type": ".delete"}}], "R"),
        ([{"all": [{"exact": {"kind": "Namespace"}}, {"not": {"exact": {"name": "bar"}}}]}], "NM"),
        ([{"any": [{"exact": {"kind": "Namespace"}}, {"exact": {"kind": "ConfigMap"}}]}], "NCM"),
        ([{"not": {"exact": {"kind": "Namespace"}}}], "CR"),
        ([{"not": {"any": [{"exact": {"namespace": "a"}}, {"suffix": {"type": "delete"}}]}}], "NM"),
        ([{"exact": {"specversion": "1.0", "source": "https://10.0.0.1:443"}}], "NCMR"),
        ([{"exact": {"subject": "x"}}], ""),
    ],
)
def test_what_passes(filters: Any, expected: str) -> None:
    """Filters let the same events through as the broker of Knative does."""
    assert passed(parse_filters(filters)) == expected


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [({"namespace": ""}, "C"), ({"missing": ""}, ""), ({"kind": "Namespace"}, "NM"), ({}, "NCMR"), (None, "NCMR")],
)
def test_legacy_attributes(attributes: Any, expected: str) -> None:
    """In the legacy filter an empty value means any value but an empty one."""
    assert passed(parse_legacy({"attributes": attributes})) == expected


@pytest.mark.parametrize(
    ("filters", "path", "reason"),
    [
        ([{"exact": {"namespace": ""}}], "filters[0].exact.namespace", "empty value"),
        ([{"prefix": {"namespace": ""}}], "filters[0].prefix.namespace", "empty value"),
        ([{"suffix": {"namespace": ""}}], "filters[0].suffix.namespace", "empty value"),
        ([{"not": {"exact": {"namespace": ""}}}], "filters[0].not.exact.namespace", "empty value"),
        ([{"any": [{"exact": {"a": "b"}}, {"exact": {"c": ""}}]}], "filters[0].any[1].exact.c", "empty value"),
        ([{"exact": {}}], "filters[0].exact", "not an empty one"),
        ([{"all": []}], "filters[0].all", "at least one"),
        ([{"any": []}], "filters[0].any", "at least one"),
        ([], "filters", "at least one"),
        ([{}], "filters[0]", "exactly one dialect"),
        ([{"exact": {"a": "b"}, "prefix": {"a": "b"}}], "filters[0]", "exactly one dialect"),
        ([{"regex": {"a": "b"}}], "filters[0].regex", "unknown dialect"),
        ([{"not": {"regex": {"a": "b"}}}], "filters[0].not.regex", "unknown dialect"),
        ([{"exact": {"Kind": "b"}}], "filters[0].exact.Kind", "lower-case"),
        ([{"exact": {"a": 1}}], "filters[0].exact.a", "expected a string"),
        ([{"cesql": "kind = 'x'"}], "filters[0].cesql", "no CloudEvents SQL: write it with exact, prefix"),
        ([{"not": {"cesql": "kind = 'x'"}}], "filters[0].not.cesql", "no CloudEvents SQL"),
        ("x", "filters", "expected a list"),
    ],
)
def test_what_is_refused(filters: Any, path: str, reason: str) -> None:
    """What brokers fail open on, or crash on, is refused when loading, at any depth, with its place."""
    with pytest.raises(FilterError) as refused:
        parse_filters(filters, "filters")

    assert refused.value.path == path
    assert reason in str(refused.value)


def test_a_filter_says_which_attributes_it_looks_at() -> None:
    """So that events that are equal in these can be told to pass alike."""
    inner = [{"exact": {"kind": "a", "name": "b"}}, {"not": {"prefix": {"type": "c"}}}, {"any": [{"suffix": {"subject": "d"}}]}]
    assert parse_filters([*inner, {"all": [{"exact": {"watch": "e"}}]}]).names == {"kind", "name", "type", "subject", "watch"}
    assert parse_legacy({"attributes": {"kind": "a", "source": ""}}).names == {"kind", "source"}
    assert parse_legacy({}).names == frozenset()
