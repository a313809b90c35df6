"""What is laid on a cluster: objects as they would be, and the record of how they came to be so."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from tenantry.model.kinds import NAMESPACE, Key, Kind, Object, is_terminating

FIRST_VERSION = 10**15
"""Versions of what is laid on are above those of any server, so that no read takes one for the other."""
_UIDS = uuid.UUID("6f2c1d0e-5b0a-4c57-9a53-6d1f3f1f7a10")

Verb = Literal["create", "update", "status", "delete"]


class ObjectPlace(NamedTuple):
    """Where an object is, in whatever version of its kind it is read."""

    group: str
    kind: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Actor:
    """Who writes, and what woke him."""

    name: str = ""
    """The function; or who else, such as Kubernetes' own controllers."""
    unit: str = ""
    cause: str = ""
    """The key of the change, or what else asked for the run."""
    step: int = 0
    """0 for the change itself; what follows from a step is one more."""


NOBODY = Actor()
acting: ContextVar[Actor] = ContextVar("acting", default=NOBODY)
"""Who is at work in the current task."""


@dataclass(frozen=True, slots=True)
class Written:
    """One write: the object before and after it (None: not there)."""

    verb: Verb
    kind: Kind
    key: Key
    before: Object | None
    after: Object | None
    actor: Actor
    owner: str
    manager: str


@dataclass(slots=True)
class Overlay:
    """Objects laid on a live cluster, by place; None where one is gone."""

    laid: dict[ObjectPlace, tuple[Kind, Object | None]] = field(default_factory=dict)
    written: list[Written] = field(default_factory=list)
    unseen: dict[str, str] = field(default_factory=dict)
    """What could not be read, each with why."""
    not_served: set[str] = field(default_factory=set)
    """Kinds that were asked for and are not served."""
    refused: dict[Key, str] = field(default_factory=dict)
    """What the server would refuse, in its words."""
    unforeseen: dict[str, str] = field(default_factory=dict)
    """What others do with what was written, which nobody can tell from here."""
    _counted: int = 0

    def version(self) -> str:
        """A resourceVersion that none had before."""
        self._counted += 1
        return str(FIRST_VERSION + self._counted)

    def uid(self, place: ObjectPlace) -> str:
        """A uid for what would be made: the same each time that the same is planned."""
        self._counted += 1
        return str(uuid.uuid5(_UIDS, f"{place} {self._counted}"))

    def is_gone(self, namespace: str) -> bool:
        """Whether a namespace was taken away, with all in it."""
        return self.laid.get(ObjectPlace("", NAMESPACE.kind, "", namespace), (NAMESPACE, {}))[1] is None

    def is_leaving(self, namespace: str) -> bool:
        """Whether a namespace is on its way out because of what was laid on."""
        found = self.laid.get(ObjectPlace("", NAMESPACE.kind, "", namespace))
        return found is not None and found[1] is not None and is_terminating(found[1])

    def put(self, verb: Verb, kind: Kind, key: Key, before: Object | None, after: Object | None, who: tuple[str, str]) -> None:
        """Lay an object on, or take one away, and note the write; ``who`` has (owner, field manager)."""
        owner, manager = who
        self.laid[place_of(kind, key.name, key.namespace)] = kind, after
        self.written.append(Written(verb, kind, key, deepcopy(before), deepcopy(after), acting.get(), owner, manager))

    def of_kind(self, kind: Kind) -> Iterator[Object]:
        """What is laid on of a kind and there, in the version that is asked for."""
        for place, (_, obj) in sorted(self.laid.items(), key=lambda item: (item[0].namespace, item[0].name)):
            if obj is not None and (place.group, place.kind) == (kind.group, kind.kind):
                yield {**deepcopy(obj), "apiVersion": kind.api_version}


def place_of(kind: Kind, name: str, namespace: str) -> ObjectPlace:
    """The place of an object of a kind; of a cluster-scoped one whatever namespace is asked for."""
    return ObjectPlace(kind.group, kind.kind, namespace if kind.namespaced else "", name)
