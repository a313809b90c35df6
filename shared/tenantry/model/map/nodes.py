"""The one shape of a map: a tree of nodes, for text, pages and programs alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tenantry.model.kinds import Object
from tenantry.model.map.problems import ToldProblem

GROUPS: Mapping[str, str] = {"project": "projects", "paas": "paas", "tenant": "tenants"}
"""Types of owners that namespaces belong to, in the order in which they are shown, with the names of their groups."""
OWNERS = tuple(GROUPS)


@dataclass(frozen=True, slots=True)
class Node:
    """A thing in the map: an owner, a namespace or an object, with what is below it.

    ``kind`` is a kind of Kubernetes, or ``project``, ``group``, ``namespace``.  ``note`` says in a few words what it is.
    Of a binding ``role`` is what it gives, ``subjects`` whom, and ``by`` whose it is where a function of ours made it.
    """

    kind: str
    name: str
    namespace: str = ""
    note: str = ""
    role: str = ""
    by: str = ""
    subjects: tuple[str, ...] = ()
    problems: tuple[ToldProblem, ...] = ()
    children: tuple[Node, ...] = field(default=())

    @property
    def title(self) -> str:
        """What people call it: an owner as ``project/p-a``, an object with its kind."""
        if self.kind in ("group", "Namespace"):
            return self.name
        if self.kind in OWNERS:
            return f"{self.kind}/{self.name}"
        return f"{self.kind} {self.name}"

    def walk(self) -> Iterator[Node]:
        """It and all below it."""
        yield self
        for child in self.children:
            yield from child.walk()

    def document(self) -> Object:
        """As JSON has it; what is empty is left out."""
        found: Object = {"kind": self.kind, "name": self.name}
        for name in ("namespace", "note", "role", "by"):
            if value := getattr(self, name):
                found[name] = value
        if self.subjects:
            found["subjects"] = list(self.subjects)
        if self.problems:
            found["problems"] = [each.document() for each in self.problems]
        if self.children:
            found["children"] = [child.document() for child in self.children]
        return found
