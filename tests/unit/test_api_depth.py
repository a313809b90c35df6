"""JSON that is nested deeper than the parser goes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenantry.api.depth import cut, decoded
from tenantry.model import limits

JSON = st.recursive(
    st.none() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


def nested(levels: int) -> bytes:
    return rb'{"s]}\"": "[[{\"", "a": ' * levels + b"1" + b"}" * levels


def test_one_deep_object_does_not_spoil_a_list() -> None:
    """What is too deep is null, and everything beside it is as it was sent."""
    found = decoded(b'{"items": [' + nested(3000) + b', {"ok": [1, {"b": "]"}]}], "kind": "List"}')

    assert found["items"][1] == {"ok": [1, {"b": "]"}]}
    assert found["kind"] == "List"
    depth, here = 0, found["items"][0]
    while here is not None:
        here, depth = here["a"], depth + 1
    assert depth == limits.OBJECT_LEVELS - 2


@given(JSON, st.integers(0, 4))
def test_cutting_keeps_what_is_not_deeper(value: Any, levels: int) -> None:
    """A cut text is JSON, equal to the value with its deeper parts taken out."""

    def taken(part: Any, left: int) -> Any:
        if not isinstance(part, dict | list):
            return part
        if left == 0:
            return None
        if isinstance(part, list):
            return [taken(each, left - 1) for each in part]
        return {key: taken(each, left - 1) for key, each in part.items()}

    assert json.loads(cut(json.dumps(value).encode(), levels)) == taken(value, levels)


@pytest.mark.parametrize("raw", [b"", b"nope", b'{"a":'])
def test_what_is_no_json_is_an_error(raw: bytes) -> None:
    """Only depth is forgiven."""
    with pytest.raises(ValueError):
        decoded(raw)
