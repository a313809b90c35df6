"""What waits when the selector of a scope is changed: many rights are not taken for a mistyped label (decision 30).

Nobody named the namespaces that another selector lets go.  Where much would be taken there, it waits until an administrator
accepts this very change, or the selector is put right.  What somebody took by name never waits: a role, a subject, an entry of
the list, the label of a namespace, the instance.
"""

from __future__ import annotations

from dataclasses import dataclass

from scope_binding.scopes.names import short_digest
from scope_binding.scopes.seen import InstanceSeen
from tenantry.model.config import SelectorChange
from tenantry.model.kinds import Object, annotations_of, is_terminating
from tenantry.model.names import WITHDRAWAL_ACCEPTED

SHIPPED = SelectorChange()
"""The limit that holds where nothing else is configured."""

NAMED = 5
"""So many namespaces are named in a message."""


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """Bindings that wait: how many, of how many that the instance has, and in which namespaces."""

    bindings: int
    of: int
    namespaces: tuple[str, ...]


def withdrawal_of(seen: InstanceSeen, limit: SelectorChange) -> Withdrawal | None:
    """What waits to be accepted; None when nothing does."""
    if not seen.released or seen.instance is None:
        return None
    places = [each["metadata"].get("namespace", "") for each in seen.bindings if not is_terminating(each)]
    leaving = [place for place in places if place in seen.released]
    if len(leaving) <= limit.bindings or len(leaving) * 100 <= len(places) * limit.percent:
        return None
    if annotations_of(seen.instance).get(WITHDRAWAL_ACCEPTED) == change_digest(seen.instance):
        return None
    return Withdrawal(len(leaving), len(places), tuple(sorted(set(leaving))))


def kept_namespaces(seen: InstanceSeen, limit: SelectorChange) -> frozenset[str]:
    """The released namespaces in which bindings stay.

    A run for one namespace does not know how many there are, and leaves all of them to a run of the whole instance.
    """
    return seen.released if seen.part or withdrawal_of(seen, limit) is not None else frozenset()


def change_digest(instance: Object) -> str:
    """What an administrator accepts: that the selector of this instance became, by its current spec, another one than it was.

    It does not depend on the namespaces: what was begun goes on to its end, also where the function is killed on the way.
    """
    metadata = instance["metadata"]
    return short_digest(metadata["uid"], metadata.get("generation", 0), instance["status"]["namespaceSelector"])


def told(waiting: Withdrawal, instance: Object) -> str:
    """What waits, by numbers and names, and what to do."""
    names = ", ".join(waiting.namespaces[:NAMED])
    more = f" and {len(waiting.namespaces) - NAMED} more" if len(waiting.namespaces) > NAMED else ""
    return (
        f"namespaceSelector was changed and would take {waiting.bindings} of {waiting.of} bindings, "
        f"in {len(waiting.namespaces)} namespaces: {names}{more}. They stay until the selector is put right, "
        f"or you accept it: annotate this object with {WITHDRAWAL_ACCEPTED}={change_digest(instance)}"
    )
