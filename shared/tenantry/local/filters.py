"""Trigger filters: the dialects of Knative and of CloudEvents Subscriptions, compiled once, asked per event.

A filter sees context attributes only (`attributes_of`), never data.  ``exact``, ``prefix`` and ``suffix`` hold when all
their entries hold; ``all``, ``any``, ``not`` combine.  The list of a Trigger is ANDed and wins over the legacy
``filter.attributes``, where an empty value means "any value but an empty one".

Invariant: what the brokers of Knative 1.22 skip (and then match everything) or crash on is refused when it is loaded:
empty values, lists and objects at any depth, unknown dialects, two dialects in one object.  So a filter that loads means
the same here and there.  ``cesql``, which those brokers know and this one does not, is refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tenantry.model.event import Event

DIALECTS = ("exact", "prefix", "suffix", "all", "any", "not")
_NAME = re.compile(r"[a-z][a-z0-9]*")

Attributes = Mapping[str, str]
Predicate = Callable[[Attributes], bool]


class FilterError(ValueError):
    """A filter that must not be loaded; ``path`` says where in it, from the value that was given."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}" if path else reason)
        self.path = path
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Filter:
    """A compiled filter; ``text`` is for people, ``names`` are the attributes that it looks at."""

    predicate: Predicate
    text: str
    names: frozenset[str] = frozenset()

    def matches(self, event: Event) -> bool:
        """Whether the event passes; never raises."""
        return self.predicate(attributes_of(event))


def attributes_of(event: Event) -> dict[str, str]:
    """The context attributes that filters see: those that the event has, its extensions included."""
    attributes = {**event.extensions, "specversion": "1.0", "id": event.id, "source": event.source, "type": event.type}
    for name in ("subject", "time", "datacontenttype", "dataschema"):
        if (value := getattr(event, name)) is not None:
            attributes[name] = value
    return attributes


EVERYTHING = Filter(lambda _: True, "everything")


def parse_filters(raw: object, path: str = "") -> Filter:
    """The filter of a Trigger's ``filters`` list; raises `FilterError`."""
    parsed = [_one(item, where) for item, where in _list(raw, path)]
    return parsed[0] if len(parsed) == 1 else _all(parsed)


def parse_legacy(raw: object, path: str = "") -> Filter:
    """The filter of a Trigger's legacy ``filter``; raises `FilterError`.  Without attributes it matches everything."""
    if not isinstance(raw, Mapping):
        raise FilterError(path, "expected an object with attributes")
    for key in raw:
        if key != "attributes":
            raise FilterError(_join(path, str(key)), "unknown key; known is attributes")
    attributes = raw.get("attributes") or {}
    path = _join(path, "attributes")
    if not isinstance(attributes, Mapping):
        raise FilterError(path, "expected an object of names and values")
    entries = [(_name(name, path), _text(value, _join(path, str(name)))) for name, value in attributes.items()]
    if not entries:
        return EVERYTHING

    def predicate(given: Attributes) -> bool:
        # "" is "any": a missing attribute and an empty one are both "none".
        return all((found := given.get(name)) and (not value or found == value) for name, value in entries)

    text = " and ".join(f"{name} is {value!r}" if value else f"{name} is not empty" for name, value in entries)
    return Filter(lambda given: bool(predicate(given)), text, frozenset(name for name, _ in entries))


def _one(raw: object, path: str) -> Filter:
    if not isinstance(raw, Mapping):
        raise FilterError(path, f"expected an object with one of {', '.join(DIALECTS)}")
    if len(raw) != 1:
        given = ", ".join(map(str, raw)) or "none"
        raise FilterError(path, f"expected exactly one dialect, found {given}; put each into an item of its own")
    dialect, value = next(iter(raw.items()))
    path = _join(path, str(dialect))
    match dialect:
        case "exact":
            return _entries(value, path, str.__eq__, "is")
        case "prefix":
            return _entries(value, path, str.startswith, "begins with")
        case "suffix":
            return _entries(value, path, str.endswith, "ends with")
        case "all":
            return _all([_one(item, where) for item, where in _list(value, path)])
        case "any":
            return _any([_one(item, where) for item, where in _list(value, path)])
        case "not":
            inner = _one(value, path)
            return Filter(lambda given: not inner.predicate(given), f"not ({inner.text})", inner.names)
        case "cesql":
            raise FilterError(path, f"the local broker knows no CloudEvents SQL: write it with {', '.join(DIALECTS)}")
    raise FilterError(path, f"unknown dialect; known are {', '.join(DIALECTS)}")


def _entries(raw: object, path: str, test: Callable[[str, str], bool], verb: str) -> Filter:
    if not isinstance(raw, Mapping) or not raw:
        raise FilterError(path, "expected an object of attribute names and values, not an empty one")
    entries = [(_name(name, path), _text(value, _join(path, str(name)))) for name, value in raw.items()]
    for name, value in entries:
        if not value:
            raise FilterError(_join(path, name), "an empty value makes brokers match everything or crash: write or remove it")

    def predicate(given: Attributes) -> bool:
        for name, value in entries:
            found = given.get(name)
            if found is None or not test(found, value):
                return False
        return True

    text = " and ".join(f"{name} {verb} {value!r}" for name, value in entries)
    return Filter(predicate, text, frozenset(name for name, _ in entries))


def _all(filters: Sequence[Filter]) -> Filter:
    predicates = [each.predicate for each in filters]
    text = " and ".join(f"({each.text})" for each in filters)
    return Filter(lambda given: all(predicate(given) for predicate in predicates), text, _names_of(filters))


def _any(filters: Sequence[Filter]) -> Filter:
    predicates = [each.predicate for each in filters]
    text = " or ".join(f"({each.text})" for each in filters)
    return Filter(lambda given: any(predicate(given) for predicate in predicates), text, _names_of(filters))


def _names_of(filters: Sequence[Filter]) -> frozenset[str]:
    return frozenset[str]().union(*(each.names for each in filters))


def _list(raw: object, path: str) -> list[tuple[object, str]]:
    if not isinstance(raw, Sequence) or isinstance(raw, str) or not raw:
        raise FilterError(path, "expected a list with at least one filter; brokers take an empty one as everything")
    return [(item, f"{path}[{index}]") for index, item in enumerate(raw)]


def _name(name: object, path: str) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise FilterError(_join(path, str(name)), "attribute names are lower-case letters and digits")
    return name


def _text(value: object, path: str) -> str:
    if not isinstance(value, str):
        raise FilterError(path, f"expected a string, found {value!r}; put it in quotes")
    return value


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
