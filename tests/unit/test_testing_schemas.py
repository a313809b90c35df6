"""Strategies from schemas: rules that conflict or nest are kept together, and broken one at a time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from tenantry.testing import fuzz
from tenantry.testing.schema_rules import RULES, Rule
from tenantry.testing.schemas import Contradiction, UnknownRule, invalid, kept, rules_of, valid

SOME = settings(max_examples=10, deadline=None, database=None, suppress_health_check=list(HealthCheck))
UNKNOWN_FIELDS = "x-kubernetes-preserve-unknown-fields"
LIMITS = {"minLength": 2, "maxLength": 3, "pattern": "^[a-c]*$"}
BOUNDED_THINGS = {
    "text": {"type": "string", **LIMITS},
    "list": {"type": "array", "minItems": 2, "maxItems": 4, "items": {"type": "integer", "minimum": 1, "maximum": 9}},
    "either": {"x-kubernetes-int-or-string": True},
    "labels": {"type": "object", "maxProperties": 1, "additionalProperties": {"type": "string", **LIMITS}},
    "made": {"type": "boolean", "default": True},
}
BOUNDED_OBJECT = {"type": "object", "required": [*BOUNDED_THINGS], "properties": BOUNDED_THINGS, UNKNOWN_FIELDS: True}


def examples(made: st.SearchStrategy[Any]) -> list[Any]:
    """Some values, always the same."""
    found: list[Any] = []

    @seed(1)
    @SOME
    @given(made)
    def note(value: Any) -> None:
        found.append(value)

    note()
    return found


def places(schema: dict[str, Any]) -> list[dict[str, Any]]:
    inner = [*schema.get("properties", {}).values(), schema.get("additionalProperties"), schema.get("items")]
    return [schema, *(place for below in inner if isinstance(below, dict) for place in places(below))]


RULED = [place for _, schema in fuzz.custom_resources() for place in places(schema) if rules_of(place)]


@pytest.mark.parametrize("schema", RULED, ids=lambda schema: schema.get("description", schema["type"])[:20])
def test_rules_of_one_place_are_kept_together_and_broken_alone(schema: dict[str, Any]) -> None:
    """A valid value keeps all rules; each way to break one leaves the others kept, and mending brings it back."""
    rules = rules_of(schema)
    for value in examples(valid(schema)):
        assert value is None or all(rule.holds(value) for rule in rules.values())
    ways = [
        (mistake, made) for mistake, made in invalid(schema) if not mistake.path and mistake.what.startswith("breaks the rule")
    ]
    assert len(ways) == sum(len(rule.ways) for rule in rules.values())
    for mistake, made in ways:
        for value in examples(made):
            (broken,) = [text for text, rule in rules.items() if not rule.holds(value)]
            assert mistake.what == f"breaks the rule {broken}"
            assert rules[broken].needs or all(rule.holds(kept(rules.values(), value)) for rule in rules.values())


ONE_SORT, GROUPED = "(has(self.nonResourceURLs)", "!(has(self.resources)"
WANTS_VALUES, WANTS_NONE = "!(self.operator in ['In', 'NotIn'])", "!(self.operator in ['Exists', 'DoesNotExist'])"


@pytest.mark.parametrize(
    ("rule", "value", "kept_by"),
    [
        ("has(self.helmApiVersion)", {"helmApiVersion": "a/v1"}, True),
        ("has(self.helmApiVersion)", {"values": {}}, False),
        (WANTS_VALUES, {"operator": "In", "values": ["a"]}, True),
        (WANTS_VALUES, {"operator": "NotIn", "values": []}, False),
        (WANTS_VALUES, {"operator": "In"}, False),
        (WANTS_VALUES, {"operator": "Exists"}, True),
        (WANTS_NONE, {"operator": "Exists"}, True),
        (WANTS_NONE, {"operator": "Exists", "values": []}, True),
        (WANTS_NONE, {"operator": "DoesNotExist", "values": ["a"]}, False),
        (WANTS_NONE, {"operator": "In", "values": ["a"]}, True),
        (ONE_SORT, {"nonResourceURLs": ["/a"]}, True),
        (ONE_SORT, {"resources": ["pods"], "nonResourceURLs": []}, True),
        (ONE_SORT, {"resources": ["pods"], "nonResourceURLs": ["/a"]}, False),
        (ONE_SORT, {}, False),
        (GROUPED, {"resources": ["pods"], "apiGroups": [""]}, True),
        (GROUPED, {"resources": ["pods"]}, False),
        (GROUPED, {"resources": ["pods"], "apiGroups": []}, False),
        (GROUPED, {"resources": []}, True),
        ("has(self.sourceRef) !=", {"sourceRef": {}, "sourceSelector": {}}, False),
        ("has(self.sourceRef) !=", {"sourceRef": {}}, True),
        ("self.all(key, !format", {"example.com/a": ""}, True),
        ("self.all(key, !format", {"a=b": "c"}, False),
        ("self.all(key, dyn", {"a": None}, False),
        ("self.all(field", {}, True),
        ("self.all(field", {"matchLabel": {}}, False),
        ("self.endsWith", "field.cattle.io/*", True),
        ("self.endsWith", "*", False),
        ("!((self.group", {"group": "helm.toolkit.fluxcd.io", "resource": "helmreleases"}, False),
        ("has(self.field)", {"annotation": "a", "value": ""}, True),
        ("has(self.field)", {"annotation": "a"}, False),
        ("!has(self.kustomization)", {"kustomization": {}}, False),
        ("self.all(key, !key", {"toolkit.fluxcd.io/tenant": "a"}, False),
        ("[has(self.branch)", {"url": "a"}, False),
    ],
)
def test_what_rules_mean(rule: str, value: Any, kept_by: bool) -> None:
    """What a rule says in CEL, worked out by hand, is what it is explained as."""
    (found,) = [each for text, each in RULES.items() if text.startswith(rule)]
    assert found.holds(value) is kept_by


def test_every_rule_is_in_a_schema() -> None:
    """No rule is explained that no CRD has any more."""
    assert {text for schema in RULED for text in rules_of(schema)} == set(RULES)


def test_bounds_are_honoured() -> None:
    """Lengths, patterns, numbers of items and entries, integers or strings, defaults and unknown fields."""
    values = examples(valid(BOUNDED_OBJECT))
    for value in values:
        assert all(2 <= len(text) <= 3 and set(text) <= set("abc") for text in (value["text"], *value["labels"].values()))
        assert 2 <= len(value["list"]) <= 4
        assert all(1 <= number <= 9 for number in value["list"])
        assert type(value["either"]) in (int, str)
        assert len(value["labels"]) <= 1
    assert any(value.keys() - BOUNDED_THINGS.keys() for value in values)
    mistakes = {str(mistake) for mistake, _ in invalid(BOUNDED_OBJECT)}
    assert "lacks made" not in mistakes
    assert {
        "lacks text",
        "text is too short",
        "list has too many items",
        "list.* is too great",
        "labels.* is too long",
    } <= mistakes


def test_where_everything_is_valid_there_is_no_mistake() -> None:
    """A schema that takes every object, and one whose only rule is about changes, have nothing to break."""
    assert not invalid({"type": "object", UNKNOWN_FIELDS: True})
    assert not invalid(
        {"type": "object", "x-kubernetes-validations": [{"rule": "!oldSelf.hasValue() || self == oldSelf.value()"}]}
    )


def test_what_nobody_explained_is_an_error() -> None:
    """A rule that is not known, and rules that cannot be kept together."""
    with pytest.raises(UnknownRule, match=r"self\.a > 1"):
        valid({"type": "object", "x-kubernetes-validations": [{"rule": "self.a\n  > 1"}]})
    one, other = (Rule(wanted.__eq__, lambda _, wanted=wanted: wanted) for wanted in ("a", "b"))
    with pytest.raises(Contradiction):
        kept([one, other], "c")
