"""What is made of OLM's objects, as pure functions: names, who takes part, and what OLM would refuse (C-1 to C-6)."""

from __future__ import annotations

import asyncio
import copy
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import owning
import pytest
from scope_objects import stored
from served import Served

from scope_binding.olm.plan import COPIED_FROM, OPT_IN, PARTS, CsvSeen, Part, complaints, plan_csv, wanted_pairs
from scope_binding.olm.unit import OlmScopes
from scope_binding.scopes.names import MANAGER
from tenantry.api import Listing
from tenantry.api.errors import KindNotServed
from tenantry.engine.copies import OneCopy
from tenantry.engine.snapshot import _read
from tenantry.model.kinds import (
    CLUSTER_SERVICE_VERSION,
    OPERATOR_GROUP,
    SCOPE_INSTANCE,
    SCOPE_TEMPLATE,
    Key,
    Kind,
    Object,
    key_of,
    object_of,
)
from tenantry.model.plan import Apply, Delete, Refusal

RULE: Object = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
MODES = ("OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces")
LONG = "an-operator-whose-name-alone-has-more-than-54-characters"
GENERATE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


def permissions(*accounts: str) -> list[Object]:
    return [{"serviceAccountName": account, "rules": [RULE]} for account in accounts]


def group(name: str = "group", *, opted: bool = True, resolved: Sequence[str] | None = None, **spec: object) -> Object:
    status = {} if resolved is None else {"status": {"namespaces": list(resolved)}}
    metadata = {"name": name, "namespace": "ops", "uid": "g", "resourceVersion": "2"}
    return object_of(OPERATOR_GROUP, {**metadata, "labels": {OPT_IN: "true"} if opted else {}}, spec=spec, **status)


def version(
    name: str = "my-op.v1",
    home: str = "ops",
    *groups: Object,
    ns: Sequence[str] = ("my-op",),
    cluster: Sequence[str] = ("my-op",),
    modes: Sequence[str] = MODES,
) -> CsvSeen:
    """One ClusterServiceVersion that asks for the same rules for these accounts; without more in a group of all namespaces."""
    spec = {
        "install": {
            "strategy": "deployment",
            "spec": {"permissions": permissions(*ns), "clusterPermissions": permissions(*cluster)},
        },
        "installModes": [{"type": mode, "supported": mode in modes} for mode in MODES],
    }
    metadata = {"name": name, "namespace": home, "uid": f"uid-of-{name}", "resourceVersion": "2"}
    csv = object_of(CLUSTER_SERVICE_VERSION, metadata, spec=spec)
    return CsvSeen(home, name, csv, groups or (group(targetNamespaces=[home]),))


def names(seen: CsvSeen, part: Part) -> list[str]:
    return [role["generateName"] for role in wanted_pairs(seen)[part][0]["spec"]["clusterRoles"]]


def made(seen: CsvSeen) -> CsvSeen:
    """The same with all that is wanted there."""
    pairs = {part: (stored(template), stored(instance)) for part, (template, instance) in wanted_pairs(seen).items()}
    templates = {part: template for part, (template, _) in pairs.items()}
    return replace(seen, templates=templates, instances={part: instance for part, (_, instance) in pairs.items()})


def reasons(seen: CsvSeen) -> list[str]:
    return [complaint.reason for complaint in complaints(seen)]


def taken_back(seen: CsvSeen) -> list[str]:
    """The kinds that are deleted, and nothing is made."""
    writes = list(plan_csv(seen).writes())
    assert all(isinstance(write, Delete) for write in writes)
    return sorted(write.kind.kind for write in writes)


def test_of_a_pair_that_goes_the_instance_goes_first() -> None:
    """An instance without its template would be run once more, and take bindings away that go by themselves with it."""
    seen = replace(made(version("op", ns=["one"], cluster=[])), csv=None)
    stages = [[write.kind.kind for write in stage] for stage in plan_csv(seen).stages if stage]
    assert stages == [["ScopeInstance"], ["ScopeTemplate"]]


ALL_OF_IT = ["ScopeInstance", "ScopeInstance", "ScopeTemplate", "ScopeTemplate"]


# -- names -------------------------------------------------------------------------------------------------


@pytest.mark.check("sb-91")
def test_accounts_with_long_names_keep_their_own_rights() -> None:
    """Two accounts with equal rules have a role each, also where the operator's name leaves no room for theirs."""
    roles = wanted_pairs(version(LONG, ns=["one", "two"]))["ns"][0]["spec"]["clusterRoles"]
    assert [role["subjects"][0]["name"] for role in roles] == ["one", "two"]
    assert roles[0]["generateName"] != roles[1]["generateName"]


