"""What a run for the index reads: a look at what changed comes to the same as a look at everything."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from served import Served

from scope_binding.sources.observe import FEW_SOURCES, observe_index
from scope_binding.sources.seen import IndexLook
from scope_binding.sources.unit import INDEX, SourceAccess
from tenantry.api.errors import KindNotServed
from tenantry.engine.unit import OutdatedError, Owner
from tenantry.model import limits
from tenantry.model.flux.names import (
    ACCESS_FROM,
    ACCESS_INDEX,
    DEFAULT,
    SHARED_KINDS,
    SOURCE_GRANT,
    TENANCY_PROFILE,
    TENANT_LABEL,
)
from tenantry.model.kinds import NAMESPACE, Key, Kind, Object, key_of
from tenantry.testing.objects import obj

GIT, BUCKET = SHARED_KINDS[0], SHARED_KINDS[2]
NAMES, NAMESPACES = ["a", "b", "c"], ["n", "m"]


class Flux(Served):
    """Sources and SourceGrants; everything is served but what is ``missing``."""

    def __init__(self, *objects: Object, missing: Iterable[str] = ()) -> None:
        super().__init__(*objects)
        self.missing = set(missing)
        self.listed: list[str] = []

    async def preferred(self, group: str, kind: str, *, again: bool = False) -> Kind | None:
        del again
        return next(
            (each for each in SHARED_KINDS if (each.group, each.kind) == (group, kind) and kind not in self.missing), None
        )

    async def list(self, kind: Kind, namespace: str = "", *parts: Any, **more: Any) -> Any:
        since = f" since {more['not_older_than']}" if more.get("not_older_than") else ""
        self.listed.append(f"{kind.kind} {namespace}{since}".rstrip())
        return await super().list(kind, namespace, *parts, **more)

    async def look(self, *causes: Key) -> IndexLook:
        """One look, and the index becomes what it says."""
        look = await observe_index(self.reader(causes), limits.GRANTS)
        self.put(obj(ACCESS_INDEX, DEFAULT, metadata={"resourceVersion": "5"}, spec=look.seen.entries.spec()))
        return look

    async def version(self, kind: Kind, name: str, namespace: str = "") -> str:
        self.asked.append(Key("", "version", namespace, name))
        found = self.found(Key(kind.api_version, kind.kind, namespace, name))
        return str(found["metadata"]["resourceVersion"]) if found is not None else ""

    def put(self, body: Object) -> Key:
        """An object is as it is here; returns its key."""
        self.objects[key_of(body)] = body
        return key_of(body)


def source(kind: Kind, namespace: str, name: str, said: list[dict[str, str]] | None, labels: dict[str, str]) -> Object:
    shape = {"namespaceSelectors": [{"matchLabels": each} for each in said or ()]}
    annotations = {ACCESS_FROM: json.dumps(shape)} if said is not None else {}
    return obj(kind, name, namespace, labels=labels, annotations=annotations, metadata={"uid": f"{kind.kind}{namespace}{name}"})


def grant(namespace: str, name: str, selected: Object, said: list[dict[str, str]]) -> Object:
    shape = {"namespaceSelectors": [{"matchLabels": each} for each in said]}
    metadata = {"uid": f"g{namespace}{name}", "generation": 1, "resourceVersion": "3"}
    return obj(SOURCE_GRANT, name, namespace, metadata=metadata, spec={**selected, "accessFrom": shape, "access": ["Read"]})


SAID = st.lists(st.dictionaries(st.sampled_from(["team", "env"]), st.sampled_from(["x", "y"]), max_size=2), max_size=2)
KINDS = st.sampled_from([GIT, BUCKET])
LABELS = st.dictionaries(st.just("shared"), st.sampled_from(["yes", "no"]), max_size=1)
OF = st.sampled_from(NAMESPACES)
SOURCES = st.builds(source, KINDS, OF, st.sampled_from(NAMES), st.none() | SAID, LABELS)
NAMED = st.builds(lambda kind, name: {"sourceRef": {"kind": kind.kind, "name": name}}, KINDS, st.sampled_from(NAMES))
SELECTED = st.builds(lambda kind, labels: {"sourceSelector": {"kind": kind.kind, "matchLabels": labels}}, KINDS, LABELS)
GRANTS = st.builds(grant, OF, st.sampled_from(NAMES), NAMED | NAMED | SELECTED, SAID)
CHANGES = st.lists(st.tuples(SOURCES | GRANTS, st.booleans()), min_size=1, max_size=6)


@settings(max_examples=200, deadline=None)
@given(st.lists(SOURCES | GRANTS, max_size=8), CHANGES)
def test_looking_at_what_changed_is_enough(begin: list[Object], changes: list[tuple[Object, bool]]) -> None:
    """After each change, and each deletion, the index is what a look at everything makes of it."""

    async def act() -> None:
        flux = Flux(*begin)
        await flux.look()
        for body, stays in changes:
            key = flux.put(copy.deepcopy(body))
            if not stays:
                del flux.objects[key]
            narrow = (await flux.look(key)).seen.entries
            assert narrow == (await flux.look()).seen.entries

    asyncio.run(act())


def shared(number: int) -> list[Object]:
    return [source(GIT, "n", f"s{each}", [{"team": "x"}], {}) for each in range(number)]


async def test_few_sources_are_read_by_name() -> None:
    """No list but that of SourceGrants, as new as the index; of many, and of those that labels select, that of their kind too."""
    changed = grant("n", "g", {"sourceRef": {"kind": "GitRepository", "name": "s0"}}, [])
    selecting = grant("n", "g", {"sourceSelector": {"kind": "Bucket", "matchLabels": {"shared": "yes"}}}, [])
    few, kinds = ["SourceGrant n since 5"], ["GitRepository n since 5"]
    for number, by, listed in (
        (FEW_SOURCES, changed, few),
        (FEW_SOURCES + 1, changed, [*few, *kinds]),
        (FEW_SOURCES, selecting, [*few, "Bucket n since 5"]),
        (FEW_SOURCES + 1, selecting, [*few, *kinds, "Bucket n since 5"]),
    ):
        flux = Flux(*shared(number), by)
        await flux.look()
        flux.listed.clear()
        await flux.look(key_of(by))
        assert flux.listed == listed


async def test_many_source_grants_that_changed_are_listed_once() -> None:
    """As they are now; one of them that went is looked for, and all of the namespace with it."""
    sources = shared(FEW_SOURCES + 1)
    by = [grant("n", f"g{at}", {"sourceRef": {"kind": "GitRepository", "name": f"s{at}"}}, []) for at in range(len(sources))]
    flux = Flux(*sources, *by)
    await flux.look()
    for numbers, listed, read in (([0], "SourceGrant n since 5", 1), (range(len(by)), "SourceGrant n", 0)):
        flux.listed.clear()
        flux.asked.clear()
        await flux.look(*(key_of(by[at]) for at in numbers))
        assert [each for each in flux.listed if each.startswith("SourceGrant")] == [listed]
        assert len([each for each in flux.asked if each.kind == SOURCE_GRANT.kind]) == read
    more = [{"team": "y"}]
    flux.put(grant("n", "g3", {"sourceRef": {"kind": "GitRepository", "name": "s3"}}, more))
    del flux.objects[key_of(by[4])]
    read_by = (await flux.look(*map(key_of, by))).seen.entries.read
    assert (read_by["GitRepository/n/s3"], read_by["GitRepository/n/s4"]) == ("team=x|team=y", "team=x")


async def test_what_is_listed_is_looked_at_as_it_is_now_behind_the_write() -> None:
    """Another process may have seen a change for which it had nothing to write while the index was as it was."""
    changed = grant("n", "g", {"sourceRef": {"kind": "GitRepository", "name": "s0"}}, [])
    flux = Flux(*shared(FEW_SOURCES + 1), changed)
    await flux.look()
    reader = flux.reader([key_of(changed)])
    await observe_index(reader, limits.GRANTS)
    flux.listed.clear()
    assert await reader.unchanged()
    assert flux.listed == ["SourceGrant n since 5", "GitRepository n"]
    flux.put(source(GIT, "n", "s3", [{"team": "y"}], {}))
    assert not await reader.unchanged()


async def test_a_listed_source_that_woke_the_run_is_as_it_is_now() -> None:
    """The list may be older: what it has is not what is looked at, and what it has no more is gone."""

    class Older(Flux):
        async def list(self, kind: Kind, namespace: str = "", *parts: Any, **more: Any) -> Any:
            found = await super().list(kind, namespace, *parts, **more)
            if kind == GIT and more.get("not_older_than"):
                found.items[:] = [more["keep"](each) for each in shared(FEW_SOURCES + 1)]
            return found

    changed, gone = source(GIT, "n", "s0", [{"team": "y"}], {}), shared(2)[1]
    flux = Older(*shared(FEW_SOURCES + 1))
    await flux.look()
    flux.put(changed)
    del flux.objects[key_of(gone)]
    read = (await flux.look(key_of(changed), key_of(gone))).seen.entries.read
    assert (read["GitRepository/n/s0"], read.get("GitRepository/n/s1"), len(read)) == ("team=y", None, FEW_SOURCES)


async def test_what_went_is_never_in_an_older_list() -> None:
    """Nobody tells again that a SourceGrant went: all is read as it is now, also beside a namespace that is read by name."""
    sources = [source(GIT, each, "s", [], {}) for each in NAMESPACES]
    grants = [grant(each, "g", {"sourceRef": {"kind": "GitRepository", "name": "s"}}, [{"team": "x"}]) for each in NAMESPACES]
    flux = Flux(*sources, *grants)
    await flux.look()
    del flux.objects[key_of(grants[0])]
    flux.listed.clear()
    assert (await flux.look(*map(key_of, grants))).seen.entries.granted == {f"GitRepository/{NAMESPACES[1]}/s"}
    assert sorted(each for each in flux.listed if each.startswith("SourceGrant")) == [
        "SourceGrant m since 5",
        "SourceGrant n",
        "SourceGrant n since 5",
    ]


@pytest.mark.parametrize("kind", [TENANCY_PROFILE, ACCESS_INDEX, NAMESPACE])
async def test_what_is_of_the_cluster_is_a_look_at_everything(kind: Kind) -> None:
    """Also beside an event of a source; and as long as the index is not complete."""
    flux = Flux(*shared(2))
    for causes in (
        [],
        [Key(kind.api_version, kind.kind, "", "x")],
        [key_of(shared(1)[0]), Key(kind.api_version, kind.kind, "", "x")],
    ):
        look = await flux.look(*causes)
        assert look.whole is None
    flux.put(obj(ACCESS_INDEX, DEFAULT, metadata={"resourceVersion": "5"}, spec={}))
    assert (await flux.look(key_of(shared(1)[0]))).whole is None
    assert (await flux.look(key_of(shared(1)[0]))).whole == frozenset()


async def test_a_kind_that_is_not_served_has_no_sources() -> None:
    """The others are read all the same, also when a SourceGrant names it."""
    flux = Flux(*shared(1), grant("n", "g", {"sourceRef": {"kind": "Bucket", "name": "b"}}, []), missing=["Bucket"])
    look = await flux.look()
    assert look.seen.served == {each.kind for each in SHARED_KINDS} - {"Bucket"}
    assert look.seen.entries.granted == {"GitRepository/n/s0"}
    look = await flux.look(Key(SOURCE_GRANT.api_version, SOURCE_GRANT.kind, "n", "g"))
    assert look.seen.entries.granted == {"GitRepository/n/s0"}


async def test_a_list_that_is_not_found_takes_no_grant_away() -> None:
    """While discovery names the kind the server contradicts itself, and the run is tried again."""

    class Contradicting(Flux):
        async def list(self, kind: Kind, namespace: str = "", *parts: Any, **more: Any) -> Any:
            if kind == BUCKET:
                raise KindNotServed("not found", status=404)
            return await super().list(kind, namespace, *parts, **more)

    with pytest.raises(KindNotServed):
        await Contradicting(*shared(1)).look()
    await Contradicting(*shared(1), missing=["Bucket"]).look()


async def test_tenants_of_several_namespaces() -> None:
    """Only with allowIntraTenant; a look at a namespace leaves them as they are."""
    namespaces = [
        obj(NAMESPACE, name, labels={TENANT_LABEL: tenant}) for name, tenant in (("a", "t"), ("b", "t"), ("c", "u"), ("d", ""))
    ]
    flux = Flux(*shared(1), *namespaces)
    assert (await flux.look()).seen.entries.tenants == {}
    flux.put(obj(TENANCY_PROFILE, DEFAULT, spec={"allowIntraTenant": True}))
    assert (await flux.look()).seen.entries.tenants == {"a": "t", "b": "t"}
    flux.put(obj(NAMESPACE, "c", labels={TENANT_LABEL: "t"}))
    assert (await flux.look(key_of(shared(1)[0]))).seen.entries.tenants == {"a": "t", "b": "t"}
    assert (await flux.look()).seen.entries.tenants == {"a": "t", "b": "t", "c": "t"}
    flux.put(obj(TENANCY_PROFILE, DEFAULT, spec={"allowIntraTenant": True, "tenantLabelKeys": [TENANT_LABEL]}))
    assert (await flux.look()).seen.entries.tenants == {}


async def test_what_a_run_is_writing_needs_no_other_run() -> None:
    """Its event may come before the run has ended; here somebody else has a part of the index, so that it is not ours alone."""
    flux = Flux(*shared(2))
    unit = SourceAccess(most=limits.GRANTS)

    async def owners() -> list[list[Owner]]:
        return [
            list(each)
            for each in await unit.owners(Key(ACCESS_INDEX.api_version, ACCESS_INDEX.kind, "", DEFAULT), {}, flux.reader())
        ]

    await flux.look()
    assert await owners() == [[INDEX]]
    await unit.handlers[INDEX.type].observe(INDEX, flux.reader())
    assert await owners() == []
    flux.put(obj(ACCESS_INDEX, DEFAULT, metadata={"resourceVersion": "6"}, spec={"complete": True, "read": {}}))
    assert await owners() == [[INDEX]]


async def test_the_index_is_read_once() -> None:
    """Then a run asks for its version, a second look of it for nothing: what is written on a state that is no more is refused."""
    flux, unit = Flux(*shared(2)), SourceAccess(most=limits.GRANTS)
    observe, changed = unit.handlers[INDEX.type].observe, key_of(shared(2)[0])

    async def asked(attempt: int = 0) -> list[str]:
        flux.asked.clear()
        reader = flux.reader((changed,)).anew(attempt)
        await observe(INDEX, reader)
        return [each.kind for each in flux.asked if each.kind in ("version", ACCESS_INDEX.kind)]

    def ends(*, well: bool = True) -> None:
        unit.handlers[INDEX.type].ended(INDEX, well)

    await flux.look()
    assert await asked() == [ACCESS_INDEX.kind]
    assert await asked() == [], "a second look"
    ends()
    assert await asked() == ["version"]
    flux.put(obj(ACCESS_INDEX, DEFAULT, metadata={"resourceVersion": "6"}, spec={"complete": True, "read": {}}))
    assert await asked() == []
    assert await asked(attempt=1) == [ACCESS_INDEX.kind], "after a lost race it is read"
    ends()
    assert await asked() == [ACCESS_INDEX.kind], "what was written was another state of it"
    ends(well=False)
    assert await asked() == [ACCESS_INDEX.kind], "after a failure"
    flux.put(obj(ACCESS_INDEX, DEFAULT, metadata={"resourceVersion": "7"}, spec={"complete": True}))
    flux.put(source(GIT, "n", "s0", [], {}))
    flux.put(source(GIT, "n", "s1", [], {}))
    assert await asked(attempt=1) == [ACCESS_INDEX.kind]
    ends()
    flux.put(obj(ACCESS_INDEX, DEFAULT, metadata={"resourceVersion": "8"}, spec={"complete": True, "read": {"x/y/z": "*"}}))
    with pytest.raises(OutdatedError, match="AccessIndex"):
        await asked()


async def test_an_event_of_a_namespace_without_a_tenant_costs_a_version() -> None:
    """While the index stands as this process made it; one that it has, or that another made, is looked at."""
    flux = Flux(
        *shared(1), obj(TENANCY_PROFILE, DEFAULT, spec={"allowIntraTenant": True}), obj(NAMESPACE, "n"), obj(NAMESPACE, "t")
    )
    unit = SourceAccess(most=limits.GRANTS)
    look = await flux.look()
    unit._memory.planned, unit._memory.version = replace(look.seen.entries, tenants={"t": "x"}), "5"

    async def asked(name: str, labels: dict[str, str], *, whole: bool = True) -> list[str]:
        flux.asked.clear()
        reader = flux.reader()
        reader.told = 0 if whole else None
        await unit.owners(key_of(obj(NAMESPACE, name)), labels, reader)
        return [each.kind for each in flux.asked]

    assert await asked("n", {}) == [TENANCY_PROFILE.kind, "version"]
    everything = {TENANCY_PROFILE.kind, ACCESS_INDEX.kind, NAMESPACE.kind}
    assert {*await asked("n", {}, whole=False)} == everything
    assert {*await asked("n", {TENANT_LABEL: "x"})} == everything
    assert {*await asked("t", {})} == everything
    flux.put(obj(ACCESS_INDEX, DEFAULT, metadata={"resourceVersion": "6"}))
    assert {*await asked("n", {})} == {"version", *everything}
