"""Digests in place of large values, where only equality is asked: what a sweep keeps of them."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def digest_of(value: Any) -> bytes:
    """The same for equal texts, and for equal JSON values whatever the order of their keys."""
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


class Digest:
    """Equals the text or JSON value that it was made of, and every other `Digest` of an equal one."""

    __slots__ = ("_of",)

    def __init__(self, value: Any) -> None:
        self._of = digest_of(value)

    def __eq__(self, other: object) -> bool:
        return self._of == (other._of if isinstance(other, Digest) else digest_of(other))

    def __hash__(self) -> int:
        return hash(self._of)

    def __repr__(self) -> str:
        return f"sha256:{self._of.hex()}"