@pytest.mark.check("sb-91")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((version(home="ops"), "ns"), (version(home="ops2"), "ns")),
        ((version(home="ops"), "cluster"), (version(home="ops2"), "cluster")),
        ((version(), "ns"), (version(), "cluster")),
        ((version(f"{LONG}.v1"), "ns"), (version(f"{LONG}.v2"), "ns")),
        ((version("a-b", ns=["c"]), "ns"), (version("a", ns=["b-c"]), "ns")),
    ],
    ids=["namespaces", "namespaces-cluster", "parts", "upgrade", "dashes"],
)
def test_no_two_templates_want_one_cluster_role(one: tuple[CsvSeen, Part], other: tuple[CsvSeen, Part]) -> None:
    """Templates for other namespaces, permissions or versions have other names, though account and rules are equal."""
    assert not set(names(*one)) & set(names(*other))


@pytest.mark.check("sb-91")
@pytest.mark.parametrize("name", ["my-op.v1", LONG, "o" * 253])
def test_names_of_roles_fit_and_stay(name: str) -> None:
    """A name is the same each time, can be a label, and equal entries are one."""
    seen = version(name, ns=["my-op", "my-op", "an-account-" + "x" * 100])
    assert len(names(seen, "ns")) == 2
    assert names(seen, "ns") == names(version(name, ns=["my-op", "an-account-" + "x" * 100]), "ns")
    assert all(GENERATE_NAME.fullmatch(each) for each in names(seen, "ns"))


def test_templates_with_older_names_are_changed_in_place() -> None:
    """A template whose roles have other names is applied anew and never deleted: the order of a change keeps the access."""
    seen = made(version())
    old = {
        part: {**live, "spec": {"clusterRoles": [{**live["spec"]["clusterRoles"][0], "generateName": "my-op.v1-my-op-0123abcd"}]}}
        for part, live in seen.templates.items()
        if live is not None
    }
    plan = plan_csv(replace(seen, templates=old))
    assert all(isinstance(write, Apply) for write in plan.writes())
    assert [change.key for change in plan.changes(MANAGER)] == [
        Key(SCOPE_TEMPLATE.api_version, SCOPE_TEMPLATE.kind, "", f"{part}.ops.my-op.v1") for part in PARTS
    ]


# -- who takes part ----------------------------------------------------------------------------------------


def test_only_groups_with_the_label_take_part() -> None:
    """A group that never had the label, or has it with another value, makes nothing and is told nothing."""
    labelled = group()
    other = {**labelled, "metadata": {"name": "group", "labels": {OPT_IN: "false"}}}
    for each in (group(opted=False), other):
        seen = version("my-op.v1", "ops", each)
        assert list(plan_csv(seen).writes()) == []
        assert reasons(seen) == []
    assert taken_back(replace(made(version()), groups=(group(opted=False),))) == ALL_OF_IT


@pytest.mark.check("sb-96")
@pytest.mark.parametrize(
    "copy", [{"status": {"reason": "Copied"}}, {"labels": {COPIED_FROM: "elsewhere"}}], ids=["reason", "label"]
)
def test_copies_take_no_part(copy: dict[str, Object]) -> None:
    """A copy is known by its label or by its status alone; nothing is made, and what was made goes."""
    seen = version()
    assert seen.csv is not None
    csv = {**seen.csv, "metadata": {**seen.csv["metadata"], "labels": copy.get("labels", {})}, "status": copy.get("status", {})}
    assert list(plan_csv(replace(seen, csv=csv)).writes()) == []
    assert reasons(replace(seen, csv=csv)) == []
    assert taken_back(replace(made(seen), csv=csv)) == ALL_OF_IT


async def test_switched_off_everything_is_taken_back() -> None:
    """Without the switch nothing is made or told, and what was made goes, instances and templates."""
    unit, declared = OlmScopes(enabled=False), replace(version(), groups=(group(), group("second")))
    seen = await owning.observe(unit, "csv/ops/my-op.v1", Behind(declared, {}).reader())
    assert seen.csv is None
    assert taken_back(seen) == ALL_OF_IT
    assert reasons(seen) == []
    plan = owning.handler(unit, "csv/x/y").plan(seen)
    assert [write.kind for write in plan.writes()] == [SCOPE_INSTANCE] * 2 + [SCOPE_TEMPLATE] * 2


def left(seen: CsvSeen) -> list[Object]:
    """The pairs of a ClusterServiceVersion that is deleted."""
    return [stored(each) for pair in wanted_pairs(seen).values() for each in pair]


