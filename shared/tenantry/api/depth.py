"""JSON that is nested deeper than our parser goes: what is too deep is cut, the rest is read.

The API server takes objects of thousands of levels.  Otherwise a single one, made by a user who may write free-form values,
would make every list that contains it unreadable, and so stop the work for all other tenants.
"""

from __future__ import annotations

import re
from typing import Any

from pydantic_core import from_json

from tenantry.model import limits

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]')


def decoded(raw: bytes) -> Any:
    """The value of a JSON text, whatever its depth.

    Raises:
        ValueError: it is not JSON.
    """
    try:
        return from_json(raw)
    except ValueError as error:
        if "recursion limit" not in str(error):
            raise
    return from_json(cut(raw, limits.OBJECT_LEVELS))


def cut(raw: bytes, levels: int) -> bytes:
    """The JSON text with every map and list that lies deeper than that replaced by null."""
    kept: list[bytes] = []
    depth = done = 0
    for token in _TOKEN.finditer(raw):
        match raw[token.start()]:
            case 0x5B | 0x7B:
                depth += 1
                if depth == levels + 1:
                    kept += (raw[done : token.start()], b"null")
            case 0x5D | 0x7D:
                if depth == levels + 1:
                    done = token.end()
                depth -= 1
    return b"".join((*kept, raw[done:]))
