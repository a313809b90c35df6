"""Whom the guards would refuse today: who may write what they guard and lacks the right that they ask for, and which namespaces
stand as nobody but an administrator could make them now.

Who may write follows from the cluster's Roles and bindings.  What somebody lacks the API server is asked (SubjectAccessReview),
for the subject of the binding itself: what a person holds beside it through a group is not known here.  Nothing is written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from tenantry.api import Api
from tenantry.api.review import reviewed
from tenantry.local.policies import PART_OF, guard_documents, guard_names
from tenantry.model import limits
from tenantry.model.config import Config
from tenantry.model.difference import owns
from tenantry.model.kinds import (
    ADMISSION_POLICY,
    ADMISSION_POLICY_BINDING,
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    HELM_CHART,
    HELM_RELEASE,
    NAMESPACE,
    NAMESPACE_SCOPE,
    PROJECT_HELM_CHART,
    ROLE,
    ROLE_BINDING,
    SCOPE_INSTANCE,
    SCOPE_INSTANCE_FRAMEWORK,
    SCOPE_TEMPLATE,
    SCOPE_TEMPLATE_FRAMEWORK,
    Kind,
    Object,
    annotations_of,
    is_terminating,
    labels_of,
)
from tenantry.model.names import ADOPT, ALLOW_DELETION, NAMESPACE_NAME, OPERATED, ORPHANED, REGISTRATION_PREFIX
from tenantry.model.projects import REGISTRATION_MANAGER, RELEASE_MANAGER, is_registration

Say = Callable[[str], None]
T = TypeVar("T")

SILENCE_S = 2.0
"""Who waits longer is told for what."""
SHOWN = 3
"""Places that a row names; of the others it says how many there are."""

_WRITING = ("create", "patch", "update")
_GUARDED: tuple[tuple[Kind, tuple[str, ...]], ...] = (
    (NAMESPACE, ("", "/status", "/finalize")),
    (HELM_CHART, ("", "/status")),
    (HELM_RELEASE, ("", "/status")),
    (PROJECT_HELM_CHART, ("/status",)),  # the charts themselves are the owners' to write
    (NAMESPACE_SCOPE, ("", "/status")),
    (SCOPE_TEMPLATE, ("", "/status")),
    (SCOPE_INSTANCE, ("", "/status")),
    (SCOPE_TEMPLATE_FRAMEWORK, ("", "/status")),
    (SCOPE_INSTANCE_FRAMEWORK, ("", "/status")),
)
_POLICIES = (ADMISSION_POLICY, ADMISSION_POLICY_BINDING)
_GROUP = "tenantry.dev"
_JOIN, _WRITE = ("join", "projects"), ("write", "marks")
_DEFAULTS = ("kubernetes.io/bootstrapping", "rbac-defaults")
"""Label of the bindings that Kubernetes brings: its controllers write none of our marks."""


@dataclass(frozen=True, slots=True, order=True)
class Subject:
    """A user, a group or a ServiceAccount of a binding."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"

    def spec(self) -> Object:
        """Who it is in a SubjectAccessReview."""
        everybody = "system:authenticated"
        if self.kind == "ServiceAccount":
            groups = ["system:serviceaccounts", f"system:serviceaccounts:{self.namespace}", everybody]
            return {"user": f"system:serviceaccount:{self.namespace}:{self.name}", "groups": groups}
        return {"groups": [self.name, everybody]} if self.kind == "Group" else {"user": self.name, "groups": [everybody]}


