"""The homes that an event concerns, by the list of all NamespaceScopes."""

from __future__ import annotations

from typing import cast

from namespace_scope_objects import NOW, namespace

from scope_binding.namespace_scopes.seen import ObservedHome
from scope_binding.namespace_scopes.unit import UNKNOWN, NamespaceScopes
from tenantry.api import Api
from tenantry.engine.reader import Reader
from tenantry.engine.unit import EVERY, Owner, Stages
from tenantry.model.config import Config
from tenantry.model.kinds import NAMESPACE_SCOPE, Key, Object, object_of


def scopes(count: int) -> list[Object]:
    """So many NamespaceScopes of one name, each in a home of its own with a member of its own."""
    found = []
    for number in range(count):
        at = {"namespace": f"home-{number}", "uid": f"u{number}", "resourceVersion": "1", "creationTimestamp": NOW}
        found.append(object_of(NAMESPACE_SCOPE, {"name": "same", **at}, spec={"namespaceMembers": [f"member-{number}"]}))
    return found


async def concerned(unit: NamespaceScopes, every: list[Object]) -> Stages:
    """Whom the event of the first of them concerns."""
    reader = Reader(cast(Api, None))
    reader.known.whole[NAMESPACE_SCOPE] = every
    return await unit.owners(Key(NAMESPACE_SCOPE.api_version, NAMESPACE_SCOPE.kind, "home-0", "same"), {}, reader)


async def test_many_homes_that_a_new_process_does_not_know_are_one_sweep() -> None:
    """Each shares its name with all, so as many events would otherwise concern as many homes each."""
    unit, few, many = NamespaceScopes(Config()), scopes(UNKNOWN), scopes(2 * UNKNOWN)
    (stage,) = await concerned(unit, few)
    assert set(stage) == {Owner("namespace", f"home-{number}") for number in range(UNKNOWN)}
    assert await concerned(unit, many) is EVERY


async def test_homes_that_a_sweep_found_at_rest_are_known() -> None:
    """Then an event concerns its own home, and those whose clashes are others than the sweep saw."""
    unit, every = NamespaceScopes(Config()), scopes(2 * UNKNOWN)
    for number in range(len(every)):
        name = f"home-{number}"
        unit.handlers["namespace"].at_rest(Owner("namespace", name), ObservedHome(name, (), home=namespace(name)))
    assert await concerned(unit, every) == [[Owner("namespace", "home-0")]]

    clashing = [{**each, "spec": {"namespaceMembers": ["both"]}} for each in every[:2]]
    assert await concerned(unit, [*clashing, *every[2:]]) == [[Owner("namespace", "home-0"), Owner("namespace", "home-1")]]
