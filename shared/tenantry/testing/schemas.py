"""Strategies from a CRD's schema: what an API server must accept, and what it must refuse.

`valid` makes values that an ``openAPIV3Schema`` allows; `invalid` breaks exactly one rule of one of them and says which.  The
rules in CEL that our CRDs have are known here by their text; a rule that is not known is an error, so that nobody adds one
without saying what it means.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from hypothesis import strategies as st

Schema = Mapping[str, Any]
_KEPT = "x-kubernetes-preserve-unknown-fields"
_WORDS = st.text(alphabet="abzAZ09-_./ é", max_size=12)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | _WORDS, lambda below: st.lists(below, max_size=2), max_leaves=4
)


@dataclass(frozen=True, slots=True)
class Rule:
    """What a CEL rule means: whether a value keeps it, how to make one keep it, and how to make one break it."""

    holds: Callable[[Any], bool]
    mend: Callable[[Any], Any]
    broken: Callable[[Any], Any]

    def kept(self, value: Any) -> Any:
        """The value, or one that keeps the rule."""
        return value if value is None or self.holds(value) else self.mend(value)


def _without(value: Any, name: str) -> Any:
    return {key: below for key, below in value.items() if key != name}


def _needs_values(value: Any) -> bool:
    return value.get("operator") not in ("In", "NotIn") or bool(value.get("values"))


def _takes_no_values(value: Any) -> bool:
    return value.get("operator") not in ("Exists", "DoesNotExist") or not value.get("values")


RULES: Mapping[str, Rule] = {
    "has(self.spec) || (oldSelf.hasValue() && !has(oldSelf.value().spec))": Rule(
        lambda value: value.get("spec") is not None,
        lambda value: {"spec": {"helmApiVersion": "dummy.cattle.io/v1alpha1"}, **value},
        lambda value: _without(value, "spec"),
    ),
    "has(self.helmApiVersion)": Rule(
        lambda value: value.get("helmApiVersion") is not None,
        lambda value: {**value, "helmApiVersion": "dummy.cattle.io/v1alpha1"},
        lambda value: {**value, "helmApiVersion": None},
    ),
    "!(self.operator in ['In', 'NotIn']) || (has(self.values) && self.values.size() > 0)": Rule(
        _needs_values, lambda value: {**value, "values": ["a"]}, lambda value: {**value, "operator": "In", "values": []}
    ),
    "!(self.operator in ['Exists', 'DoesNotExist']) || !has(self.values) || self.values.size() == 0": Rule(
        _takes_no_values, lambda value: _without(value, "values"), lambda value: {**value, "operator": "Exists", "values": ["a"]}
    ),
}


class UnknownRule(LookupError):
    """A schema has a CEL rule that nobody explained here."""


def rules_of(schema: Schema) -> list[Rule]:
    """The rules at one place of a schema.

    Raises:
        UnknownRule: with its text.
    """
    found = []
    for each in schema.get("x-kubernetes-validations") or ():
        text = " ".join(str(each["rule"]).split())
        if text not in RULES:
            raise UnknownRule(f"explain the CEL rule {text!r} in {__name__}.RULES")
        found.append(RULES[text])
    return found


def valid(schema: Schema) -> st.SearchStrategy[Any]:
    """Values that the schema allows."""
    made = _typed(schema)
    for rule in rules_of(schema):
        made = made.map(rule.kept)
    return st.none() | made if schema.get("nullable") else made


def _typed(schema: Schema) -> st.SearchStrategy[Any]:
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    match schema.get("type"):
        case "object":
            return _object(schema)
        case "array":
            return st.lists(valid(schema["items"]), max_size=min(3, schema.get("maxItems", 3)))
        case "integer":
            return st.integers(schema.get("minimum", -(2**31)), schema.get("maximum", 2**31))
        case "boolean":
            return st.booleans()
        case "string" if schema.get("format") == "date-time":
            return st.just("2020-01-01T00:00:00Z")
        case "string" if "pattern" in schema:
            return st.sampled_from(["Ready", "Accepted"])
        case "string":
            return _WORDS.filter(lambda text: len(text) >= schema.get("minLength", 0))
        case _:
            return _JSON


def _object(schema: Schema) -> st.SearchStrategy[Any]:
    properties = schema.get("properties") or {}
    if properties:
        required = set(schema.get("required") or ())
        fixed = {name: valid(below) for name, below in properties.items() if name in required}
        free = {name: valid(below) for name, below in properties.items() if name not in required}
        return st.fixed_dictionaries(fixed, optional=free)
    if isinstance(schema.get("additionalProperties"), Mapping):
        return st.dictionaries(st.sampled_from(["a", "b", "team.example/x"]), valid(schema["additionalProperties"]), max_size=2)
    return st.dictionaries(_WORDS.filter(bool), _JSON, max_size=2) if schema.get(_KEPT) else st.just({})


@st.composite
def invalid(draw: st.DrawFn, schema: Schema) -> tuple[Any, str]:
    """A value with exactly one mistake, and what it is."""
    value = draw(valid(schema).filter(lambda made: made is not None))
    value, path, break_it, why = draw(st.sampled_from(list(_mistakes(schema, value, ()))))
    broken = copy.deepcopy(value)
    if not path:
        return break_it(broken), why
    inner = broken
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = break_it(inner[path[-1]])
    return broken, f"{'.'.join(map(str, path))}: {why}"


Mistake = tuple[Any, tuple[Any, ...], Callable[[Any], Any], str]


def _mistakes(schema: Schema, value: Any, path: tuple[Any, ...], whole: Any = None) -> Iterator[Mistake]:
    whole = value if whole is None else whole
    if value is None:
        return
    for why, break_it in _mistakes_here(schema):
        if path or not why.startswith("is "):
            yield whole, path, break_it, why
    for step, below in _below(schema, value):
        yield from _mistakes(below, value[step], (*path, step), whole)


def _mistakes_here(schema: Schema) -> Iterator[tuple[str, Callable[[Any], Any]]]:
    for rule in rules_of(schema):
        yield "breaks a rule", rule.broken
    wrong = {"object": "text", "array": "text", "string": 7, "integer": "text", "boolean": "text"}.get(str(schema.get("type")))
    if wrong is not None:
        yield f"is {wrong!r} and not of type {schema['type']}", _always(wrong)
    if "enum" in schema:
        yield "is not in the enum", _always("Sometimes")
    if schema.get("minLength"):
        yield "is too short", _always("")
    if "pattern" in schema:
        yield "does not match the pattern", _always("!")
    if "maxItems" in schema:
        yield "has too many items", _always([{"key": "a", "operator": "Exists"}] * (schema["maxItems"] + 1))
    for name in schema.get("required") or ():
        yield f"lacks {name}", partial(_without, name=name)


def _always(wrong: Any) -> Callable[[Any], Any]:
    return lambda _: wrong


def _below(schema: Schema, value: Any) -> Iterator[tuple[Any, Schema]]:
    """The steps from a value to what is in it, each with its schema."""
    if isinstance(value, list):
        yield from ((number, schema["items"]) for number in range(len(value)))
    elif isinstance(value, dict):
        more = schema.get("additionalProperties")
        for name in value:
            below = (schema.get("properties") or {}).get(name, more)
            if isinstance(below, Mapping):
                yield name, below
