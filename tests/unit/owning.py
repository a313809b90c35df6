"""Owners in tests, as texts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tenantry.engine import Handler, Owner, Unit
from tenantry.engine.decision import Decision, decide


def owner(text: str) -> Owner:
    """The owner that a text names."""
    found = Owner.parse(text)
    assert found is not None, text
    return found


def handler(unit: Unit, text: str) -> Handler[Any]:
    """Who looks after an owner."""
    return unit.handlers[owner(text).type]


def accepts(unit: Unit, text: str) -> bool:
    """Whether a request by event may name it."""
    found = Owner.parse(text)
    return found is not None and unit.accepts(found)


def texts(stages: Iterable[Iterable[Owner]]) -> list[list[str]]:
    """Stages of owners as texts."""
    return [[str(each) for each in stage] for stage in stages]


async def observe(unit: Unit, text: str, reader: Any) -> Any:
    """What a run for an owner sees."""
    return await handler(unit, text).observe(owner(text), reader)


async def decided(unit: Unit, text: str, reader: Any) -> Decision:
    """What a run for an owner decides."""
    return await decide(handler(unit, text), owner(text), reader)


async def owners(unit: Unit, *asked: Any) -> list[list[str]]:
    """Whom an event touches."""
    return texts(await unit.owners(*asked))


async def sweep(unit: Unit, reader: Any) -> list[str]:
    """Whom a sweep looks at."""
    return [str(each) for each in await unit.sweep(reader)]


def ended(unit: Unit, text: str, succeeded: bool) -> None:
    """A run for an owner has ended."""
    handler(unit, text).ended(owner(text), succeeded)
