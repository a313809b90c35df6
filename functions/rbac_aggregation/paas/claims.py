"""Whose a name is: which groups of a Paas may be made and bound (2.3), judged from what was read.

Names of groups are one space: generated ones, those out of queries, and those that anybody binds.  A name never has two meanings,
whatever is created first (p-99 to p-103).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tenantry.model import limits
from tenantry.model.conditions import find_condition
from tenantry.model.kinds import Object, finalizers_of
from tenantry.model.paas.config import PaasConfig
from tenantry.model.paas.declared import Paas, paas_of
from tenantry.model.paas.groups import Named, names_of
from tenantry.model.paas.names import RIGHTS_FINALIZER, RIGHTS_PART
from tenantry.model.paas.ours import is_ours, uid_of
from tenantry.model.paas.status import PaasProblem


class Claim(NamedTuple):
    """What becomes of one group of a Paas; with a ``problem`` nothing names it."""

    key: str
    name: str
    generated: bool
    problem: PaasProblem | None = None
    wants_object: bool = False
    """Whether a Group object is to be there."""
    bound: bool = False
    """Whether bindings may name it now: of a Group that is still to be made none does."""


@dataclass(frozen=True, slots=True)
class GroupClaimant:
    """Another Paas, as far as names of groups go."""

    name: str
    age: tuple[str, str]
    generates: frozenset[str]
    queries: frozenset[str]
    holds: frozenset[str] = frozenset()
    """Names that its bindings still have from a generation that its rights have not left yet."""


@dataclass(frozen=True, slots=True)
class KnownNames:
    """What is known of names: live Group objects, other Paas where that decides, and what others bind in the whole cluster."""

    served: bool = False
    groups: Mapping[str, Object | None] = field(default_factory=dict)
    others: tuple[GroupClaimant, ...] = ()
    reserved: frozenset[str] = frozenset()


def kept_of_paas(live: Object) -> Object:
    """What of another Paas is kept: whose it is, the names of its groups, and how far its rights are."""
    metadata, spec, status = live["metadata"], live.get("spec"), live.get("status")
    kept = ("name", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "finalizers")
    groups = spec.get("groups") if isinstance(spec, dict) else None
    queries = {
        key: {"query": group.get("query")} if isinstance(group, dict) and group.get("query") else {}
        for key, group in (groups.items() if isinstance(groups, dict) else ())
    }
    conditions = (status or {}).get("conditions") or () if isinstance(status, dict) else ()
    return {
        "apiVersion": live["apiVersion"],
        "kind": live["kind"],
        "metadata": {name: metadata[name] for name in kept if name in metadata},
        "spec": {"groups": queries},
        "status": {"conditions": [each for each in conditions if each.get("type") == RIGHTS_PART]},
    }


def is_behind(live: Object) -> bool:
    """Whether the bindings of a Paas may be those of an earlier generation: by its finalizer it has some."""
    metadata = live["metadata"]
    if RIGHTS_FINALIZER not in finalizers_of(live):
        return False
    if metadata.get("deletionTimestamp"):
        return True
    told = find_condition(live, RIGHTS_PART)
    generation: int = metadata.get("generation", 0)
    return generation > 1 if told is None else bool(told.get("observedGeneration") != generation)


class Claimants:
    """Other Paas as they were worked out before: many runs ask for all of them, and most have not changed."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, GroupClaimant]] = {}

    def of(self, live: Object, bindings: Iterable[Object] = ()) -> GroupClaimant:
        """The same as `other_of`, which depends on the object alone where there are no bindings."""
        uid, version = live["metadata"]["uid"], live["metadata"]["resourceVersion"]
        known = self._known.get(uid)
        if bindings or known is None or known[0] != version:
            known = (version, other_of(live, bindings))
            if not bindings:
                if len(self._known) >= limits.REMEMBERED:
                    self._known.clear()
                self._known[uid] = known
        return known[1]


def other_of(live: Object, bindings: Iterable[Object] = ()) -> GroupClaimant:
    """Another Paas; ``bindings`` are those that it has, where it is behind.  One that is being deleted declares nothing."""
    paas = paas_of(live)
    names = [] if paas.deleted else [each for each in names_of(paas).values() if not each.problem]
    return GroupClaimant(
        paas.name,
        paas.age,
        frozenset(each.name for each in names if each.generated),
        frozenset(each.name for each in names if not each.generated),
        frozenset(name for each in bindings for name in names_in(each)),
    )


def claims_of(paas: Paas, config: PaasConfig | None, names: KnownNames) -> dict[str, Claim]:
    """By key, what becomes of each group."""
    named = names_of(paas)
    queries = {each.name: key for key, each in named.items() if not each.generated and not each.problem}
    return {key: _claim(paas, config, key, each, queries, names) for key, each in named.items()}


def to_be_settled(paas: Paas, config: PaasConfig | None, names: KnownNames) -> frozenset[str]:
    """The generated names that nobody has: others decide about them too."""
    if config is None:
        return frozenset()  # then nothing is made
    settled = claims_of(paas, config, names).values()
    return frozenset(
        each.name for each in settled if each.generated and each.problem is None and names.groups.get(each.name) is None
    )


def _claim(paas: Paas, config: PaasConfig | None, key: str, named: Named, queries: Mapping[str, str], names: KnownNames) -> Claim:
    def lost(reason: str, text: str) -> Claim:
        return Claim(key, named.name, named.generated, PaasProblem(reason, f"group {key!r}: {text}"))

    if named.problem:
        return lost("InvalidGroup", named.problem)
    group, live = paas.groups[key], names.groups.get(named.name)
    if not named.generated:
        if live is not None and uid_of(live) not in ("", paas.uid):
            return lost("GroupConflict", f"the Group {named.name} is made by another Paas: name another group in the query")
        return Claim(key, named.name, generated=False, bound=True)
    if group.users and config is not None and config.group_user_management == "block":
        text = "the administrators allow no users in a Paas: use a query, or remove the users"
        return lost("GroupUsersBlocked", text)
    if named.name in queries:
        text = f"group {queries[named.name]!r} of this Paas names {named.name} in its query: rename the key, or change the query"
        return lost("GroupConflict", text)
    if is_ours(live, paas.name, paas.uid):
        return Claim(key, named.name, generated=True, wants_object=True, bound=True)
    if live is not None:
        text = f"the Group {named.name} is there and was not made for this Paas: rename the key, or delete that Group"
        return lost("GroupConflict", text)
    if problem := _taken(paas, named.name, names):
        return lost("GroupConflict", problem)
    if not names.served:
        return Claim(key, named.name, generated=True, bound=True)
    return Claim(key, named.name, generated=True, wants_object=True)


def _taken(paas: Paas, name: str, names: KnownNames) -> str:
    """Why a name that no Group object has is somebody else's all the same."""
    for each in names.others:
        if name in each.queries or name in each.holds:
            return f"another Paas binds the group {name}: rename the key"
        if name in each.generates and each.age < paas.age:
            return f"an older Paas has the group {name}: rename the key"
    if name in names.reserved:
        return f"a ClusterRoleBinding names the group {name} already: rename the key, or remove it there"
    return ""


def names_in(binding: Object) -> list[str]:
    """The groups that a binding names."""
    return [str(each.get("name") or "") for each in binding.get("subjects") or () if each.get("kind") == "Group"]
