"""Strategies from a CRD's schema: what an API server must accept, and what it must refuse.

`valid` makes values that an ``openAPIV3Schema`` allows; `invalid` lists the mistakes that they can have, each with values that
have this one alone.  The rules in CEL that our CRDs have are known by their text (`tenantry.testing.schema_rules`); a rule that
is not known is an error, so that nobody adds one without saying what it means.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from hypothesis import strategies as st

from tenantry.testing.schema_rules import RULES, Change, Rule, always, without

Schema = Mapping[str, Any]
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
            raise UnknownRule(f"explain the CEL rule {text!r} in tenantry.testing.schema_rules.RULES")
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
    raise Contradiction(f"{value} cannot be mended; look at tenantry.testing.schema_rules.RULES")


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
            most = max(least, min(3, schema.get("maxItems", 3)))
            return st.lists(_in(schema["items"], path), min_size=least, max_size=most, unique_by=_identity(schema))
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


def _identity(schema: Schema) -> Callable[[Any], Hashable] | None:
    """What no two items of a list have in common; None where they may be equal."""
    match schema.get("x-kubernetes-list-type"):
        case "set":
            return str
        case "map":
            keys = schema["x-kubernetes-list-map-keys"]
            return lambda item: tuple(item[key] for key in keys)
        case _:
            return None


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
        yield "is neither an integer nor a string", always(True)
    others = dict.fromkeys(("object", "array", "integer", "number", "boolean"), "text")
    wrong = {"string": 7, **others}.get(str(schema.get("type")))
    if wrong is not None:
        yield f"is {wrong!r} and not of type {schema['type']}", always(wrong)


def _broken_rules(schema: Schema) -> Iterator[tuple[str, Change]]:
    rules = rules_of(schema)
    for text, rule in rules.items():
        others = [each for each in rules.values() if each is not rule]
        yield from ((f"breaks the rule {text}", partial(_breaking, rule, others, way)) for way in rule.ways)


def _wrong_values(schema: Schema) -> Iterator[tuple[str, Change]]:
    if "enum" in schema:
        yield "is not in the enum", always("Sometimes")
    if schema.get("format") == "int32":
        yield "is too great for its format", always(_INT32)
    if "minimum" in schema:
        yield "is too small", always(schema["minimum"] - 1)
    if "maximum" in schema:
        yield "is too great", always(schema["maximum"] + 1)
    if schema.get("minLength"):
        yield "is too short", lambda text: text[: schema["minLength"] - 1]
    if "maxLength" in schema:
        yield "is too long", always("a" * (schema["maxLength"] + 1))
    if "pattern" in schema:
        yield "does not match the pattern", always("!")


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
            yield f"lacks {name}", partial(without, name=name)


def _breaking(rule: Rule, others: Collection[Rule], way: Change, value: Any) -> Any:
    """The value with one rule broken and the others kept; as it is where to keep them mends the one."""
    broken = kept(others, way(value))
    return value if rule.holds(broken) else broken


def _many(entries: Mapping[str, Any], number: int) -> Any:
    return {f"a{each}": below for below in list(entries.values())[:1] for each in range(number)}
