"""How a refusal is told: in the words of the first time, for as long as it is the same refusal.

The API server's own words may differ each time (a webhook's request id, a quota's use).  A condition that
took them over would be written anew on every run, and where writing it is an event, for ever.
"""

from __future__ import annotations

from tenantry.model import limits
from tenantry.model.conditions import find_condition
from tenantry.model.kinds import Object
from tenantry.model.plan import Refusal


def told_of(obj: Object, type_: str) -> str:
    """The message of a condition, if it is about the object's current spec."""
    found = find_condition(obj, type_) or {}
    current = found.get("observedGeneration") == obj["metadata"].get("generation")
    return str(found.get("message") or "") if current else ""


def as_told(refusal: Refusal, told: str, separator: str, *, place: str = "") -> str:
    """A refusal as one part of a message: as the message so far tells it, else in the server's words.

    The parts of a message are joined by the separator, which is taken out of the server's words.  ``place`` comes before it.
    """
    subject = (f"{place}: " if place else "") + f"{refusal.key} was refused ({refusal.cause}): "
    words = " ".join(refusal.message.split()).replace(separator, ", ")[: limits.REFUSAL_CHARACTERS]
    return next((part for part in told.split(separator) if part.startswith(subject)), subject + words)
