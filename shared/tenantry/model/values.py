"""Chart values: merging layers, and one text for equal values.

The text is read by Helm, whose YAML library knows other plain scalars than the one that writes it here (``1e3``,
``y`` and ``0o7`` are no strings to it), so every string that does not look like a word is quoted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml
from pydantic_core import to_json

from tenantry.model import limits

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")
_NO_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"})
_WIDTH = 1 << 20


def merged(base: Any, over: Any) -> Any:
    """``over`` laid on ``base``: maps deeply, everything else is replaced whole, an explicit null included."""
    if not isinstance(base, Mapping) or not isinstance(over, Mapping):
        return over
    return {**base, **{key: merged(base[key], value) if key in base else value for key, value in over.items()}}


def is_deeper(value: Any, levels: int) -> bool:
    """Whether maps and lists lie inside each other deeper than that."""
    below = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return levels < 0 or any(is_deeper(each, levels - 1) for each in below if isinstance(each, Mapping | list))


class Oversized:
    """Stands in an object for what is over its budget and was not kept; ``problem`` says what is wrong with it."""

    __slots__ = ("problem",)

    def __init__(self, problem: str) -> None:
        self.problem = problem


def budget_problem(values: Any) -> str:
    """Which budget values are over, and the fix; empty when they are within.  The cheapest measure comes first."""
    if _has_more(values, limits.VALUES):
        return f"has more than {limits.VALUES:,} values: make it smaller"
    size = len(to_json(values))
    if size > limits.VALUES_BYTES:
        return f"has {size:,} bytes as JSON, more than {limits.VALUES_BYTES:,} bytes: make it smaller"
    if is_deeper(values, limits.VALUES_LEVELS):
        return f"has more than {limits.VALUES_LEVELS} levels of maps and lists inside each other: make it flatter"
    return ""


def _has_more(value: Any, most: int) -> bool:
    """Whether there are more values in maps and lists than that; looks at no more of them."""
    left, level = most, [value]
    while level:
        inside: list[Any] = []
        for each in level:
            left -= len(each) if isinstance(each, Mapping | list) else 0
            if left < 0:
                return True
            inside += each.values() if isinstance(each, Mapping) else each if isinstance(each, list) else ()
        level = [each for each in inside if isinstance(each, Mapping | list)]
    return False


class _Dumper(yaml.CSafeDumper):
    """Plain words stay plain, other strings are quoted, and nothing is an alias of anything."""

    def ignore_aliases(self, data: Any) -> bool:
        """True: a list that is used twice is written twice."""
        del data
        return True


def _string(dumper: _Dumper, value: str) -> yaml.ScalarNode:
    plain = _WORD.fullmatch(value) is not None and value.lower() not in _NO_WORDS
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=None if plain else '"')


_Dumper.add_representer(str, _string)


def as_yaml(values: Mapping[str, Any]) -> str:
    """YAML with sorted keys: equal values give equal text."""
    text: str = yaml.dump(values, Dumper=_Dumper, sort_keys=True, default_flow_style=False, allow_unicode=True, width=_WIDTH)
    return text


class LeftOut(dict[str, Any]):
    """What a list has of an object that is too large to be kept: everything but its long texts."""
