"""Where an object is not as a test expects it.

A mapping may have more than is expected of it, and so may a list, whose order does not count: each expected entry needs one of
its own.  An expected ``null`` means that the field is not there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from tenantry.testing.cases.written import Place

_NAMES = ("type", "name", "key")
"""Fields that tell entries of a list apart, for people."""
_LONG = 120


class Unlike(NamedTuple):
    """One difference: where in what was expected, and what is found there."""

    place: Place
    said: str
    missing: bool = False
    """Whether nothing is there at all."""


def unlike(expected: Any, found: Any, exact: Collection[str] = (), place: Place = ()) -> Iterator[Unlike]:
    """All differences.  ``exact`` are paths, such as ``subjects``, at which nothing else may be."""
    strict = ".".join(map(str, place)) in exact
    if isinstance(expected, dict) and isinstance(found, dict):
        for key, value in expected.items():
            here = (*place, key)
            if value is None:
                if found.get(key) is not None:
                    yield Unlike(here, f"is {_short(found[key])}, and should not be there")
            elif key not in found:
                yield Unlike(here, f"is missing; expected {_short(value)}", missing=True)
            else:
                yield from unlike(value, found[key], exact, here)
        if strict and (more := [key for key in found if key not in expected]):
            yield Unlike(place, f"has {', '.join(map(str, more))}, and should not")
    elif isinstance(expected, list) and isinstance(found, list):
        yield from _lists(expected, found, exact, place, strict=strict)
    elif type(expected) is not type(found) or expected != found:
        yield Unlike(place, f"is {_short(found)}; expected {_short(expected)}")


def _lists(expected: list[Any], found: list[Any], exact: Collection[str], place: Place, *, strict: bool) -> Iterator[Unlike]:
    """Each expected entry needs an entry of its own (a matching in a bipartite graph, by augmenting paths)."""
    fits = [[not any(unlike(one, other, exact, (*place, at))) for other in found] for at, one in enumerate(expected)]
    taken: dict[int, int] = {}  # of each found entry, for which expected one it stands

    def place_one(number: int, tried: set[int]) -> bool:
        for other, does in enumerate(fits[number]):
            if does and other not in tried:
                tried.add(other)
                if other not in taken or place_one(taken[other], tried):
                    taken[other] = number
                    return True
        return False

    left = [number for number in range(len(expected)) if not place_one(number, set())]
    free = [other for number, other in enumerate(found) if number not in taken]
    for number in left:
        here = (*place, number)
        closest = _closest(expected[number], free)
        if closest is None:
            yield Unlike(here, f"is missing: no other entry is like {_short(expected[number])}", missing=True)
        else:
            yield from unlike(expected[number], closest, exact, here)
    if strict and not left and free:
        yield Unlike(place, f"has {', '.join(map(_short, free))}, and should not")


def _closest(expected: Any, found: list[Any]) -> Any:
    """The entry of the same name, for which it is worth while to say what differs."""
    if isinstance(expected, dict):
        for name in _NAMES:
            for other in found:
                if isinstance(other, dict) and name in expected and other.get(name) == expected[name]:
                    return other
    return None


def path_of(place: Place) -> str:
    """A place for people: ``metadata.labels[a.b/c]``, ``subjects[0].name``."""
    text = ""
    for step in place:
        if isinstance(step, int) or not step.replace("-", "").replace("_", "").isalnum():
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text or "it"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONG else f"{text[: _LONG - 3]}..."
