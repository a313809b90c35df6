"""The paths from bindings to a right: which binding names whoever is asked about, and which rule of its role allows it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from tenantry.model.kinds import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING, Key, Object, key_in, key_of, labels_of
from tenantry.model.origin import Looking
from tenantry.model.rbac import BoundSubject, Question, aggregates, allowing, allows, subject_in

KINDS = {kind.kind: kind for kind in (ROLE, CLUSTER_ROLE, ROLE_BINDING, CLUSTER_ROLE_BINDING)}


@dataclass(frozen=True, slots=True)
class Bound:
    """A binding that names whoever is asked about; ``role`` None: its role is not there, or cannot be read."""

    binding: Object
    subject: BoundSubject
    role_key: Key
    role: Object | None


@dataclass(frozen=True, slots=True)
class RightPath:
    """One way in which a right is had: the rule by its number in the role, from 0, and the ClusterRoles that it came from."""

    bound: Bound
    number: int
    sources: tuple[str, ...] = ()

    @property
    def rule(self) -> Object:
        """The rule that allows it."""
        assert self.bound.role is not None
        rule: Object = self.bound.role["rules"][self.number]
        return rule


async def bound_in(question: Question, look: Looking, namespace: str) -> AsyncIterator[Bound]:
    """The bindings of the cluster, or of a namespace, that name whoever is asked about."""
    for binding in await look.list(ROLE_BINDING if namespace else CLUSTER_ROLE_BINDING, namespace):
        if (bound := await bound_by(binding, question, look)) is not None:
            yield bound


async def bound_by(binding: Object, question: Question, look: Looking) -> Bound | None:
    """What a binding has to do with whoever is asked about; None where it does not name them."""
    subject, reference = subject_in(binding, question), binding["roleRef"]
    kind = KINDS.get(reference["kind"])
    if subject is None or kind is None:
        return None
    key = key_in(kind, reference["name"], key_of(binding).namespace)
    return Bound(binding, subject, key, await look.get(kind, key.name, key.namespace))


async def paths_of(question: Question, look: Looking) -> tuple[list[RightPath], list[Bound]]:
    """Every path to a right, those of the cluster first; and the bindings that name whoever asks, with or without a path."""
    found: list[RightPath] = []
    bound: list[Bound] = []
    for namespace in ("", question.namespace) if question.namespace else ("",):
        async for each in bound_in(question, look, namespace):
            bound.append(each)
            number = allowing(question, (each.role or {}).get("rules"))
            if number is not None and each.role is not None:
                found.append(RightPath(each, number, await _sources(question, each.role, look)))
    return found, bound


async def _sources(question: Question, role: Object, look: Looking) -> tuple[str, ...]:
    """The ClusterRoles that an aggregated one has such a rule from; those that are aggregated themselves stand for theirs."""
    if not role.get("aggregationRule"):
        return ()
    every: Sequence[Object] = await look.list(CLUSTER_ROLE)
    return tuple(
        each["metadata"]["name"]
        for each in every
        if each["metadata"]["name"] != role["metadata"]["name"] and aggregates(role, labels_of(each)) and allows(question, each)
    )