@dataclass(slots=True)
class Rights:
    """What a subject may write of what is guarded: verbs by resource and place, empty for everywhere; and what it may join."""

    writes: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    joins: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody whom the guards would refuse something."""

    who: str
    may: list[str]
    lacks: list[str]


@dataclass(frozen=True, slots=True)
class OddNamespace:
    """A namespace that stands as only an administrator could make it, or end it, with the guards."""

    namespace: str
    why: str


@dataclass(frozen=True, slots=True)
class Preflight:
    """What was found."""

    installed: list[str]
    missing: list[str]
    people: list[Person]
    namespaces: list[OddNamespace]
    in_use: int
    """How many namespaces the guards would keep from being deleted, since projects and releases use them."""

    def as_dict(self) -> dict[str, Any]:
        """For output."""
        return asdict(self)


async def preflight(api: Api, config: Config, say: Say) -> Preflight:
    """Look at a cluster as an administrator; ``say`` gets a line when something takes long.

    Raises:
        ApiError: the server refuses, or is away.
    """
    kinds = (CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING, NAMESPACE, *_POLICIES)
    lists = await asyncio.gather(*(_patiently(api.list(kind), f"reading {kind.plural}", say) for kind in kinds))
    found = {kind: listed.items for kind, listed in zip(kinds, lists, strict=True)}
    rights = rights_of(found)
    people = await _refused(api, rights, say)
    there = {each["metadata"]["name"] for each in found[ADMISSION_POLICY]} & set(_in_force(found[ADMISSION_POLICY_BINDING]))
    live = [each for each in found[NAMESPACE] if not is_terminating(each)]
    return Preflight(
        installed=sorted(guard_names() & there),
        missing=sorted(guard_names() - there),
        people=people,
        namespaces=[OddNamespace(each["metadata"]["name"], why) for each in live if (why := odd(each, config))],
        in_use=sum(_is_in_use(each) for each in live),
    )


def _in_force(bindings: Iterable[Object]) -> Iterator[str]:
    """Names of policies that refuse, or warn where ours only do that: without such a binding a policy does nothing."""
    ours = [each["spec"] for each in guard_documents() if each["kind"] == ADMISSION_POLICY_BINDING.kind]
    warning = {spec["policyName"] for spec in ours if "Deny" not in spec["validationActions"]}
    for each in bindings:
        name, actions = each["spec"]["policyName"], each["spec"].get("validationActions", ())
        if "Deny" in actions or ("Warn" in actions and name in warning):
            yield name


async def _patiently(work: Awaitable[T], what: str, say: Say) -> T:
    """Wait for something, and say so as long as it takes."""
    task = asyncio.ensure_future(work)
    try:
        while not (await asyncio.wait({task}, timeout=SILENCE_S))[0]:
            say(f"{what} ...")
    finally:
        task.cancel()  # without effect once it is done
    return task.result()


# -- who may write -------------------------------------------------------------------------------------------


def rights_of(found: dict[Kind, list[Object]]) -> dict[Subject, Rights]:
    """Everybody who may write something guarded, from Roles and bindings; those of Kubernetes and of Tenantry left out."""
    roles = {("", each["metadata"]["name"]): each.get("rules") or [] for each in found[CLUSTER_ROLE]}
    roles |= {(each["metadata"]["namespace"], each["metadata"]["name"]): each.get("rules") or [] for each in found[ROLE]}
    made: dict[Subject, Rights] = {}
    for binding in (*found[CLUSTER_ROLE_BINDING], *found[ROLE_BINDING]):
        labels = labels_of(binding)
        if labels.get(_DEFAULTS[0]) == _DEFAULTS[1] or labels.items() >= PART_OF.items():
            continue
        place = binding["metadata"].get("namespace", "")
        reference = binding["roleRef"]
        rules = roles.get((place if reference["kind"] == ROLE.kind else "", reference["name"])) or ()
        for subject in binding.get("subjects") or ():
            key = Subject(subject["kind"], subject.get("namespace") or "", subject["name"])
            for rule in rules:
                _add(made.setdefault(key, Rights()), rule, place)
    return {subject: rights for subject, rights in made.items() if rights.writes}


def _add(rights: Rights, rule: Object, place: str) -> None:
    for kind, resource in _resources(rule):
        verbs = {verb for verb in _WRITING if {verb, "*"} & set(rule.get("verbs") or ())}
        # A RoleBinding reaches the namespace that it is in, and nothing else that has no namespace; nor can it make one.
        if place and not kind.namespaced:
            verbs = verbs - {"create"} if kind == NAMESPACE else set()
        if verbs:
            rights.writes.setdefault((resource, place), set()).update(verbs)
    if not place and _covers(rule, _GROUP, _JOIN[1]) and {_JOIN[0], "*"} & set(rule.get("verbs") or ()):
        rights.joins |= set(rule.get("resourceNames") or ())


def _resources(rule: Object) -> Iterator[tuple[Kind, str]]:
    for kind, parts in _GUARDED:
        for part in parts:
            resource = f"{kind.plural}{part}"
            if _covers(rule, kind.group, resource):
                yield kind, f"{resource}.{kind.group}" if kind.group else resource


def _covers(rule: Object, group: str, resource: str) -> bool:
    names = {resource, "*", f"*/{resource.partition('/')[2]}" if "/" in resource else "*"}
    return bool({group, "*"} & set(rule.get("apiGroups") or ())) and bool(names & set(rule.get("resources") or ()))


async def _refused(api: Api, rights: dict[Subject, Rights], say: Say) -> list[Person]:
    asked = 0

    async def lacks(subject: Subject) -> list[str]:
        nonlocal asked
        wanted = [_WRITE]
        if any(resource.partition("/")[0] == NAMESPACE.plural for resource, _ in rights[subject].writes):
            wanted.insert(0, _JOIN)
        missing = [each for each in wanted if not await _may(api, subject, *each)]
        asked += 1
        return [_lacking(each, rights[subject].joins) for each in missing]

    async def everybody() -> list[list[str]]:
        return await asyncio.gather(*(lacks(subject) for subject in subjects))

    subjects = sorted(rights)
    found = await _patiently(everybody(), f"asking for the rights of {len(subjects)} users, groups and accounts", say)
    return [
        Person(str(subject), list(_written(rights[subject])), missing)
        for subject, missing in zip(subjects, found, strict=True)
        if missing
    ]


def _lacking(right: tuple[str, str], joins: Iterable[str]) -> str:
    verb, resource = right
    some = sorted(joins) if right == _JOIN else []
    return f"{verb} on {resource}.{_GROUP}" + (f", but for {limits.few(some, SHOWN)}" if some else "")


def _written(rights: Rights) -> Iterator[str]:
    by_right: dict[tuple[str, str], list[str]] = {}
    for (resource, place), verbs in sorted(rights.writes.items()):
        by_right.setdefault((resource, ", ".join(sorted(verbs))), []).append(place)
    for (resource, listed), places in by_right.items():
        yield f"{listed} {resource}" + ("" if "" in places else f" in {limits.few(places, SHOWN)}")


async def _may(api: Api, subject: Subject, verb: str, resource: str) -> bool:
    attributes = {"verb": verb, "group": _GROUP, "resource": resource}
    return await reviewed(api, {**subject.spec(), "resourceAttributes": attributes})


# -- namespaces ----------------------------------------------------------------------------------------------


def odd(namespace: Object, config: Config) -> str:
    """Why only an administrator could put this namespace right once there are guards; empty when nothing is odd."""
    labels, annotations, name = labels_of(namespace), annotations_of(namespace), namespace["metadata"]["name"]
    made = any(
        owns(namespace, manager, "metadata", "labels", NAMESPACE_NAME) for manager in (REGISTRATION_MANAGER, RELEASE_MANAGER)
    )
    if annotations.get(ADOPT) == "true":
        return "" if made else f"it has the annotation {ADOPT}: Tenantry takes it over when it needs it"
    if ALLOW_DELETION in annotations:
        return f"it has the annotation {ALLOW_DELETION}: it may be deleted although it is in use"
    if name.startswith(REGISTRATION_PREFIX) and not is_registration(namespace, config):
        return "it bears the name of a registration namespace, and is not ours: its project is not served"
    if OPERATED in labels and not made:
        return f"it has the label {OPERATED}, and no function of ours made it"
    return ""


def _is_in_use(namespace: Object) -> bool:
    labels = labels_of(namespace)
    return OPERATED in labels and ORPHANED not in labels and annotations_of(namespace).get(ALLOW_DELETION) != "true"
