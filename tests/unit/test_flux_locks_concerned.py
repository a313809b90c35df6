"""Whom a changed AccessIndex concerns: what names something that it says something else of, and what is still to be looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from served import Served
from test_flux_lock_plan import KUSTOMIZATION, ROWS

from lock_enforcement.access.unit import LOCKS, VIOLATIONS, AccessLocks, owner_of
from tenantry.engine import Owner
from tenantry.engine.snapshot import Snapshot
from tenantry.engine.unit import EVERY, OutdatedError
from tenantry.model.flux.access import AccessEntries, Asking, ChangedEntries, NamedObject, decide_access
from tenantry.model.flux.consumers import Reference
from tenantry.model.flux.names import ACCESS_INDEX, DEFAULT, TENANCY_PROFILE, TENANT_LABEL
from tenantry.model.flux.profile import Profile
from tenantry.model.kinds import NAMESPACE, Key, Kind, Object, key_of
from tenantry.testing.objects import obj

ROW = ROWS["kustomizations"]
NAMESPACES, NAMES, TEXTS = ("dev-a", "dev-b"), ("app1", "app2"), ("", "*", "team=one", "team=two")
KEYS = [str(NamedObject("GitRepository", namespace, name)) for namespace in NAMESPACES for name in NAMES]
GRANTS = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(TEXTS))
ENTRIES = st.builds(
    AccessEntries,
    read=GRANTS,
    write=GRANTS,
    tenants=st.dictionaries(st.sampled_from(NAMESPACES), st.sampled_from(("one", "two"))),
    complete=st.just(True),
)


@given(
    before=ENTRIES,
    after=ENTRIES,
    named=st.builds(NamedObject, st.just("GitRepository"), st.sampled_from(NAMESPACES), st.sampled_from(NAMES)),
    access=st.sampled_from(("read", "write", "local")),
    labels=st.fixed_dictionaries({}, optional={"team": st.sampled_from(("one", "two")), TENANT_LABEL: st.just("one")}),
    intra=st.booleans(),
)
def test_a_decision_that_differs_is_about_what_has_changed(
    before: AccessEntries, after: AccessEntries, named: NamedObject, access: Any, labels: dict[str, str], intra: bool
) -> None:
    """Whatever two indexes say: what they do not concern is decided as before."""
    profile = Profile.of({"spec": {"profile": "multi-tenant", "allowIntraTenantReferences": intra}})
    reference, asking = Reference("spec.sourceRef", access), Asking("dev-c", labels)
    decisions = {decide_access(reference, named, asking, entries, profile) for entries in (before, after)}
    is_concerned = ChangedEntries.between(before, after).concern(named)
    assert len(decisions) == 1 or is_concerned
    assert (before.about(named) != after.about(named)) == is_concerned


def test_nothing_is_concerned_where_nothing_changed() -> None:
    """Nor is a source beside one that did, or of which another class of grants is the same."""
    before = AccessEntries({KEYS[0]: "*"}, {KEYS[1]: "*"}, {"dev-a": "one"})
    assert ChangedEntries.between(before, AccessEntries.of({"spec": before.spec()})) == ChangedEntries(frozenset(), frozenset())
    changed = ChangedEntries.between(before, AccessEntries({KEYS[0]: "team=one"}, {KEYS[1]: "*"}, {"dev-b": "one"}))
    assert changed == ChangedEntries(frozenset({KEYS[0]}), frozenset({"dev-a", "dev-b"}))
    assert not changed.concern(NamedObject("GitRepository", "dev-c", "app1"))


class Cluster(Served):
    """Consumers ``c1`` to ``c3`` of the sources ``app1`` to ``app3``, all of which may use theirs."""

    def __init__(self) -> None:
        super().__init__(obj(NAMESPACE, "dev-c", metadata=_version(1)))
        self.older = 0
        self.set(obj(TENANCY_PROFILE, DEFAULT, metadata=_version(1), spec={"profile": "multi-tenant"}))
        for at in (1, 2, 3):
            source = {"kind": "GitRepository", "name": f"app{at}", "namespace": "dev-a"}
            self.set(obj(KUSTOMIZATION, f"c{at}", "dev-c", metadata=_version(1), spec={"sourceRef": source}))
        self.index, self.uid = 0, "index"
        self.grant(1, 2, 3)

    def set(self, found: Object) -> None:
        """Have an object."""
        self.objects[key_of(found)] = found

    def grant(self, *numbers: int, **spec: Any) -> None:
        """Write the next index."""
        self.index += 1
        read = {f"GitRepository/dev-a/app{at}": "*" for at in numbers}
        metadata = _version(self.index) | {"uid": self.uid}
        self.set(obj(ACCESS_INDEX, DEFAULT, metadata=metadata, spec={"complete": True, "read": read, **spec}))

    @property
    def version(self) -> str:
        """That of its lists, which may be older than what is read by name."""
        return str(int(super().version) - self.older)

    def label(self, **labels: str) -> None:
        """Give the namespace labels, and no others."""
        self.set(obj(NAMESPACE, "dev-c", labels=labels, metadata=_version(1)))

    async def preferred(self, group: str, kind: str, *, again: bool = False) -> Kind | None:
        """Only Kustomizations are served."""
        del again
        return KUSTOMIZATION if (group, kind) == (KUSTOMIZATION.group, KUSTOMIZATION.plural) else None

    async def has_status(self, _: Kind) -> bool:
        """Any kind has one."""
        return True

    async def look(self, unit: AccessLocks, number: int) -> None:
        """A run of one consumer."""
        (owner,) = _owners(number) - _owners()
        await unit.handlers[owner.type].observe(owner, self.reader())
        _end(unit, [owner])

    async def concerned(self, unit: AccessLocks) -> set[Owner]:
        """Whom a sweep that an event asked for looks at."""
        return set(await unit.concerned(await Snapshot.take(self.api, unit.prefetch())))


def _version(number: int) -> Object:
    return {"uid": str(uuid4()), "resourceVersion": f"{number}", "generation": number}


def _owners(*numbers: int) -> set[Owner]:
    """Consumers, with what is looked at beside any."""
    return {LOCKS, VIOLATIONS, *(owner_of(ROW, "dev-c", f"c{at}") for at in numbers)}


def _end(unit: AccessLocks, owners: Iterable[Owner], well: bool = True) -> None:
    for owner in owners:
        unit.handlers[owner.type].ended(owner, well)


async def _looked_at() -> tuple[Cluster, AccessLocks]:
    """A process that has looked at all."""
    cluster, unit = Cluster(), AccessLocks()
    found = await cluster.concerned(unit)
    assert found == _owners(1, 2, 3)  # a new process knows nothing
    _end(unit, found)
    return cluster, unit


async def test_an_index_concerns_what_names_a_source_that_it_changed() -> None:
    """Taken away, given, both; and nobody where it only changed for others, or says the same."""
    cluster, unit = await _looked_at()
    assert await cluster.concerned(unit) == set()
    for granted, concerned in (((1, 3), (2,)), ((1, 2), (2, 3)), ((1, 2, 9), ())):
        cluster.grant(*granted)
        found = await cluster.concerned(unit)
        assert found == (_owners(*concerned) if concerned else set()), granted
        _end(unit, found)
    cluster.grant(1, 2, 9, tenants={"dev-a": "one"})
    assert await cluster.concerned(unit) == _owners(1, 2, 3)


async def test_what_was_not_looked_at_yet_is_concerned_until_it_was() -> None:
    """Also by the look after the locks, and by an index that says of it what the one before it said."""
    cluster, unit = await _looked_at()
    cluster.grant(1)
    assert await cluster.concerned(unit) == _owners(2, 3)
    assert await cluster.concerned(unit) == _owners(2, 3)
    _end(unit, _owners(2))
    cluster.grant(3)
    assert await cluster.concerned(unit) == _owners(1, 3)
    unit.handlers["consumer"].at_rest(owner_of(ROW, "dev-c", "c3"), None)
    assert await cluster.concerned(unit) == _owners(1)


def _failed(_: Cluster, unit: AccessLocks) -> None:
    _end(unit, _owners(1), well=False)


def _profile_changed(cluster: Cluster, _: AccessLocks) -> None:
    cluster.set(obj(TENANCY_PROFILE, DEFAULT, metadata=_version(2), spec={"profile": "multi-tenant", "onRevocation": "Report"}))


def _incomplete(cluster: Cluster, _: AccessLocks) -> None:
    cluster.grant(1, 2, 3, complete=False)


def _gone(cluster: Cluster, _: AccessLocks) -> None:
    del cluster.objects[key_of(obj(ACCESS_INDEX, DEFAULT))]


@pytest.mark.parametrize("change", [_failed, _profile_changed, _incomplete, _gone])
async def test_all_are_concerned_where_less_is_known(change: Callable[[Cluster, AccessLocks], None]) -> None:
    """A run that failed, another profile, an index that is not whole, or none."""
    cluster, unit = await _looked_at()
    change(cluster, unit)
    assert await cluster.concerned(unit) == _owners(1, 2, 3)


async def test_what_saw_an_index_between_two_is_concerned() -> None:
    """A grant that came and went is in no difference: who was looked at with it is looked at again, once."""
    cluster, unit = await _looked_at()
    cluster.grant(1, 2)
    found = await cluster.concerned(unit)
    _end(unit, found)
    cluster.grant(1, 2, 3)
    await cluster.look(unit, 3)
    cluster.grant(1, 2)
    assert await cluster.concerned(unit) == _owners(3)
    await cluster.look(unit, 3)
    cluster.grant(1, 2, 9)
    assert await cluster.concerned(unit) == set()


async def test_what_saw_an_index_that_was_deleted_is_named_no_longer_than_till_all_are() -> None:
    """Nothing says which of two indexes is newer: the sweep of all forgets what saw the other one."""
    cluster, unit = await _looked_at()
    cluster.grant(1, 2, 9)
    await cluster.look(unit, 3)
    cluster.uid = "remade"
    cluster.grant(1, 2)
    found = await unit.sweep(await Snapshot.take(cluster.api, unit.prefetch()))
    assert set(found) == _owners(1, 2, 3)
    _end(unit, found)
    cluster.grant(1, 2, 9)
    assert await cluster.concerned(unit) == set()


class Late(Cluster):
    """The next read of an object by name may find it as it was ``before``."""

    def __init__(self) -> None:
        super().__init__()
        self.before: dict[Key, Object] = {}

    def found(self, key: Key) -> Object | None:
        return self.before.pop(key, None) or super().found(key)


async def test_who_read_an_older_index_than_all_were_looked_at_with_looks_again() -> None:
    """His run began before the sweep that looked at all, and would end after it."""
    cluster, unit = Late(), AccessLocks()
    _end(unit, await cluster.concerned(unit))
    older = cluster.objects[key_of(obj(ACCESS_INDEX, DEFAULT))]
    cluster.grant(2, 3)
    assert await cluster.concerned(unit) == _owners(1)
    cluster.before[key_of(older)] = older
    with pytest.raises(OutdatedError):
        await cluster.look(unit, 1)
    await cluster.look(unit, 1)


@pytest.mark.parametrize("back", [False, True])
async def test_labels_that_were_others_for_a_moment_are_looked_at_again(back: bool) -> None:
    """A look that read them forgets what all others were looked at with, and is done again where they are as they were."""
    cluster, unit = Late(), AccessLocks()
    _end(unit, await cluster.concerned(unit))
    key, namespaces = key_of(obj(NAMESPACE, "dev-c")), Key(NAMESPACE.api_version, NAMESPACE.kind, "", "dev-c")
    before = cluster.objects[key]
    cluster.label(team="one")
    if back:
        cluster.before[key], cluster.objects[key] = cluster.objects[key], before
        with pytest.raises(OutdatedError):
            await cluster.look(unit, 1)
    else:
        await cluster.look(unit, 1)
    stages = await unit.owners(namespaces, {}, cluster.reader())
    assert set(stages[0]) == _owners(1, 2, 3) - {LOCKS, VIOLATIONS}


async def test_an_index_that_is_newer_than_the_lists_is_not_known() -> None:
    """Who was made between the two is in neither: the event of the index asks for another look."""
    cluster, unit = await _looked_at()
    event = key_of(obj(ACCESS_INDEX, DEFAULT))
    cluster.grant(1)
    cluster.older = 1
    found = await cluster.concerned(unit)
    assert found == _owners(2, 3)
    _end(unit, found)
    cluster.older = 0
    assert await unit.owners(event, {}, cluster.reader()) == EVERY
    assert await cluster.concerned(unit) == _owners(2, 3)
    _end(unit, found)
    assert await unit.owners(event, {}, cluster.reader()) == []
