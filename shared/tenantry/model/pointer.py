"""JSON pointers (RFC 6901), for the operations of a JSON patch."""

from __future__ import annotations


def pointer(*steps: str) -> str:
    """The pointer to a place, from the names that lead to it."""
    return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in steps)
