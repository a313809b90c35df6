"""The policies that are there beside those that the profile wants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tenantry.model.flux.policies import GENERATED, Served, manifests
from tenantry.model.flux.policies.compared import is_as_generated
from tenantry.model.flux.profile import Profile
from tenantry.model.kinds import Object

_BINDINGS = {each.kind for each in GENERATED if each.kind.endswith("Binding")}
Named = tuple[str, str]
"""Kind and name."""


@dataclass(frozen=True, slots=True)
class PoliciesSeen:
    """The TenancyProfile, what is served, and the policies and bindings of ours, by kind and name.

    ``told`` are the names of Warnings that are there.
    """

    profile: Object | None
    served: Served = field(default_factory=Served)
    there: Mapping[Named, Object] = field(default_factory=dict)
    told: frozenset[str] = frozenset()
    now: str = ""

    @property
    def asked(self) -> Profile:
        """What the profile asks for."""
        return Profile.of(self.profile)


class PolicyState(NamedTuple):
    """One policy or mutation, with its binding."""

    name: str
    present: bool
    bound: bool
    current: bool
    wanted: bool = True
    warnings: tuple[str, ...] = ()


def policy_states(seen: PoliciesSeen) -> list[PolicyState]:
    """Those that the profile wants, and those of ours that it does not, by name."""
    wanted = {(each["kind"], each["metadata"]["name"]): each for each in manifests(seen.asked, seen.served)}
    names = {named for named in (*wanted, *seen.there) if named[0] not in _BINDINGS}
    names |= {(kind.removesuffix("Binding"), name) for kind, name in (*wanted, *seen.there) if kind in _BINDINGS}
    return sorted(_state(named, wanted, seen.there) for named in names)


def _state(named: Named, wanted: Mapping[Named, Object], there: Mapping[Named, Object]) -> PolicyState:
    kind, name = named
    both = (named, (f"{kind}Binding", name))
    live = [there.get(each) for each in both]
    current = all(
        found is not None and each in wanted and is_as_generated(wanted[each], found)
        for each, found in zip(both, live, strict=True)
    )
    return PolicyState(name, live[0] is not None, live[1] is not None, current, named in wanted, tuple(_warnings(live[0])))


def _warnings(policy: Object | None) -> Iterator[str]:
    """What the API server says about the types of its expressions."""
    checked = ((policy or {}).get("status") or {}).get("typeChecking") or {}
    for each in checked.get("expressionWarnings") or ():
        yield f"{each.get('fieldRef')}: {each.get('warning')}"


def unserved_rows(seen: PoliciesSeen) -> list[str]:
    """The further consumers whose kind is not served."""
    rows = seen.asked.consumers if seen.asked.is_multi_tenant else ()
    return [each.name for each in rows if not seen.served.versions(each.group, each.resource)]
