"""Roles of ours that others are bound to: what they keep, in which order they are filled, and what is remembered (a-38)."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import owning
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from served import Served

from scope_binding.consent import FROM_UID, consent_objects, given_to, is_given_to
from scope_binding.namespace_scopes import plan
from scope_binding.namespace_scopes.declared import declared
from scope_binding.namespace_scopes.grants import Grant, RolePlace
from scope_binding.namespace_scopes.names import FROM_LABEL, MANAGER, managed_role_name, ownership_labels, runtime_role_name
from scope_binding.namespace_scopes.others import growing, is_held, kept_rules, other_bindings
from scope_binding.namespace_scopes.projection import projected
from scope_binding.namespace_scopes.rules import Given, lacking, parse, within
from scope_binding.namespace_scopes.seen import ObservedHome
from scope_binding.namespace_scopes.unit import NamespaceScopes
from tenantry.engine.reader import Reader
from tenantry.engine.snapshot import Snapshot
from tenantry.model.config import Config, NamespaceScopeSettings
from tenantry.model.kinds import (
    NAMESPACE,
    NAMESPACE_SCOPE,
    ROLE,
    ROLE_BINDING,
    SERVICE_ACCOUNT,
    Key,
    Kind,
    Object,
    key_of,
    object_of,
)
from tenantry.model.plan import Apply

NAME, SUMMARY = managed_role_name("s", "ops", shared=False), runtime_role_name("ops")
PLACE: RolePlace = ("t1", NAME)
NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"
EVE: Object = {"kind": "User", "name": "eve"}
OP: Object = {"kind": "ServiceAccount", "name": "op", "namespace": "ops"}


def rule(resources: str, verbs: str) -> Object:
    return {"apiGroups": [""], "resources": resources.split(","), "verbs": verbs.split(",")}


def live(kind: Kind, name: str, **fields: Any) -> Object:
    entry = {"manager": MANAGER, "operation": "Apply", "fieldsV1": {"f:metadata": {"f:labels": {f"f:{FROM_LABEL}": {}}}}}
    labels = ownership_labels("namespace-scope", "ops")
    identity = {"name": name, "namespace": "t1", "uid": f"{kind.kind}-{name}", "resourceVersion": "1"}
    return object_of(kind, {**identity, "labels": labels, "managedFields": [entry]}, **fields)


def binding(name: str, role: str, *subjects: Object) -> Object:
    return live(ROLE_BINDING, name, roleRef={"apiGroup": ROLE.group, "kind": "Role", "name": role}, subjects=list(subjects))


def scope(**status: Any) -> Object:
    """A NamespaceScope of ``ops`` with the member ``t1`` and the account ``op``."""
    metadata = {"name": "s", "namespace": "ops", "uid": "s", "resourceVersion": "1", "creationTimestamp": NOW}
    spec = {"namespaceMembers": ["t1"], "serviceAccountMembers": ["op"]}
    return object_of(NAMESPACE_SCOPE, metadata, spec=spec, status=status)


def namespace(name: str) -> Object:
    return object_of(NAMESPACE, {"name": name, "uid": name, "creationTimestamp": NOW})


# -- consents --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("uid", "made", "counts"),
    [
        ("ops", NOW, True),
        ("another", LATER, False),
        ("", LATER, False),
        ("ops", "2025-12-31T23:59:59Z", True),
        (None, "2025-12-31T23:59:59Z", False),
        (None, NOW, True),
        (None, LATER, True),
        (None, None, False),
    ],
)
def test_whom_a_consent_is_for(uid: str | None, made: str | None, counts: bool) -> None:
    """The uid decides where there is one, also an empty one; else the age, and a consent of the same second counts."""
    _, consent = consent_objects("t1", "ops")
    consent["metadata"]["creationTimestamp"] = made
    if uid is not None:
        consent = given_to(consent, uid)
        assert consent["metadata"]["annotations"] == {FROM_UID: uid}
    assert is_given_to(consent, namespace("ops")) is counts


# -- what a held Role keeps --------------------------------------------------------------------------------------

WORDS = st.lists(st.sampled_from(["configmaps", "secrets", "pods", "pods/log", "*"]), min_size=1, max_size=3)
VERBS = st.lists(st.sampled_from(["get", "list", "create", "bind", "use", "*"]), min_size=1, max_size=3)
RULES = st.lists(st.builds(lambda words, verbs: rule(",".join(words), ",".join(verbs)), WORDS, VERBS), max_size=3)


def grant(rules: list[Object], *accounts: str) -> Grant:
    wanted = tuple(within(parse(rules, granting=True), parse(rules, granting=True)))
    return Grant("t1", NAME, "managed", Given(wanted), accounts, declared(scope(), "managed"))


@settings(max_examples=200, deadline=None)
@given(RULES, RULES, st.none() | RULES)
def test_a_held_role_never_gets_more(there: list[Object], wanted: list[Object], before: list[Object] | None) -> None:
    """It keeps nothing that it has not, that is not wanted, or that it had not before; and once it is so it stays."""
    asked = grant(wanted)
    past = {} if before is None else {PLACE: tuple(before)}
    seen = ObservedHome("ops", roles={PLACE: live(ROLE, NAME, rules=there)}, others={PLACE: ("x",)}, before=past)
    left = kept_rules(asked, seen)
    for bound in (there, wanted, *([] if before is None else [before])):
        assert lacking(parse(left, granting=True), parse(bound, granting=True)) == []
    assert kept_rules(asked, replace(seen, roles={PLACE: live(ROLE, NAME, rules=left)})) == left


def test_what_grows() -> None:
    """A Role that is missing, or lacks something; not one that has the same in other words, or more."""
    asked = grant([rule("configmaps,secrets", "get,list")])
    apart = [rule("configmaps", "get"), rule("configmaps", "list"), rule("secrets", "list,get")]
    for rules, grows in ((None, True), ([], True), (apart[1:], True), (apart, False), ([rule("*", "*")], False)):
        roles = {} if rules is None else {PLACE: live(ROLE, NAME, rules=rules)}
        assert growing({PLACE: asked}, roles) == ({PLACE} if grows else set())


def test_whose_bindings_are_others() -> None:
    """All that name the Role but the one of its name; where none is made, as for the summary, that one too."""
    found = [binding(NAME, NAME, OP), binding("x", NAME), binding("y", "another"), binding("z", NAME)]
    found.append({**binding("cluster", NAME), "roleRef": {"kind": "ClusterRole", "name": NAME}})
    assert other_bindings(found, grant([], "op")) == ("x", "z")
    assert other_bindings(found, grant([])) == (NAME, "x", "z")


# -- what is planned ---------------------------------------------------------------------------------------------


def seen(**fields: Any) -> ObservedHome:
    """``ops`` with a member that consents to Secrets."""
    base = ObservedHome(
        "ops",
        (declared(scope(), "managed"),),
        {"t1": namespace("t1")},
        {"t1": consent_objects("t1", "ops", (rule("secrets", "get"),))},
        accounts=frozenset({"op"}),
        home={"metadata": {"name": "ops"}},
    )
    return replace(base, **fields)


def written(found: ObservedHome) -> list[tuple[str, list[Object]]]:
    """What is written to Role and RoleBinding, in order: kind, and rules or subjects."""
    writes = plan.plan(replace(found, projected=projected(found, NamespaceScopeSettings()))).writes()
    return [
        (write.key.kind, write.wanted.get("rules", write.wanted.get("subjects")))
        for write in writes
        if isinstance(write, Apply) and write.key.name == NAME
    ]


def test_strangers_go_before_the_role_is_filled() -> None:
    """Who is in our binding and should not be goes first; then comes the Role, then the accounts that are missing."""
    place = {PLACE: binding(NAME, NAME, EVE)}
    roles = {PLACE: live(ROLE, NAME, rules=[])}
    found = seen(roles=roles, bindings=place, growing=frozenset({PLACE}))
    rules = [rule("secrets", "get")]
    assert written(found) == [("RoleBinding", []), ("Role", rules), ("RoleBinding", [OP])]
    assert written(replace(found, growing=frozenset())) == [("Role", rules), ("RoleBinding", [OP])]


@pytest.mark.parametrize(
    ("there", "subjects", "writes"),
    [
        (None, None, []),
        ([], [OP], [("RoleBinding", [OP])]),
        ([rule("pods", "get")], [EVE], [("RoleBinding", []), ("Role", [])]),
        ([rule("pods,secrets", "get")], [OP, EVE], [("RoleBinding", [OP]), ("Role", [rule("secrets", "get")])]),
    ],
)
def test_where_others_are_bound_things_become_less(there: Any, subjects: Any, writes: list[Any]) -> None:
    """Nothing is made; what is there loses what is not wanted."""
    roles = {} if there is None else {PLACE: live(ROLE, NAME, rules=there)}
    bindings = {} if subjects is None else {PLACE: binding(NAME, NAME, *subjects)}
    found = seen(roles=roles, bindings=bindings, growing=frozenset({PLACE}), others={PLACE: ("x",)})
    assert is_held(PLACE, found)
    assert written(found) == writes


def test_beside_a_binding_of_somebody_elses_our_role_becomes_less() -> None:
    """Who put a RoleBinding of his own in the place of ours keeps it, and gets nothing more; what is not wanted goes."""
    theirs = binding(NAME, NAME, EVE)
    theirs["metadata"] |= {"labels": {}, "managedFields": []}
    for rules, writes in (([rule("pods,secrets", "get")], [("Role", [rule("secrets", "get")])]), ([], [])):
        assert written(seen(roles={PLACE: live(ROLE, NAME, rules=rules)}, bindings={PLACE: theirs})) == writes
    not_ours = live(ROLE, NAME, rules=[rule("pods", "get")])
    not_ours["metadata"] |= {"labels": {}, "managedFields": []}
    assert written(seen(roles={PLACE: not_ours}, bindings={PLACE: theirs})) == []


# -- what is remembered ------------------------------------------------------------------------------------------


class Home(Served):
    """``ops`` with a member that consents, as far as NamespaceScopes read it."""

    def __init__(self) -> None:
        super().__init__()
        self.versions = itertools.count(1)
        self.put(scope(), namespace("ops"), namespace("t1"), *consent_objects("t1", "ops", (rule("secrets", "get"),)))
        self.put(object_of(SERVICE_ACCOUNT, {"name": "op", "namespace": "ops"}))

    def put(self, *objects: Object) -> None:
        """Make or replace objects, each time as a new version; what has no age was made a moment later."""
        for obj in objects:
            metadata = {"uid": obj["metadata"]["name"], "creationTimestamp": LATER, **obj["metadata"]}
            metadata["resourceVersion"] = str(next(self.versions))
            self.objects[key_of(obj)] = {**obj, "metadata": metadata}


async def test_a_filling_is_looked_at_again() -> None:
    """What a Role had before is known until a live look; whoever is found then takes it back to that, and until he is gone."""
    server, unit = Home(), NamespaceScopes(Config())
    rules = [rule("secrets", "get")]

    async def looked(reader: Reader | None = None) -> ObservedHome:
        found: ObservedHome = await owning.observe(unit, "namespace/ops", reader or server.reader())
        return found

    def known() -> dict[RolePlace, Any]:
        return unit._filled.get("ops", {})

    summary: RolePlace = ("t1", SUMMARY)
    first = await looked()
    assert first.growing == {PLACE, summary}
    assert known() == {PLACE: (), summary: ()}
    server.put(live(ROLE, NAME, rules=rules), live(ROLE, SUMMARY, rules=rules), binding(NAME, NAME, OP), binding("x", NAME, EVE))
    assert (await looked(Snapshot(server.api))).before == {PLACE: ()}, "a look of a sweep forgets nothing"
    for _ in range(2):
        caught = await looked()
        assert (caught.growing, caught.before) == (set(), {PLACE: ()})
        assert ("Role", []) in written(caught)
    server.put(binding(NAME, NAME, OP, EVE))
    del server.objects[key_of(binding("x", NAME))]
    out = await looked()
    assert (out.before, written(out)) == ({}, [("Role", rules), ("RoleBinding", [OP])]), "who is in ours is taken out"
    assert known() == {PLACE: ()}, "and may have bound the Role once more"
    server.put(binding(NAME, NAME, OP))
    assert (await looked()).before == {}
    assert known() == {}
    server.put(binding("x", NAME, EVE))
    later = await looked()
    assert (later.before, later.others) == ({}, {}), "who comes later had all of it himself"


async def test_bindings_of_any_name_are_looked_at_where_something_is_held_up() -> None:
    """An event of a RoleBinding that cannot be ours leads to who said that a Role there could not be written."""
    server, unit = Home(), NamespaceScopes(Config())
    key = Key(ROLE_BINDING.api_version, "RoleBinding", "t1", "x")
    for told, owners in (
        ([], []),
        ([f"t1/{NAME}: failed to update from namespace ops"], [["namespace/ops"]]),
        ([f"t2/{NAME}: failed to update from namespace ops", "t1/r: insufficient permissions", "t1: not authorized"], []),
    ):
        server.put(scope(unprojectedRoles=told))
        assert await owning.owners(unit, key, {}, server.reader()) == owners


async def test_a_home_that_is_replaced_meanwhile_is_noticed() -> None:
    """The uid of home is an input of the decision: a run that gave to another one looks again."""
    server = Home()
    reader = server.reader()
    await owning.observe(NamespaceScopes(Config()), "namespace/ops", reader)
    assert await reader.unchanged()
    server.objects[Key(NAMESPACE.api_version, "Namespace", "", "ops")]["metadata"]["uid"] = "another"
    assert not await reader.unchanged()
