"""Selectors as requests have them, over objects that are at hand: what an API server does for a list."""

from __future__ import annotations

import re

from tenantry.model.comparison import MISSING, value_at
from tenantry.model.kinds import Object, labels_of
from tenantry.model.selectors import LabelSelector, Requirement

_PART = re.compile(r"(?:[^,(]|\([^)]*\))+")
_SET = re.compile(r"(\S+)\s+(in|notin)\s+\(([^)]*)\)")


def parsed_labels(text: str) -> LabelSelector:
    """A label selector from the text of a query: ``a=b,c,!d,e in (f,g)``."""
    return LabelSelector(tuple(_requirement(part.strip()) for part in _PART.findall(text)))


def _requirement(part: str) -> Requirement:
    if found := _SET.fullmatch(part):
        key, operator, values = found.groups()
        wanted = frozenset(each.strip() for each in values.split(","))
        return Requirement(key, "In" if operator == "in" else "NotIn", wanted)
    if "!=" in part:
        key, _, value = part.partition("!=")
        return Requirement(key, "NotIn", frozenset({value}))
    if "=" in part:
        key, _, value = part.partition("=")
        return Requirement(key, "In", frozenset({value.removeprefix("=")}))
    return Requirement(part[1:], "DoesNotExist") if part.startswith("!") else Requirement(part, "Exists")


def fits_fields(obj: Object, text: str) -> bool:
    """Whether an object fits a field selector: ``metadata.name=x,type!=y``."""
    for part in filter(None, text.split(",")):
        different = "!=" in part
        path, _, value = part.partition("!=" if different else "=")
        if (_at(obj, path) == value.removeprefix("=")) == different:
            return False
    return True


def fits_labels(obj: Object, selector: LabelSelector) -> bool:
    """Whether an object fits a label selector."""
    return selector.matches(labels_of(obj))


def _at(obj: Object, path: str) -> str:
    found = value_at(obj, tuple(path.split(".")))
    return "" if found is None or found is MISSING else str(found)
