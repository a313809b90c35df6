"""A question about a right, as people put it, and the answer: for ``explain can``, ``explain why-not`` and the console."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tenantry.api.served import served_resources
from tenantry.cli.explain.can import Judged, is_unknown, judged
from tenantry.cli.explain.reading import Reading
from tenantry.cli.explain.resources import place_of, resource_named
from tenantry.cli.explain.subjects import AskedAbout
from tenantry.cli.explain.told import Told
from tenantry.cli.one_line import WrongUse
from tenantry.model.rbac import Question

Telling = Callable[[Judged, str, Reading], Any]


@dataclass(frozen=True, slots=True)
class Where:
    """A namespace, empty for the whole cluster; ``chosen``: whoever asks named it."""

    namespace: str
    chosen: bool = True


@dataclass(frozen=True, slots=True)
class Right:
    """Who may do what, where, in the words of whoever asks: see `tenantry explain can --help`.

    Raises:
        WrongUse: no verb is named.
    """

    who: AskedAbout
    verb: str
    resource: str
    place: Where
    subresource: str = ""
    name: str = ""

    def __post_init__(self) -> None:
        if not self.verb:
            raise WrongUse("the verb is empty: write one such as get, list, create, delete, or '*'")


async def right_judged(right: Right, reading: Reading) -> Judged:
    """What is known of a right, from which both answers are told.

    Raises:
        WrongUse: something in the question means nothing here; the message says what.
        ApiError: what decides cannot be read.
    """
    who = right.who
    notes: tuple[str, ...] = ()
    if right.resource.startswith("/"):
        if right.subresource or right.name:
            raise WrongUse("a path has neither --name nor --subresource")
        question = Question(who.user, who.groups, right.verb, url=right.resource)
    else:
        served = await served_resources(reading.api)
        named = resource_named(right.resource, right.verb, served, subresource=right.subresource, name=right.name)
        place, notes = place_of(named, right.place.namespace, chosen=right.place.chosen)
        parts = {"group": named.group, "resource": named.resource, "subresource": named.subresource, "name": named.name}
        question, notes = Question(who.user, who.groups, right.verb, namespace=place, **parts), (*named.notes, *notes)
    return await judged(question, reading, notes)


async def right_told(right: Right, found: Judged, reading: Reading, tell: Telling) -> Told:
    """The answer of `can_told` or `missing_told`; ``unknown`` where nothing can be said.

    Raises:
        ApiError: what decides cannot be read.
    """
    told: Told = await tell(found, right.who.text, reading)
    return {**told, "unknown": True} if is_unknown(found) else told
