"""Chart values: merging layers, and one text for equal values.

The text is read by Helm, whose YAML library knows other plain scalars than the one that writes it here (``1e3``,
``y`` and ``0o7`` are no strings to it), so every string that does not look like a word is quoted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml

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
