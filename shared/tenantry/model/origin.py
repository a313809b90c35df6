"""Where an object of ours comes from, as the unit that makes it tells: the seam between units and ``tenantry explain``.

A unit that makes objects has a module ``explain.py`` with

* ``KINDS``: the kinds that it can tell something about, and
* ``async def explain(obj, subject, look) -> Origin | None``: where one comes from, None where it is not of this unit, by the same
  proof by which the unit takes it for its own.

Where it makes bindings it may have ``async def offers(question, look) -> list[Offer]`` besides: declarations of its own that
could give what is asked, and why they do not.  Both read through a `Looking`, and decide nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tenantry.model.config import Config
from tenantry.model.kinds import Key, Kind, Object, key_of
from tenantry.model.rbac import BoundSubject

MAKES, HARDENS = "makes it", "hardens it"
"""What a unit does to an object that would not be there without it, and to one that Kubernetes makes."""


@dataclass(frozen=True, slots=True)
class Because:
    """A line that a person wrote, or another function, from which an object follows.

    ``about`` is the object with the line; None: the configuration.  ``line`` is the path of the field in it, ``says`` what it
    comes to.
    """

    about: Key | None
    line: str
    says: str = ""


@dataclass(frozen=True, slots=True)
class Origin:
    """What an object comes from.

    ``owner`` is as in events and logs, such as ``project/p-1``.  ``proof`` is what proves it to be that owner's.  ``because``
    begins with what is nearest to the object.  ``ends`` are commands and edits, any one of which takes it away, or takes the
    subject that was asked about out of it.
    """

    owner: str
    proof: str
    because: tuple[Because, ...]
    ends: tuple[str, ...]
    does: str = MAKES


@dataclass(frozen=True, slots=True)
class Offer:
    """A declaration that is about what was asked, why it does not give it, and what would make it."""

    because: Because
    lacks: str
    fix: str


class Looking(Protocol):
    """What explanations read with: the rights of who asks, and nothing else.

    What cannot be read is as if it were not there, and is told besides.
    """

    @property
    def config(self) -> Config:
        """The configuration in force, as far as it is known."""
        ...

    async def get(self, kind: Kind, name: str, namespace: str = "") -> Object | None:
        """A live object."""
        ...

    async def list(self, kind: Kind, namespace: str = "", labels: str = "") -> Sequence[Object]:
        """Live objects, by label selector."""
        ...


def kubectl(verb: str, kind: Kind, name: str, namespace: str = "", more: str = "") -> str:
    """A command about one object, with the group of its kind where that has one."""
    where = f" -n {namespace}" if namespace and kind.namespaced else ""
    return f"kubectl {verb}{where} {kind.resource} {name}{f' {more}' if more else ''}"


def edit(kind: Kind, name: str, what: str, namespace: str = "") -> str:
    """The command that opens an object, and what to do in it."""
    return f"{kubectl('edit', kind, name, namespace)}  # {what}"


def all_of(ways: Sequence[str]) -> tuple[str, ...]:
    """One way out of several that are needed together, as commands one after the other with what to do in each behind them.

    >>> all_of([edit(Kind("v1", "ConfigMap", "configmaps"), "c", "take a out", "n"), "kubectl delete -n n secrets s"])
    ('kubectl edit -n n configmaps c && kubectl delete -n n secrets s  # take a out',)
    >>> all_of([])
    ()
    """
    parts = [way.partition("  # ") for way in dict.fromkeys(ways)]
    commands = " && ".join(dict.fromkeys(command for command, _, _ in parts))
    notes = "; ".join(dict.fromkeys(note for _, _, note in parts if note))
    return (f"{commands}  # {notes}" if notes else commands,) if parts else ()


def leaving(kind: Kind, binding: Object, subject: BoundSubject | None) -> str:
    """What takes a subject out of a binding that a person made: the last one takes the binding along."""
    key = key_of(binding)
    if subject is None or len(binding.get("subjects") or ()) <= 1:
        return kubectl("delete", kind, key.name, key.namespace)
    return edit(kind, key.name, f"take {subject} out of subjects", key.namespace)