@pytest.mark.check("sb-95")
@pytest.mark.parametrize("name", ["my-op.v1", "a-name-that-no-label-can-hold." + "x" * 63], ids=["short", "long"])
async def test_a_sweep_finds_what_a_lost_event_left(name: str) -> None:
    """What was generated for a version that is gone is taken back by a sweep, also where its name is longer than a label."""
    unit, server = OlmScopes(enabled=True), Served(*left(version(name)))
    gone = [
        write.kind.kind
        for owner in await owning.sweep(unit, server.reader())
        for write in owning.handler(unit, "csv/x/y").plan(await owning.observe(unit, owner, server.reader())).writes()
    ]
    assert sorted(gone) == ALL_OF_IT


class Behind(Served):
    """A ClusterServiceVersion, its OperatorGroups and pairs, where one of the first reads shows an older state."""

    def __init__(self, seen: CsvSeen, stale: dict[Kind, list[Object]]) -> None:
        assert seen.csv is not None
        super().__init__(seen.csv, *seen.groups, *left(seen))
        self._stale = stale

    async def get(self, kind: Kind, name: str, namespace: str = "", **options: Any) -> Object | None:
        if kind in self._stale:
            return next(iter(self._stale.pop(kind)), None)
        return await super().get(kind, name, namespace, **options)

    async def list(self, kind: Kind, namespace: str = "", *selectors: str, **options: Any) -> Listing:
        if kind in self._stale:
            return Listing(self._stale.pop(kind), "1")
        return await super().list(kind, namespace, *selectors, **options)


@pytest.mark.parametrize("stale", [CLUSTER_SERVICE_VERSION, OPERATOR_GROUP], ids=["version", "group"])
async def test_one_read_of_before_takes_nothing_away(stale: Kind) -> None:
    """Where the declarations seem to be gone they are read once more, and what stands stays."""
    seen = version()
    decided = await owning.decided(OlmScopes(enabled=True), "csv/ops/my-op.v1", Behind(seen, {stale: []}).reader())
    assert decided.plan.changes(MANAGER) == []


async def test_one_read_of_before_gives_nothing() -> None:
    """Rights of a group that has been opted out are not given again because of an old read."""
    out = replace(version(), groups=(group(opted=False),))
    before = group(targetNamespaces=["ops"])
    before["metadata"]["resourceVersion"] = "1"
    server = Behind(out, {OPERATOR_GROUP: [before]})
    for pair in left(out):
        del server.objects[key_of(pair)]
    decided = await owning.decided(OlmScopes(enabled=True), "csv/ops/my-op.v1", server.reader())
    assert decided.plan.changes(MANAGER) == []


class Unserved(Behind):
    """One of OLM's kinds is not served, its discovery says too or does not."""

    def __init__(self, seen: CsvSeen, kind: Kind, *, known: bool) -> None:
        super().__init__(seen, {})
        self._kind = kind
        self._known = known

    async def get(self, kind: Kind, name: str, namespace: str = "", **options: Any) -> Object | None:
        if kind == self._kind:
            raise KindNotServed("page not found", status=404)
        return await super().get(kind, name, namespace, **options)

    async def list(self, kind: Kind, namespace: str = "", *selectors: str, **options: Any) -> Listing:
        if kind == self._kind:
            raise KindNotServed("page not found", status=404)
        return await super().list(kind, namespace, *selectors, **options)

    async def served(self, api_version: str, kind: str, *, again: bool = False) -> Kind | None:
        assert again
        return self._kind if self._known else None


@pytest.mark.parametrize("kind", [CLUSTER_SERVICE_VERSION, OPERATOR_GROUP], ids=["version", "group"])
async def test_that_olm_is_gone_is_believed_when_discovery_says_so(kind: Kind) -> None:
    """One answer that a kind is not served takes nothing away while discovery knows it: the run fails and is tried again."""
    unit, owner = OlmScopes(enabled=True), "csv/ops/my-op.v1"
    with pytest.raises(KindNotServed):
        await owning.observe(unit, owner, Unserved(version(), kind, known=True).reader())
    gone = await owning.observe(unit, owner, Unserved(version(), kind, known=False).reader())
    assert sorted(write.kind.kind for write in owning.handler(unit, "csv/x/y").plan(gone).writes()) == ALL_OF_IT


@pytest.mark.parametrize("known", [True, False])
async def test_a_sweep_believes_discovery_too(known: bool) -> None:
    """What is listed once for a whole sweep is missing when discovery does not know it, and not known otherwise."""
    api = Unserved(version(), CLUSTER_SERVICE_VERSION, known=known).api
    listed = [asyncio.ensure_future(_read(api, each, OneCopy().with_shared_parts)) for each in OlmScopes(enabled=True).prefetch()]
    found = await asyncio.gather(*listed, return_exceptions=True)
    assert [isinstance(each, KindNotServed) for each in found] == [False, False, known, False]


