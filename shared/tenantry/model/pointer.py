"""JSON pointers (RFC 6901), for the operations of a JSON patch and for fields that people name."""

from __future__ import annotations


def pointer(*steps: str) -> str:
    """The pointer to a place, from the names that lead to it."""
    return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in steps)


def steps_of(text: str) -> list[str]:
    """The names that lead to the place of a pointer."""
    return [step.replace("~1", "/").replace("~0", "~") for step in text.split("/")[1:]]
