"""What is known of a consumer: what it names, whether it may, and how it is marked; and what all that are denied come to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tenantry.model import limits
from tenantry.model.flux.access import (
    AccessDecision,
    AccessEntries,
    Asking,
    NamedObject,
    decide_access,
    denial_of,
    references_of,
    value_at,
)
from tenantry.model.flux.consumers import HELM_GROUP, KUSTOMIZE_GROUP, Consumer, Reference
from tenantry.model.flux.names import ACCESS_DENIED, LOCK_FINALIZER, LOCKED, SUSPENDED_BY_LOCK
from tenantry.model.flux.profile import Profile
from tenantry.model.kinds import Kind, Object, annotations_of, finalizers_of, is_terminating

OURS = "access lock: "
"""How the messages of our conditions begin: Flux gives the same reason to what its own flags refuse."""
READY, STALLED = "Ready", "Stalled"
_TELLS_OF_OBJECTS = frozenset({KUSTOMIZE_GROUP, HELM_GROUP})
_FORBIDDEN = re.compile(
    r'"(?P<name>[^"]{1,253})" is forbidden: User "[^"]*" cannot \S+ resource "(?P<plural>[^"/]{1,63})[^"]*" '
    r'in API group "(?P<group>[^"]{0,253})"'
)
_MESSAGE_CHARACTERS = 16_384
"""Of a message of Flux, what is looked at."""


class ForbiddenObject(NamedTuple):
    """An object that an account may not write, as the API server's refusal names it."""

    group: str
    plural: str
    name: str


@dataclass(frozen=True, slots=True)
class AccessContext:
    """What decides about all consumers: profile, index, and the labels of Namespaces (None: unreadable)."""

    profile: Profile
    entries: AccessEntries | None
    labels: Mapping[str, Mapping[str, str] | None]

    @property
    def locks(self) -> bool:
        """Whether what loses its grant is locked."""
        return self.profile.is_multi_tenant and not self.profile.is_audit and self.profile.on_revocation == "Suspend"

    @property
    def reports(self) -> bool:
        """Whether what loses its grant is told and not locked."""
        return self.profile.is_multi_tenant and not self.profile.is_audit and not self.locks

    @property
    def keeps(self) -> bool:
        """Whether a lock that is there stays on what is denied: admission may have put it there."""
        return self.locks or (self.reports and self.profile.on_denied == "Quarantine")


class ConsumerDecision(NamedTuple):
    """What is decided about all references of a consumer, with a sentence about each that is denied."""

    decision: AccessDecision
    denied: tuple[str, ...] = ()

    @property
    def told(self) -> str:
        """The sentences as people are told them (2.2)."""
        return limits.few(self.denied, between="; ", last="; and ")


def decided(consumer: Object, row: Consumer, context: AccessContext) -> ConsumerDecision:
    """The decision of 2.1 about each reference; nothing is denied on the word of an index that is not complete (2.2)."""
    namespace = consumer["metadata"]["namespace"]
    asking = Asking(namespace, context.labels.get(namespace))
    entries, profile = context.entries, context.profile
    denied, unknown = [], False
    for reference, named in references_of(consumer, row):
        found = decide_access(reference, named, asking, entries, profile)
        if found == "deny" and reference.access != "local" and not (entries is not None and entries.complete):
            found = "unknown"
        unknown = unknown or found == "unknown"
        if found == "deny":
            denied.append(denial_of(reference, named, asking))
    if denied:
        return ConsumerDecision("deny", tuple(denied))
    return ConsumerDecision("unknown" if unknown else "allow")


@dataclass(frozen=True, slots=True)
class ConsumerSeen:
    """A consumer, what is decided about it, and what was told already.

    ``row`` says what stops it, ``kind`` how it is served.  ``has_status``: its conditions can be written.  ``refused`` are the
    cluster-scoped objects that its account may not write, as kind and name.  ``told`` are the names of Warnings that are there,
    ``open`` is False for a namespace that is going, which takes no Events.
    """

    row: Consumer
    kind: Kind
    live: Object
    context: AccessContext
    decision: ConsumerDecision
    has_status: bool = True
    refused: tuple[tuple[str, str], ...] = ()
    told: frozenset[str] = frozenset()
    now: str = ""
    open: bool = True
    certain: bool = True
    """False where there is no profile: a server that has just started may not serve it yet."""

    @property
    def is_denied(self) -> bool:
        """Whether the lock is to be there, or what is said in place of it."""
        return self.decision.decision == "deny" and not is_terminating(self.live)

    @property
    def is_locked(self) -> bool:
        """Whether the lock is there, whole."""
        marked = annotations_of(self.live).get(LOCKED) == ACCESS_DENIED
        return marked and LOCK_FINALIZER in finalizers_of(self.live) and is_stopped(self.live, self.row)

    @property
    def conditions(self) -> Sequence[str]:
        """The types of conditions that say so (2.2)."""
        if not self.has_status:
            return ()
        return (READY,) if self.kind.kind == "ImagePolicy" else (READY, STALLED)