async def test_what_may_not_be_taken_back_is_told_where_it_stands() -> None:
    """Without its ClusterServiceVersion, what could not be deleted has a Warning of its own, once, whatever the words."""
    unit, server = OlmScopes(enabled=True), Served(*left(version()))
    seen = await owning.observe(unit, "csv/ops/my-op.v1", server.reader())
    assert len(seen.leftovers.objects) == 4
    about = key_of(next(iter(owning.handler(unit, "csv/x/y").plan(seen).writes())).live or {})
    refusals = [Refusal(about, "rights", words) for words in ("forbidden 1", "forbidden 2")]
    (event,) = (
        write.wanted for write in owning.handler(unit, "csv/x/y").report(seen, refusals[:1]).writes() if isinstance(write, Apply)
    )
    assert (event["metadata"]["namespace"], event["regarding"]["name"]) == ("default", about.name)
    server.objects[key_of(event)] = stored(event)
    told = await owning.observe(unit, "csv/ops/my-op.v1", server.reader())
    assert list(owning.handler(unit, "csv/x/y").report(told, refusals[1:]).writes()) == []


def test_an_owner_label_that_drifted_is_put_back() -> None:
    """What has our mark and the name of a pair is ours, whatever the other labels say."""
    seen = made(version())
    drifted = copy.deepcopy(seen.templates["ns"])
    assert drifted is not None
    seen = replace(seen, templates={**seen.templates, "ns": drifted})
    drifted["metadata"]["labels"]["olm.owner"] = "another"
    assert [change.key.name for change in plan_csv(seen).changes(MANAGER)] == ["ns.ops.my-op.v1"]
    assert complaints(seen) == []


# -- what OLM refuses --------------------------------------------------------------------------------------


@pytest.mark.check("sb-94")
@pytest.mark.parametrize("strategy", [None, "", "helm"])
def test_other_strategies_are_refused(strategy: str | None) -> None:
    """An install strategy that is not deployment is InvalidStrategy, and what was made goes."""
    seen = made(version())
    assert seen.csv is not None
    spec = seen.csv["spec"]
    csv = {**seen.csv, "spec": {**spec, "install": {**spec["install"], "strategy": strategy}}}
    assert reasons(replace(seen, csv=csv)) == ["InvalidStrategy"]
    assert taken_back(replace(seen, csv=csv)) == ALL_OF_IT


@pytest.mark.check("sb-94")
@pytest.mark.parametrize("targets", [[""], ["", "a"], ["a", ""]])
def test_an_empty_target_is_refused(targets: list[str]) -> None:
    """An empty name among the targets is refused; it is never taken for the whole cluster."""
    seen = replace(made(version()), groups=(group(targetNamespaces=targets),))
    assert reasons(seen) == ["UnsupportedOperatorGroup"]
    assert taken_back(seen) == ALL_OF_IT


SELECTOR: Object = {"matchLabels": {"team": "a"}}
FOUR_ONE: list[tuple[Object, set[str]]] = [
    (group(targetNamespaces=["ops"]), {"OwnNamespace"}),
    (group(targetNamespaces=["a"]), {"SingleNamespace"}),
    (group(targetNamespaces=["a", "b"]), {"MultiNamespace"}),
    (group(targetNamespaces=["a", "ops"]), {"MultiNamespace", "OwnNamespace"}),
    (group(targetNamespaces=["a"], selector=SELECTOR, resolved=["a", "ops"]), {"SingleNamespace"}),
    (group(), {"AllNamespaces"}),
    (group(selector={}), {"AllNamespaces"}),
    (group(selector=SELECTOR, resolved=["ops"]), {"OwnNamespace"}),
    (group(selector=SELECTOR, resolved=["a"]), {"SingleNamespace"}),
    (group(selector=SELECTOR, resolved=["a", "b"]), {"MultiNamespace"}),
    (group(selector=SELECTOR, resolved=["a", "ops"]), {"MultiNamespace", "OwnNamespace"}),
    (group(selector=SELECTOR), {"MultiNamespace"}),
    (group(selector=SELECTOR, resolved=[]), {"MultiNamespace"}),
]


@pytest.mark.check("sb-94")
@pytest.mark.parametrize(("of", "needed"), FOUR_ONE)
def test_install_modes_that_targets_need(of: Object, needed: set[str]) -> None:
    """With these modes alone an operator is served; without any one of them it is UnsupportedOperatorGroup."""
    assert reasons(version("my-op.v1", "ops", of, modes=sorted(needed))) == []
    for lacking in needed:
        modes = [mode for mode in MODES if mode != lacking]
        assert reasons(version("my-op.v1", "ops", of, modes=modes)) == ["UnsupportedOperatorGroup"]
