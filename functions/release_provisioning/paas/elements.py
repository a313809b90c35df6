"""Elements of a list generator as operations of a JSON patch: ours change, and whatever else is in the list stays as it is.

Elements of others keep their places and are in no operation, so that not a byte of them changes.  Ours stand in the order of the
names of their Paas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from release_provisioning.paas.seen import Element, owner_of
from tenantry.model.kinds import Object
from tenantry.model.pointer import pointer


def operations(
    path: Sequence[str], current: Sequence[Any], wanted: Sequence[Element], is_ours: Callable[[Any], bool]
) -> list[Object]:
    """What makes of the elements at a path those that are wanted, beside those that are not ours.

    ``wanted`` is sorted.  An element that is there already stays where it is, unless ours are not in order.
    """
    left = list(wanted)
    kept: list[bool] = []
    for each in current:
        stays = not is_ours(each)
        if not stays and each in left:
            del left[: left.index(each) + 1]  # what is before it in the order and was not met is to be added
            stays = True
        kept.append(stays)
    removed = [{"op": "remove", "path": pointer(*path, str(at))} for at in reversed(range(len(current))) if not kept[at]]
    stays_there = [each for each, stays in zip(current, kept, strict=True) if stays]
    return [*removed, *_added(path, stays_there, wanted, is_ours)]


def _added(path: Sequence[str], there: list[Any], wanted: Sequence[Element], is_ours: Callable[[Any], bool]) -> Iterator[Object]:
    """What of the wanted elements is not there, each behind the one of ours that comes before it."""
    at = next((number for number, each in enumerate(there) if is_ours(each)), len(there))
    for each in wanted:
        found = next((number for number in range(at, len(there)) if is_ours(there[number])), None)
        if found is not None and there[found] == each:
            at = found + 1
            continue
        there.insert(at, each)
        yield {"op": "add", "path": pointer(*path, str(at)), "value": dict(each)}
        at += 1


def is_of(names: frozenset[str]) -> Callable[[Any], bool]:
    """Whether an element is of one of these Paas."""
    return lambda element: owner_of(element) in names
