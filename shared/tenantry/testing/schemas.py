"""Strategies from a CRD's schema: what an API server must accept, and what it must refuse.

`valid` makes values that an ``openAPIV3Schema`` allows; `invalid` lists the mistakes that they can have, each with values that
have this one alone.  The rules in CEL that our CRDs have are known here by their text; a rule that is not known is an error, so
that nobody adds one without saying what it means.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from hypothesis import strategies as st

Schema = Mapping[str, Any]
Change = Callable[[Any], Any]
_KEPT = "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING = "x-kubernetes-int-or-string"
_LETTERS = "abzAZ09-_./ é"
_LONG = 12
"""Texts are not longer unless they must be."""
_WORDS = st.text(alphabet=_LETTERS, max_size=_LONG)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | _WORDS, lambda below: st.lists(below, max_size=2), max_leaves=4
)
_INT32 = 2**31


@dataclass(frozen=True, slots=True)
class Rule:
    """What a CEL rule means when an object is created: whether a value keeps it, how to mend one, and the ways to break one.

    ``needs`` names a property that the rule wants, and not as null: it is always made.  No way to break it: no new object can.
    """

    holds: Callable[[Any], bool]
    mend: Change
    ways: tuple[Change, ...] = ()
    needs: str = ""


def _without(value: Any, name: str) -> Any:
    return {key: below for key, below in value.items() if key != name}


def _with(**more: Any) -> Change:
    return lambda value: {**value, **more}


def _unchanged(value: Any) -> Any:
    return value


def _has(name: str) -> Rule:
    """A property must be there; a null counts as absent, whether the schema takes nulls or the API server drops them."""
    return Rule(
        lambda value: value.get(name) is not None, _unchanged, (partial(_without, name=name), _with(**{name: None})), name
    )


def _needs_values(value: Any) -> bool:
    return value.get("operator") not in ("In", "NotIn") or bool(value.get("values"))


def _takes_no_values(value: Any) -> bool:
    return value.get("operator") not in ("Exists", "DoesNotExist") or not value.get("values")


def _of_one_sort(rule: Any) -> bool:
    return bool(rule.get("nonResourceURLs")) != bool(rule.get("resources"))


def _all_of_one_sort(rule: Any) -> Any:
    return _without(rule, "resources") if rule.get("nonResourceURLs") else {**rule, "resources": ["pods"]}


def _distinct(roles: Any) -> bool:
    return len({role["generateName"] for role in roles}) == len(roles)


def _numbered(roles: Any) -> Any:
    return [{**role, "generateName": f"{role['generateName'][:50]}-{number}"} for number, role in enumerate(roles)]


_TAKEN_NAMES = ("cluster-admin", "admin", "edit", "view")

RULES: Mapping[str, Rule] = {
    "has(self.spec) || (oldSelf.hasValue() && !has(oldSelf.value().spec))": _has("spec"),
    "has(self.helmApiVersion)": _has("helmApiVersion"),
    # Of changes alone.
    "!oldSelf.hasValue() || self == oldSelf.value()": Rule(lambda _: True, _unchanged),
    "!has(oldSelf.paas) || (has(self.paas) && self.paas == oldSelf.paas)": Rule(lambda _: True, _unchanged),
    "''.matches(self) in [true, false]": Rule(lambda text: text != "(", lambda _: "a", (lambda _: "(",)),
    "!(self.operator in ['In', 'NotIn']) || (has(self.values) && self.values.size() > 0)": Rule(
        _needs_values,
        _with(values=["a"]),
        (_with(operator="In", values=[]), _with(operator="NotIn", values=None)),
    ),
    "!(self.operator in ['Exists', 'DoesNotExist']) || !has(self.values) || self.values.size() == 0": Rule(
        _takes_no_values,
        partial(_without, name="values"),
        (_with(operator="Exists", values=["a"]), _with(operator="DoesNotExist", values=["a"])),
    ),
    "(has(self.nonResourceURLs) && self.nonResourceURLs.size() > 0) != (has(self.resources) && self.resources.size() > 0)": Rule(
        _of_one_sort,
        _all_of_one_sort,
        (_with(nonResourceURLs=["/a"], resources=["pods"]), _with(nonResourceURLs=[], resources=None)),
    ),
    "!(has(self.resources) && self.resources.size() > 0) || (has(self.apiGroups) && self.apiGroups.size() > 0)": Rule(
        lambda rule: not rule.get("resources") or bool(rule.get("apiGroups")),
        _with(apiGroups=[""]),
        (_with(resources=["pods"], apiGroups=[]), _with(resources=["pods"], apiGroups=None)),
    ),
    "!(self.generateName in ['cluster-admin', 'admin', 'edit', 'view'])": Rule(
        lambda role: role["generateName"] not in _TAKEN_NAMES,
        lambda role: {**role, "generateName": f"{role['generateName']}-a"},
        tuple(_with(generateName=name) for name in _TAKEN_NAMES),
    ),
    "self.all(each, self.exists_one(other, other.generateName == each.generateName))": Rule(
        _distinct, _numbered, (lambda roles: [*roles, *roles[:1]],)
    ),
}


class UnknownRule(LookupError):
    """A schema has a CEL rule that nobody explained here."""


class Contradiction(ValueError):
    """The rules at one place cannot be kept together, as they are explained here."""


def rules_of(schema: Schema) -> dict[str, Rule]:
    """The rules at one place of a schema, by their text.

    Raises:
        UnknownRule: with its text.
    """
    found = {}
    for each in schema.get("x-kubernetes-validations") or ():
        text = " ".join(str(each["rule"]).split())
        if text not in RULES:
            raise UnknownRule(f"explain the CEL rule {text!r} in {__name__}.RULES")
        found[text] = RULES[text]
    return found


def kept(rules: Collection[Rule], value: Any) -> Any:
    """The value, mended until it keeps all the rules: to mend one may break another.

    Raises:
        Contradiction: with what is left.
    """
    for _ in range(len(rules) + 1):
        broken = next((rule for rule in rules if not rule.holds(value)), None)
        if broken is None:
            return value
        value = broken.mend(value)
    raise Contradiction(f"{value} cannot be mended; look at {__name__}.RULES")


def valid(schema: Schema) -> st.SearchStrategy[Any]:
    """Values that the schema allows."""
    made = _made(schema)
    return st.none() | made if schema.get("nullable") else made


Path = tuple[str, ...]
"""The way to a place of a schema: names of properties, and `_EACH` into lists and maps."""
_EACH = "*"


def _made(schema: Schema, path: Path = ()) -> st.SearchStrategy[Any]:
    """Values that the schema allows, without null, and with something at a path, unless a rule takes it away."""
    rules = rules_of(schema).values()
    return _typed(schema, path).map(partial(kept, rules)) if rules else _typed(schema, path)


def _typed(schema: Schema, path: Path) -> st.SearchStrategy[Any]:
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if schema.get(_INT_OR_STRING):
        return st.integers(schema.get("minimum", -_INT32), _INT32 - 1) | (_text(schema) if "pattern" in schema else _WORDS)
    match schema.get("type"):
        case "object":
            return _object(schema, path)
        case "array":
            least = max(schema.get("minItems", 0), len(path[:1]))
            return st.lists(_in(schema["items"], path), min_size=least, max_size=max(least, min(3, schema.get("maxItems", 3))))
        case "integer":
            return st.integers(schema.get("minimum", -_INT32), schema.get("maximum", _INT32 - 1))
        case "number":
            return st.floats(schema.get("minimum", -_INT32), schema.get("maximum", _INT32 - 1), width=32)
        case "boolean":
            return st.booleans()
        case "string":
            return _text(schema)
        case _:
            return _JSON


def _in(schema: Schema, path: Path) -> st.SearchStrategy[Any]:
    return _made(schema, path[1:]) if path else valid(schema)


def _text(schema: Schema) -> st.SearchStrategy[str]:
    least, most = schema.get("minLength", 0), schema.get("maxLength", sys.maxsize)
    if schema.get("format") == "date-time":
        return st.just("2020-01-01T00:00:00Z")
    if "pattern" in schema:
        return st.from_regex(str(schema["pattern"]), fullmatch=True).filter(lambda text: least <= len(text) <= most)
    return st.text(alphabet=_LETTERS, min_size=least, max_size=max(least, min(most, _LONG)))


def _object(schema: Schema, path: Path) -> st.SearchStrategy[Any]:
    properties = schema.get("properties") or {}
    more = schema.get("additionalProperties")
    if isinstance(more, Mapping):
        most = min(2, schema.get("maxProperties", 2))
        return st.dictionaries(
            st.sampled_from(["a", "b", "team.example/x"]), _in(more, path), min_size=len(path[:1]), max_size=most
        )
    needed = {*path[:1], *(rule.needs for rule in rules_of(schema).values())}
    required = needed | set(schema.get("required") or ())
    made = {
        name: _made(below, path[1:] if path[:1] == (name,) else ()) if name in needed else valid(below)
        for name, below in properties.items()
    }
    known = st.fixed_dictionaries(
        {name: below for name, below in made.items() if name in required},
        optional={name: below for name, below in made.items() if name not in required},
    )
    if not schema.get(_KEPT):
        return known
    unknown = st.dictionaries(_WORDS.filter(bool), _JSON, max_size=2)
    return st.builds(lambda others, ours: {**others, **ours}, unknown, known)


@dataclass(frozen=True, slots=True)
class Mistake:
    """What can be wrong at a place (``*``: the first of a list or map); ``make`` lets a value be that cannot have it."""

    path: Path
    what: str
    make: Change

    def __str__(self) -> str:
        return f"{'.'.join(self.path)} {self.what}".strip()


def invalid(schema: Schema) -> list[tuple[Mistake, st.SearchStrategy[Any]]]:
    """The mistakes that an object can have, each with objects that have it alone; none where every object is valid.

    That the object is none at all is not among them.
    """
    return [(mistake, _with_mistake(schema, mistake)) for mistake in _mistakes(schema)]


def _with_mistake(schema: Schema, mistake: Mistake) -> st.SearchStrategy[Any]:
    pairs = _made(schema, mistake.path).map(lambda value: (value, _changed(value, mistake.path, mistake.make)))
    return pairs.filter(lambda pair: pair[0] != pair[1]).map(lambda pair: pair[1])


def _changed(value: Any, path: Path, change: Change) -> Any:
    """A value with what is at a path changed; the same value where nothing is there."""
    if not path:
        return change(value)
    if isinstance(value, list):
        return [_changed(value[0], path[1:], change), *value[1:]] if value else value
    step = next(iter(value), "") if path[0] == _EACH else path[0]
    return {**value, step: _changed(value[step], path[1:], change)} if step in value else value


def _mistakes(schema: Schema, path: Path = ()) -> Iterator[Mistake]:
    types = _wrong_types(schema) if path else ()
    for what, make in (*types, *_wrong_values(schema), *_wrong_contents(schema), *_broken_rules(schema)):
        yield Mistake(path, what, make)
    inner = [*(schema.get("properties") or {}).items(), (_EACH, schema.get("additionalProperties")), (_EACH, schema.get("items"))]
    for step, below in inner:
        if isinstance(below, Mapping):
            yield from _mistakes(below, (*path, step))


def _wrong_types(schema: Schema) -> Iterator[tuple[str, Change]]:
    if schema.get(_INT_OR_STRING):
        yield "is neither an integer nor a string", _always(True)
    others = dict.fromkeys(("object", "array", "integer", "number", "boolean"), "text")
    wrong = {"string": 7, **others}.get(str(schema.get("type")))
    if wrong is not None:
        yield f"is {wrong!r} and not of type {schema['type']}", _always(wrong)


def _broken_rules(schema: Schema) -> Iterator[tuple[str, Change]]:
    rules = rules_of(schema)
    for text, rule in rules.items():
        others = [each for each in rules.values() if each is not rule]
        yield from ((f"breaks the rule {text}", partial(_breaking, rule, others, way)) for way in rule.ways)


def _wrong_values(schema: Schema) -> Iterator[tuple[str, Change]]:
    if "enum" in schema:
        yield "is not in the enum", _always("Sometimes")
    if schema.get("format") == "int32":
        yield "is too great for its format", _always(_INT32)
    if "minimum" in schema:
        yield "is too small", _always(schema["minimum"] - 1)
    if "maximum" in schema:
        yield "is too great", _always(schema["maximum"] + 1)
    if schema.get("minLength"):
        yield "is too short", lambda text: text[: schema["minLength"] - 1]
    if "maxLength" in schema:
        yield "is too long", _always("a" * (schema["maxLength"] + 1))
    if "pattern" in schema:
        yield "does not match the pattern", _always("!")


def _wrong_contents(schema: Schema) -> Iterator[tuple[str, Change]]:
    """What is too much or too little.  What has a default does not lack: the API server fills it in."""
    if schema.get("minItems"):
        yield "has too few items", lambda items: items[: schema["minItems"] - 1]
    if "maxItems" in schema:
        rules = rules_of(schema).values()
        yield "has too many items", lambda items: kept(rules, items[:1] * (schema["maxItems"] + 1))
    if "maxProperties" in schema:
        yield "has too many entries", lambda entries: _many(entries, schema["maxProperties"] + 1)
    for name in schema.get("required") or ():
        if "default" not in schema["properties"][name]:
            yield f"lacks {name}", partial(_without, name=name)


def _breaking(rule: Rule, others: Collection[Rule], way: Change, value: Any) -> Any:
    """The value with one rule broken and the others kept; as it is where to keep them mends the one."""
    broken = kept(others, way(value))
    return value if rule.holds(broken) else broken


def _many(entries: Mapping[str, Any], number: int) -> Any:
    return {f"a{each}": below for below in list(entries.values())[:1] for each in range(number)}


def _always(wrong: Any) -> Change:
    return lambda _: wrong
