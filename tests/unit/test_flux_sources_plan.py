"""The index as it is to be, and what is told of carriers: the pure part of scope-binding's sources."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scope_binding.sources.memory import IndexMemory, place_of
from scope_binding.sources.plan import MANAGER, doubtful, index_seen, is_nearly_full, plan_index, report_index, unserved
from scope_binding.sources.report import not_in_force_yet, plan_access, told_when_seen_twice, warnings_of
from scope_binding.sources.seen import AccessSeen, Places, carried, entry_size, kept_grant, kept_source
from tenantry.model import limits
from tenantry.model.flux.access import AccessEntries
from tenantry.model.flux.names import ACCESS_FROM, ACCESS_INDEX, DEFAULT, SOURCE_GRANT, SOURCES
from tenantry.model.flux.profile import Profile
from tenantry.model.kinds import Object
from tenantry.model.plan import Apply, Replace
from tenantry.testing.objects import obj

SERVED = frozenset({*SOURCES, "ImageRepository"})
NOBODY = Profile()


def access_from(*labels: Mapping[str, Any]) -> Object:
    return {"namespaceSelectors": [{"matchLabels": dict(each)} for each in labels]}


def source(
    name: str, namespace: str = "n", kind: str = "GitRepository", *, said: Object | None = None, **metadata: Any
) -> Object:
    annotations = {"annotations": {ACCESS_FROM: json.dumps(said)}} if said is not None else {}
    found = {"name": name, "namespace": namespace, "uid": f"{kind}-{namespace}-{name}", **annotations, **metadata}
    return {"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": kind, "metadata": found}


def grant(name: str, *labels: Mapping[str, str], of: str = "a", namespace: str = "n", age: str = "", **spec: Any) -> Object:
    if "sourceSelector" not in spec:
        spec.setdefault("sourceRef", {"kind": "GitRepository", "name": of})
    found = {"access": ["Read"], "accessFrom": access_from(*labels), **spec}
    metadata = {"uid": f"uid-{namespace}-{name}", "generation": 1, "creationTimestamp": age, "resourceVersion": "1"}
    return obj(SOURCE_GRANT, name, namespace, metadata=metadata, spec=found)


def places(sources: Sequence[Object] = (), grants: Sequence[Object] = (), served: frozenset[str] = SERVED) -> Places:
    return Places(served, tuple(map(kept_source, sources)), tuple(map(kept_grant, grants)))


def index(**spec: Any) -> Object:
    metadata = {"uid": "uid", "resourceVersion": "7", "generation": 3}
    return obj(ACCESS_INDEX, DEFAULT, metadata=metadata, spec=spec)


def entries(
    live: Object | None, found: Places, most: int = limits.GRANTS, namespaces: frozenset[str] | None = None
) -> AccessEntries:
    return index_seen(live, NOBODY, found, most, namespaces, None if namespaces is not None else {}).entries


def shared(number: int) -> list[Object]:
    return [source(f"s{each:02}", said=access_from({"team": "two"})) for each in range(number)]


CARRIERS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b"]),
        st.lists(st.dictionaries(st.sampled_from(["team", "env"]), st.sampled_from(["x", "y"]), max_size=2), max_size=2),
        st.sampled_from([["Read"], ["Write"], ["Read", "Write"]]),
    ),
    max_size=5,
)


@given(CARRIERS, st.randoms(use_true_random=False))
def test_carriers_in_any_order_give_the_same_bytes(several: list[Any], random: Any) -> None:
    """Of sources, SourceGrants and the classes in them (f-79)."""
    grants = [grant(f"g{at}", *labels, of=of, access=access) for at, (of, labels, access) in enumerate(several)]
    sources = [source("a", said=access_from({"team": "x"})), source("b"), source("c", kind="Bucket", said=access_from({}))]
    expected = json.dumps(entries(None, places(sources, grants)).spec())
    random.shuffle(grants)
    random.shuffle(sources)
    grants = [{**each, "spec": {**each["spec"], "access": each["spec"]["access"][::-1]}} for each in grants]
    assert json.dumps(entries(None, places(sources, grants)).spec()) == expected


def test_the_index_is_written_whole_on_what_was_read() -> None:
    """Made where there is none, else changed in the state that was read; nothing where it is as it is to be."""
    found = places(shared(1), [grant("g", {"env": "prod"}, of="s00")])
    wanted = {
        "complete": True,
        "read": {"GitRepository/n/s00": "env=prod|team=two"},
        "write": {"GitRepository/n/s00": "team=two"},
        "labelKeys": ["env", "team"],
    }
    (made,) = plan_index(index_seen(None, NOBODY, found, 10, None, {})).writes()
    assert isinstance(made, Apply)
    assert made.create_only
    assert made.wanted["spec"] == wanted
    live = index()
    (changed,) = plan_index(index_seen(live, NOBODY, found, 10, None, {})).writes()
    assert isinstance(changed, Replace)
    assert changed.live is live
    assert changed.spec == wanted
    assert not list(plan_index(index_seen(index(**wanted), NOBODY, found, 10, None, {})).writes())


def test_a_look_at_a_namespace_leaves_the_others_as_they_are() -> None:
    """What changed there is changed, entries of sources that are gone go, and tenants stay."""
    live = index(read={"Bucket/m/x": "a=b", "GitRepository/n/gone": "*"}, write={"Bucket/m/x": "c=d"}, tenants={"m": "t"})
    found = entries(live, places(shared(1)), namespaces=frozenset({"n"}))
    assert found.read == {"Bucket/m/x": "a=b", "GitRepository/n/s00": "team=two"}
    assert found.write == {"Bucket/m/x": "c=d", "GitRepository/n/s00": "team=two"}
    assert found.tenants == {"m": "t"}
    assert found.label_keys == ("a", "c", "team")


def test_without_flux_nothing_happens() -> None:
    """Neither an index nor a condition; what was granted before goes after a second look only."""
    nothing = places(served=frozenset())
    for live in (None, index(), index(complete=True)):
        seen = index_seen(live, NOBODY, nothing, 10, None, {})
        assert not [*plan_index(seen).writes(), *report_index(seen, ()).writes()]
    live = index(read={"GitRepository/n/a": "*", "Bucket/n/b": "*"}, complete=True)
    seen = index_seen(
        live, NOBODY, places([source("a", said=access_from({}))], served=frozenset({"GitRepository"})), 10, None, {}
    )
    assert unserved(seen) == {"Bucket/n/b"}
    assert "Bucket/n/b" in doubtful(seen, plan_index(seen))
    assert seen.entries.granted == {"GitRepository/n/a"}
    there = index_seen(live, NOBODY, places([source("a", said=access_from({}))]), 10, None, {})
    assert unserved(there) == frozenset()


def test_what_the_index_loses_and_gains_is_looked_at_twice() -> None:
    """A selector that goes or comes is doubtful, in which class it is; what only moves is not."""
    here, prod, test = (("team", "two"),), (("env", "prod"),), (("env", "test"),)
    both = {"GitRepository/n/a": "env=prod|team=two"}
    live = index(read=both, write=both, complete=True)
    for said, way, which in (
        (({"env": "prod"}, {"team": "two"}), "", here),
        (({"team": "two"}, {"env": "prod"}, {"env": "test"}), "given", test),
        (({"team": "two"},), "lost", prod),
        (({"env": "prod"},), "lost", here),
    ):
        seen = index_seen(live, NOBODY, places([source("a", said=access_from(*said))]), 10, None, {})
        doubted = {(way, access, "GitRepository/n/a", which) for access in ("read", "write") if way}
        assert doubtful(seen, plan_index(seen)) == doubted
    of_tenants = index(complete=True, tenants={"m": "t", "n": "t"})
    seen = index_seen(of_tenants, NOBODY, places(), 10, None, {"n": "t"})
    assert doubtful(seen, plan_index(seen)) == {("lost", "m", "t")}


def test_what_stands_is_not_pushed_out() -> None:
    """The oldest come first, but for those that are in the index (f-77)."""
    sources = [
        source(name, said=access_from({"team": "two"}), creationTimestamp=f"2026-01-0{age}T00:00:00Z")
        for name, age in (("a", 3), ("b", 1), ("c", 2), ("d", 1))
    ]
    found = places(sources)
    assert entries(None, found, 2).granted == {"GitRepository/n/b", "GitRepository/n/d"}
    standing = {"GitRepository/n/a": "team=two", "GitRepository/n/c": "team=nine"}
    assert entries(index(read=standing), found, 2).granted == standing.keys()
    assert entries(index(read=standing), found, 3).granted == {*standing, "GitRepository/n/b"}
    assert entries(index(read=standing), places(sources[:3]), 3).granted == {*standing, "GitRepository/n/b"}
    seen = index_seen(index(read=standing), NOBODY, found, 3, None, {})
    assert seen.full
    assert not index_seen(index(read=standing), NOBODY, found, 4, None, {}).full


def test_the_index_has_a_budget_of_bytes() -> None:
    """Large texts fill it before there are many: what does not fit is left out, what is smaller is not."""
    large = [{f"k{at}": "v" * 60} for at in range(60)]
    sources = [source(f"s{number:04}", said=access_from(*large)) for number in range(200)]
    sources.append(source("small", said=access_from({"a": "b"}), creationTimestamp="2026-01-01T00:00:00Z"))
    found = entries(None, places(sources))
    used = sum(entry_size(*entry) for each in (found.read, found.write) for entry in each.items())
    assert limits.INDEX_BYTES * 0.9 < used <= limits.INDEX_BYTES
    assert "GitRepository/n/small" in found.granted
    assert is_nearly_full(found, limits.GRANTS)


def test_what_tenants_could_set_is_remembered() -> None:
    """Keys that leave tenantLabelKeys stay, until somebody takes them out; what they may set now comes first in the budget."""
    several = Profile.of({"spec": {"profile": "multi-tenant", "tenantLabelKeys": ["env", "a/*"]}})
    first = index_seen(None, several, places(), 10, None, {}).entries
    assert first.tenant_keys == ("a/*", "env")
    live = index(**first.spec())
    assert index_seen(live, NOBODY, places(), 10, None, {}).entries == first
    assert index_seen(index(complete=True, tenantKeys=["env"]), NOBODY, places(), 10, None, {}).entries.tenant_keys == ("env",)
    long = index(tenantKeys=[f"a{at:03}.{'k' * 300}/*" for at in range(200)])
    found = index_seen(long, several, places(), 10, None, {}).entries.tenant_keys
    assert {"a/*", "env"} <= set(found)
    assert limits.INDEX_TENANT_KEYS_BYTES * 0.9 < len(json.dumps(found)) <= limits.INDEX_TENANT_KEYS_BYTES * 1.1


def test_label_keys_have_a_budget() -> None:
    """Selectors that name only long keys of their own make the index no larger than it may be."""
    sources = [
        source(f"s{at}", said=access_from(*({f"{at}-{number}-{'k' * 50}": ""} for number in range(60)))) for at in range(200)
    ]
    found = entries(None, places(sources))
    assert limits.INDEX_KEYS_BYTES * 0.9 < len(json.dumps(found.label_keys, separators=(",", ":"))) <= limits.INDEX_KEYS_BYTES + 1
    assert len(json.dumps(found.spec(), separators=(",", ":"))) < limits.MIB


def test_the_condition_of_the_index() -> None:
    """From four fifths on, with another reason when something is left out; gone below; not written for a new generation alone."""
    assert not list(report_index(index_seen(index(), NOBODY, places(shared(27)), 35, None, {}), ()).writes())
    (warns,) = report_index(index_seen(index(), NOBODY, places(shared(28)), 35, None, {}), ()).writes()
    assert isinstance(warns, Apply)
    (said,) = warns.wanted["status"]["conditions"]
    assert (said["type"], said["status"], said["reason"]) == ("NearlyFull", "True", "NearlyFull")
    assert said["observedGeneration"] == 3
    (full,) = report_index(index_seen(index(), NOBODY, places(shared(36)), 35, None, {}), ()).writes()
    assert isinstance(full, Apply)
    assert full.wanted["status"]["conditions"][0]["reason"] == "IndexFull"

    fields = {"f:status": {"f:conditions": {'k:{"type":"NearlyFull"}': {".": {}, "f:type": {}}}}}
    entry = {"manager": MANAGER, "operation": "Apply", "subresource": "status", "fieldsV1": fields}
    live = {**index(), "status": warns.wanted["status"]}
    live["metadata"] = {**live["metadata"], "generation": 4, "managedFields": [entry]}
    (again,) = report_index(index_seen(live, NOBODY, places(shared(29)), 35, None, {}), ()).writes()
    assert again.change(MANAGER) is None
    (gone,) = report_index(index_seen(live, NOBODY, places(shared(27)), 35, None, {}), ()).writes()
    assert gone.change(MANAGER) is not None
    assert isinstance(gone, Apply)
    assert "status" not in gone.wanted


def said_of(found: Places, live: Object | None = None, most: int = limits.GRANTS) -> dict[str, tuple[str, str]]:
    """By SourceGrant: reason and message of its condition."""
    writes = [each for each in plan_access(AccessSeen(NOBODY, found, live, most)).writes() if isinstance(each, Apply)]
    conditions = {each.key.name: each.wanted["status"]["conditions"][0] for each in writes if each.kind == SOURCE_GRANT}
    return {name: (said["reason"], said["message"]) for name, said in conditions.items()}


def test_conditions_of_source_grants() -> None:
    """A source that is not there, a kind that is not served, and all that counts."""
    grants = [
        grant("valid", {}, of="s00"),
        grant("nowhere", {}, of="nope"),
        grant("none", {}, sourceSelector={"kind": "Bucket", "matchLabels": {"a": "b"}}),
        grant("unserved", {}, sourceRef={"kind": "OCIRepository", "name": "o"}),
        {**grant("going", {}), "metadata": {**grant("going", {})["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}},
    ]
    live = index(read={"GitRepository/n/s00": "*"}, write={"GitRepository/n/s00": "team=two"}, complete=True)
    found = said_of(places(shared(1), grants, frozenset({"GitRepository", "Bucket"})), live)
    assert {name: reason for name, (reason, _) in found.items()} == {
        "valid": "Valid",
        "nowhere": "SourceNotFound",
        "none": "SourceNotFound",
        "unserved": "SourceKindNotServed",
    }
    assert "GitRepository nope" in found["nowhere"][1]
    assert "OCIRepository" in found["unserved"][1]


def test_a_grant_without_a_place_is_told() -> None:
    """On the SourceGrant that brings it, or as a Warning about a source that says it itself; only where the index is full."""
    found = places([source("a"), source("b", said=access_from({}))], [grant("g", {}, of="a")])
    full = index(read={"Bucket/m/x": "*"}, complete=True)
    assert said_of(found, full, 1)["g"][0] == "IndexFull"
    (warned,) = warnings_of(AccessSeen(NOBODY, found, full, 1))
    assert (warned.reason, warned.source["metadata"]["name"]) == ("IndexFull", "b")
    written = index(read={"GitRepository/n/a": "*", "GitRepository/n/b": "*"}, write={"GitRepository/n/b": "*"}, complete=True)
    assert said_of(found, written, 10)["g"][0] == "Valid"
    assert not warnings_of(AccessSeen(NOBODY, found, written, 10))


def test_what_the_index_does_not_say_is_not_called_in_force() -> None:
    """Neither where it has less than what is granted, nor where it has more; told only when it still is so at a second look."""
    found = places([source("a"), source("b", said=access_from({})), source("c")], [grant("g", {}, of="a")])
    behind = index(read={"GitRepository/n/c": "team=two"}, complete=True)
    for live, wrong in ((None, "ab"), (behind, "abc")):
        seen = AccessSeen(NOBODY, found, live)
        assert said_of(found, live)["g"][0] == "IndexNotWritten"
        warned = [(each.reason, each.source["metadata"]["name"]) for each in warnings_of(seen)]
        assert warned == [("IndexNotWritten", name) for name in wrong if name != "a"]
        assert told_when_seen_twice(seen, plan_access(seen)) == {f"GitRepository/n/{name}" for name in wrong}
        assert not_in_force_yet(seen)


def test_that_a_grant_is_in_force_is_seen_twice_before_it_is_told() -> None:
    """Nobody may rely on an index that is answered as it was before."""
    found = places([source("a")], [grant("g", {}, of="a")])
    seen = AccessSeen(NOBODY, found, index(read={"GitRepository/n/a": "*"}, complete=True))
    (write,) = plan_access(seen).writes()
    assert isinstance(write, Apply)
    assert told_when_seen_twice(seen, plan_access(seen)) == {write.key}
    assert not not_in_force_yet(seen)


def test_a_warning_is_told_once_and_not_where_it_cannot_be() -> None:
    """One that is there is left alone; a namespace that is going takes none; of many mistakes one Warning lists the first."""
    found = places([source("a", said=access_from(*({"team": "a b"} for _ in range(12))))])
    (warned,) = warnings_of(AccessSeen(NOBODY, found))
    assert warned.note.count("namespaceSelectors[") == limits.PROBLEMS_SHOWN
    assert warned.note.endswith("and 2 more")
    assert len(list(plan_access(AccessSeen(NOBODY, found, now="now")).writes())) == 1
    assert not list(plan_access(AccessSeen(NOBODY, found, warned=frozenset({warned.name}))).writes())
    assert not list(plan_access(AccessSeen(NOBODY, found, open=False)).writes())
    nowhere = places([], [grant("g", {}, of="nope")])
    for is_open in (True, False):  # a namespace that is going takes no Events
        (write,) = plan_access(AccessSeen(NOBODY, nowhere, open=is_open)).writes()
        assert isinstance(write, Apply)
        assert (write.event is not None) == is_open


def test_what_is_granted_on_one_source_has_a_budget() -> None:
    """The oldest count; the one that does not fit grants nothing, and says so."""
    large = [{f"k{at}": "v" * 60} for at in range(64)]
    grants = [
        grant(f"g{at}", *({f"g{at}-{key}": value} for each in large for key, value in each.items()), age=str(at))
        for at in range(5)
    ]
    found = carried(places([source("a")], grants), NOBODY)
    assert len(found.texts["GitRepository/n/a"].read) <= limits.ACCESS_FROM_BYTES
    assert "g0-k0=" in found.texts["GitRepository/n/a"].read
    assert "g4-k0=" not in found.texts["GitRepository/n/a"].read
    assert [each.reason for each in found.grant_problems["uid-n-g4"]] == ["TooLarge"]


def test_selecting_has_a_budget() -> None:
    """Beyond it the younger SourceGrants of the namespace grant nothing, and say so; other namespaces have their own."""
    sources = [source(f"s{number}", labels={"a": "b"}) for number in range(500)] + [source("x", "m")]
    selector = {"kind": "GitRepository", "matchLabels": {}}
    grants = [grant(f"g{number}", {}, sourceSelector=selector, age=f"{number:04}") for number in range(402)]
    found = carried(places(sources, [*grants, grant("m", {}, of="x", namespace="m", age="9999")]), NOBODY)
    reasons = {name: [each.reason for each in problems] for name, problems in found.grant_problems.items() if problems}
    assert reasons == {"uid-n-g400": ["TooLarge"], "uid-n-g401": ["TooLarge"]}
    assert found.selected["uid-m-m"] == ["GitRepository/m/x"]


@pytest.mark.parametrize("annotation", ["x" * 200_000, json.dumps(access_from({}))])
def test_little_is_kept_of_sources(annotation: str) -> None:
    """Labels, what it says of access within its budget, and nothing else; what is kept is kept as it is."""
    large = source("a", annotations={ACCESS_FROM: annotation, "other": "x"}, managedFields=[{}])
    large |= {"spec": {"url": "x" * 1000, "accessFrom": {"namespaceSelectors": ["x" * 200_000]}}, "status": {"a": "b"}}
    kept = kept_source(large)
    assert len(json.dumps(kept)) < 1000
    assert kept_source(kept) == kept
    assert set(kept) == {"apiVersion", "kind", "metadata", "spec"}
    assert kept["metadata"]["annotations"].keys() == {ACCESS_FROM}


def test_what_is_remembered_holds_with_the_index_alone() -> None:
    """An object as it was seen is known while the version of the index is; one that changed, or was not looked at, is not."""
    memory, seen, other = IndexMemory(), source("a"), source("b", "m")
    memory.looked(places([seen]), frozenset({"n"}), NOBODY)
    assert not memory.knew(place_of(seen), seen)
    memory.version = "7"
    assert memory.knew(place_of(seen), {**seen, "status": {"x": 1}})
    assert not memory.knew(place_of(seen), source("a", said=access_from({})))
    assert not memory.knew(place_of(seen), source("a", labels={"a": "b"}))
    assert not memory.knew(place_of(seen), None)
    assert not memory.knew(place_of(other), other)
    assert not memory.knew(place_of(other), None)
    memory.looked(places([seen]), None, NOBODY)
    assert memory.knew(place_of(other), None)
    grants = grant("g", {})
    memory.looked(places([], [grants]), frozenset({"n"}), NOBODY)
    assert memory.knew(place_of(grants), {**grants, "status": {}})
    assert not memory.knew(place_of(grants), {**grants, "metadata": {**grants["metadata"], "generation": 2}})
    assert not memory.knew(place_of(seen), seen)
    memory.forget()
    assert not memory.knew(place_of(grants), grants)
