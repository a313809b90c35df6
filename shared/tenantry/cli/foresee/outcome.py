"""What a plan comes to: what is made, changed and deleted in the end, and who gains and loses rights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from tenantry.api.errors import ApiError
from tenantry.engine.overlay.api import EVERYWHERE, KUBERNETES, OverlayApi
from tenantry.engine.overlay.store import ObjectPlace, Written, place_of
from tenantry.model.kinds import CLUSTER_ROLE_BINDING, EVENT, ROLE_BINDING, Key, Object, is_terminating
from tenantry.serving.foresight import Foreseen

Effect = Literal["created", "changed", "deleted", "leaving", "made and deleted", "unchanged"]
_UNTOLD = ("managedFields", "uid", "resourceVersion", "creationTimestamp", "generation")


class HeldRight(NamedTuple):
    """A right that somebody has: who, by which role, and where (empty: in the whole cluster)."""

    subject_kind: str
    subject: str
    role: str
    namespace: str


@dataclass(frozen=True, slots=True)
class Net:
    """One object: before all writes and after them, what they come to, and what of that the change itself does and what follows.

    ``change`` and ``follows`` are empty where nobody of that sort writes it.
    """

    key: Key
    before: Object | None
    after: Object | None
    change: Effect | Literal[""]
    follows: Effect | Literal[""]


@dataclass(frozen=True, slots=True)
class PlanOutcome:
    """All that is told of a plan."""

    foreseen: Foreseen
    nets: Sequence[Net]
    lost: frozenset[HeldRight]
    gained: frozenset[HeldRight]

    @property
    def follows(self) -> list[Net]:
        """The objects that others than the change write, Events aside."""
        return [each for each in self.nets if each.follows not in ("", "unchanged")]

    @property
    def writes(self) -> list[Written]:
        """What functions and Kubernetes write, in order; Events, and what every new namespace has, aside."""
        return [each for each in self.foreseen.written if each.actor.name and _is_told(each)]

    @property
    def events(self) -> list[Written]:
        """The Kubernetes Events that would be recorded."""
        found = [each for each in self.foreseen.written if each.kind.kind == EVENT.kind and each.actor.unit]
        return [each for each in found if each.after is not None and not _is_own_trouble(each.after)]

    @property
    def summary(self) -> str:
        """``3 created, 1 changed, 0 deleted in 2 namespaces; 1 person loses rights``."""
        count = Counter(each.follows for each in self.follows)
        places = {each.key.namespace or (each.key.name if each.key.kind == "Namespace" else "") for each in self.follows} - {""}
        text = f"{count['created']} created, {count['changed']} changed, {count['deleted'] + count['leaving']} deleted"
        text += f" in {_many(len(places), 'namespace')}" if places else ""
        parts = [text, _people(self.lost, "loses", "lose"), _people(self.gained, "gains", "gain")]
        return "; ".join(each for each in parts if each)


async def outcome_of(found: Foreseen, over: OverlayApi) -> PlanOutcome:
    """What a plan comes to; the bindings of places where some change are read for who has rights by them."""
    nets = list(_nets(found.written))
    before, after = set[HeldRight](), set[HeldRight]()
    for kind in (ROLE_BINDING, CLUSTER_ROLE_BINDING):
        for namespace in sorted({each.key.namespace for each in nets if each.key.gvk == kind.gvk}):
            try:
                before |= _grants((await over.live.list(kind, namespace)).items)
                after |= _grants((await over.list(kind, namespace)).items)
            except ApiError as error:
                over.overlay.unseen[f"list {kind.plural} in {namespace}".removesuffix(" in ")] = error.message
    return PlanOutcome(found, nets, frozenset(before - after), frozenset(after - before))


def _nets(written: Iterable[Written]) -> Iterator[Net]:
    places: dict[ObjectPlace, list[Written]] = {}
    for each in written:
        if _is_told(each):
            places.setdefault(place_of(each.kind, each.key.name, each.key.namespace), []).append(each)
    for writes in places.values():
        first, last = writes[0], writes[-1]
        own = [each for each in writes if not each.actor.name]
        others = [each for each in writes if each.actor.name]
        between = own[-1].after if own else first.before
        asked = own and between is not None and is_terminating(between)  # then it is the change that deletes it
        yield Net(
            last.key,
            first.before,
            last.after,
            _effect(own[0].before, own[-1].after) if own else "",
            _effect(between, last.after) if others and not asked else "",
        )


def _effect(before: Object | None, after: Object | None) -> Effect:
    if before is None:
        return "made and deleted" if after is None else "created"
    if after is None:
        return "deleted"
    if is_terminating(after) and not is_terminating(before):
        return "leaving"
    return "unchanged" if told(before) == told(after) else "changed"


def told(obj: Object) -> Object:
    """An object without what only the API server counts."""
    metadata = {name: value for name, value in obj["metadata"].items() if name not in _UNTOLD}
    return {**obj, "metadata": metadata}


def _is_told(written: Written) -> bool:
    usual = written.actor.name == KUBERNETES and (written.kind, written.key.name) in EVERYWHERE
    return written.kind.kind != EVENT.kind and not usual


def _is_own_trouble(event: Object) -> bool:
    """Whether an Event would only tell that who plans lacks a right."""
    return bool(event.get("reason") == "RightMissing" and (event.get("regarding") or {}).get("kind") == "ServiceAccount")


def _grants(bindings: Iterable[Object]) -> set[HeldRight]:
    found = set()
    for binding in bindings:
        namespace, reference = binding["metadata"].get("namespace", ""), binding.get("roleRef") or {}
        for subject in binding.get("subjects") or ():
            name = subject["name"]
            if subject["kind"] == "ServiceAccount":
                name = f"{subject.get('namespace') or namespace}/{name}"
            found.add(HeldRight(subject["kind"], name, f"{reference.get('kind')} {reference.get('name')}", namespace))
    return found


_CALLED = {"User": ("person", "people"), "Group": ("group", "groups"), "ServiceAccount": ("ServiceAccount", "ServiceAccounts")}


def _people(grants: Iterable[HeldRight], one: str, several: str) -> str:
    """``1 person and 2 groups lose rights``; empty where there is nobody."""
    count = Counter(kind for kind, _ in {(each.subject_kind, each.subject) for each in grants})
    parts = [_many(count[kind], *words) for kind, words in _CALLED.items() if count[kind]]
    if not parts:
        return ""
    text = " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
    return f"{text} {one if count.total() == 1 else several} rights"


def _many(count: int, one: str, several: str = "") -> str:
    return f"{count} {one if count == 1 else several or one + 's'}"


def grant_line(grant: HeldRight, verb: str) -> str:
    """``User alice loses ClusterRole view in namespace team-a``."""
    where = f"in namespace {grant.namespace}" if grant.namespace else "in the whole cluster"
    return f"{grant.subject_kind} {grant.subject} {verb} {grant.role} {where}"


def grant_dict(grant: HeldRight, effect: str) -> dict[str, Any]:
    """A gain or loss for programs."""
    kind, name, role, namespace = grant
    return {"effect": effect, "kind": kind, "name": name, "role": role, "namespace": namespace}
