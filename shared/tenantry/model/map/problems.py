"""What conditions of ours tell is wrong: reason, message, fix, and how many it concerns.

People are counted as what bindings name: each user, group and ServiceAccount once, over the RoleBindings of all namespaces that
the object concerns.  Nobody but an identity provider knows who is in a group, so a group counts as one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from tenantry.model.conditions import find_condition
from tenantry.model.descriptor import Tells
from tenantry.model.kinds import Kind, Object

_REFUSED = re.compile(r"to fix it, (?P<fix>.*?)(?: \(the API server says|$)")
_WAY_OUT = re.compile(r": (?P<fix>(?P<verb>[a-z]+)\b[^:]*(?::[^ ][^:]*)*)$")
_VERBS = frozenset(
    (  # noqa: SIM905 - a list of words reads better as words
        "add adopt allow annotate apply ask bind change choose clear correct create declare delete fix free give grant have "
        "install label leave let look lower make move name put raise remove rename replace run see set shorten split start state "
        "stop switch take use wait write"
    ).split()
)
"""With which a way out begins, in the messages of our reports."""


@dataclass(frozen=True, slots=True)
class ToldProblem:
    """One condition that tells of a problem; ``owner`` is as ``project/p-a``."""

    kind: str
    name: str
    namespace: str
    condition: str
    reason: str
    message: str
    fix: str
    warns: bool = False
    since: str = ""
    owner: str = ""
    people: int = 0
    namespaces: int = 0

    @property
    def about(self) -> str:
        """The object, as ``Kind name`` or ``Kind namespace/name``."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"

    @property
    def told(self) -> str:
        """The message without the fix, where that is a part of it."""
        before, found, after = self.message.partition(self.fix)
        if not found:
            return self.message
        return f"{before.removesuffix('to fix it, ').rstrip(' :')}{after}"

    @property
    def urgency(self) -> tuple[bool, int, int, str, str, str]:
        """Errors before warnings, then what concerns most people, then most namespaces; the rest is for a steady order."""
        return self.warns, -self.people, -self.namespaces, self.kind, self.namespace, self.name

    def document(self) -> Object:
        """As JSON has it."""
        return {
            "kind": self.kind,
            "name": self.name,
            **({"namespace": self.namespace} if self.namespace else {}),
            **({"owner": self.owner} if self.owner else {}),
            "severity": "warning" if self.warns else "error",
            "condition": self.condition,
            "reason": self.reason,
            "message": self.message,
            "fix": self.fix,
            **({"since": self.since} if self.since else {}),
            "people": self.people,
            "namespaces": self.namespaces,
        }


def fix_in(message: str) -> str:
    """The way out that a message of ours names: after ``to fix it,``, or its last clause where that begins with a verb."""
    if found := _REFUSED.search(message):
        return found["fix"]
    found = _WAY_OUT.search(message)
    return found["fix"] if found and found["verb"] in _VERBS else ""


def told(obj: Object, tells: Iterable[Tells]) -> Iterator[tuple[Tells, Object]]:
    """The conditions of an object that tell of a problem; of several with one text the first."""
    said: set[tuple[object, object]] = set()
    for each in tells:
        found = find_condition(obj, each.type)
        if found is None or found.get("status") != each.bad or found.get("reason") in each.wanted:
            continue
        if each.reasons and found.get("reason") not in each.reasons:
            continue
        text = found.get("reason"), found.get("message")
        if text not in said:
            said.add(text)
            yield each, found


def problems_in(
    obj: Object,
    kind: Kind,
    tells: Sequence[Tells],
    owner: str,
    concerned: Callable[[], AbstractSet[str]],
    people: Mapping[str, frozenset[str]],
) -> tuple[ToldProblem, ...]:
    """The problems of an object; ``concerned`` are the namespaces that it concerns, ``people`` whom their bindings name."""
    found = []
    metadata = obj["metadata"]
    name, namespace = metadata["name"], metadata.get("namespace") or ""
    for each, condition in told(obj, tells):
        places = concerned()
        message = str(condition.get("message") or "")
        where = f" -n {namespace}" if namespace else ""
        found.append(
            ToldProblem(
                kind.kind,
                name,
                namespace,
                each.type,
                str(condition.get("reason") or ""),
                message,
                fix_in(message) or f"kubectl describe {kind.resource} {name}{where}",
                each.warns,
                str(condition.get("lastTransitionTime") or ""),
                owner,
                len(frozenset().union(*(people.get(place, frozenset()) for place in places))),
                len(places),
            )
        )
    return tuple(found)