class Violation(NamedTuple):
    """A consumer with denied references; in the order in which they are listed."""

    kind: str
    namespace: str
    name: str
    api_version: str
    message: str


@dataclass(frozen=True, slots=True)
class ViolationsSeen:
    """The TenancyProfile as it is, and all that is denied."""

    profile: Object | None
    violations: tuple[Violation, ...] = ()


def is_stopped(consumer: Object, row: Consumer) -> bool:
    """Whether nothing is reconciled."""
    if row.stop.field:
        return value_at(consumer, row.stop.field) is True
    return annotations_of(consumer).get(row.stop.annotation) == row.stop.value


def is_marked(consumer: Object) -> bool:
    """Whether a consumer has a mark of a lock, whoever put it there."""
    annotations = annotations_of(consumer)
    return LOCKED in annotations or SUSPENDED_BY_LOCK in annotations or LOCK_FINALIZER in finalizers_of(consumer)


def foreign(consumer: Object, row: Consumer) -> Iterator[tuple[Reference, NamedObject]]:
    """The references to other namespaces."""
    namespace = consumer["metadata"]["namespace"]
    return ((each, named) for each, named in references_of(consumer, row) if named.namespace not in ("", namespace))


def our_conditions(consumer: Object) -> list[Object]:
    """The conditions that an access lock has left."""
    found = (consumer.get("status") or {}).get("conditions") or ()
    return [each for each in found if is_our_condition(each)]


def is_our_condition(condition: Object) -> bool:
    """Whether an access lock says it."""
    is_of_a_lock = condition.get("type") in (READY, STALLED) and condition.get("reason") == ACCESS_DENIED
    return is_of_a_lock and str(condition.get("message") or "").startswith(OURS)


def forbidden_object(consumer: Object, row: Consumer) -> ForbiddenObject | None:
    """The object that the account of a Kustomization or HelmRelease may not write, as its condition Ready says (2.4)."""
    if row.group not in _TELLS_OF_OBJECTS:
        return None
    for each in (consumer.get("status") or {}).get("conditions") or ():
        if each.get("type") == READY and each.get("status") == "False":
            found = _FORBIDDEN.search(str(each.get("message") or "")[:_MESSAGE_CHARACTERS])
            return ForbiddenObject(found["group"], found["plural"], found["name"]) if found else None
    return None


def concerns_us(consumer: Object, row: Consumer) -> bool:
    """Whether there is anything to decide, to take off or to tell: most consumers name nothing elsewhere."""
    if is_marked(consumer) or any(True for _ in foreign(consumer, row)):
        return True
    return bool(our_conditions(consumer)) or forbidden_object(consumer, row) is not None


def kept_consumer(consumer: Object, row: Consumer) -> Object:
    """What is kept of a consumer that was listed: its name, and what decides where there is anything to decide."""
    metadata = consumer["metadata"]
    if "uid" not in metadata:  # kept before
        return consumer
    found: Object = {"apiVersion": consumer["apiVersion"], "kind": consumer["kind"]}
    if not concerns_us(consumer, row):
        return {**found, "metadata": {part: metadata[part] for part in ("name", "namespace")}}
    parts = ("name", "namespace", "uid", "resourceVersion", "generation", "deletionTimestamp", "finalizers")
    kept = {part: metadata[part] for part in parts if part in metadata}
    marks = (LOCKED, SUSPENDED_BY_LOCK, row.stop.annotation)
    if "annotations" in metadata:
        kept["annotations"] = {key: value for key, value in annotations_of(consumer).items() if key in marks}
    spec = consumer.get("spec") or {}
    paths = [each.path for each in row.references] + ([row.stop.field] if row.stop.field else [])
    steps = {path.split(".")[1].removesuffix("[]") for path in paths}
    status = consumer.get("status") or {}
    conditions = [each for each in status.get("conditions") or () if each.get("type") in (READY, STALLED)]
    return {
        **found,
        "metadata": kept,
        "spec": {step: spec[step] for step in steps if step in spec},
        "status": {"conditions": conditions},
    }
