"""Label selectors: what they match, and what is wrong with them."""

from __future__ import annotations

from typing import Any

import pytest

from tenantry.model.selectors import BadSelector, parse_labels, parse_selector


@pytest.mark.parametrize(
    ("selector", "labels", "matches"),
    [
        ({}, {}, True),
        ({"matchLabels": {"a": "1"}}, {"a": "1", "b": "2"}, True),
        ({"matchLabels": {"a": "1"}}, {"a": "2"}, False),
        ({"matchLabels": None, "matchExpressions": None}, {}, True),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "2"]}]}, {"a": "2"}, True),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1"]}]}, {}, False),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, {}, True),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, {"a": "1"}, False),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, {"a": ""}, True),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, {"a": ""}, False),
        ({"matchLabels": {"a": "1"}, "matchExpressions": [{"key": "b", "operator": "Exists"}]}, {"a": "1"}, False),
    ],
)
def test_what_a_selector_matches(selector: dict[str, Any], labels: dict[str, str], matches: bool) -> None:
    """All requirements together, as the API server judges them."""
    assert parse_selector(selector).matches(labels) is matches


@pytest.mark.parametrize(
    ("selector", "words"),
    [
        ({"matchLabel": {}}, "matchLabel: unknown"),
        ({"matchLabels": {"a": 1}}, "matchLabels.a: the value must be a text"),
        ({"matchLabels": ["a"]}, "matchLabels: must be a map"),
        ({"matchExpressions": {"a": 1}}, "matchExpressions: must be a list"),
        ({"matchExpressions": ["a"]}, r"matchExpressions\[0\].key"),
        ({"matchExpressions": [{"key": "a", "operator": "Equals"}]}, "operator: must be one of"),
        ({"matchExpressions": [{"key": "a", "operator": "In"}]}, "need values"),
        ({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["1"]}]}, "need values"),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": "1"}]}, "list of texts"),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": [1]}]}, "list of texts"),
    ],
)
def test_what_is_wrong_with_a_selector(selector: dict[str, Any], words: str) -> None:
    """The message names the field below the selector."""
    with pytest.raises(BadSelector, match=words):
        parse_selector(selector)


def test_a_selector_as_a_map_of_labels() -> None:
    """Equality alone can be asked of the API server; anything else is judged here."""
    assert parse_labels({"a": "1", "b": "2"}).equalities == {"a": "1", "b": "2"}
    assert parse_labels({"a": ""}).equalities is None
    assert parse_selector({"matchExpressions": [{"key": "a", "operator": "Exists"}]}).equalities is None
    both = {"matchLabels": {"a": "1"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["1"]}]}
    assert parse_selector(both).equalities is None
