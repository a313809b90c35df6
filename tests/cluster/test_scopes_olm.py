"""Scopes made from what OLM knows about an operator: OperatorGroups and ClusterServiceVersions (sb-91 to sb-96)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio
from people import Start, may, token
from refusing import refusing
from scoping import READ_SECRETS, SCOPES, Scoping, role
from times import LOCAL_S, SCOPES_S, until

from tenantry.api import Api
from tenantry.local.followed import stand_in
from tenantry.local.install import until_served
from tenantry.local.knative import Knative
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    CLUSTER_SERVICE_VERSION,
    CUSTOM_RESOURCE_DEFINITION,
    OPERATOR_GROUP,
    ROLE_BINDING,
    SCOPE_INSTANCE,
    SCOPE_TEMPLATE,
    Object,
    labels_of,
)
from tenantry.testing import eventually
from tenantry.testing.objects import obj
from tenantry.testing.settling import settle, snapshot

CONFIG = {"scopeBinding": {"olm": {"enabled": True}}}
ALL_MODES = ("OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces")
READ_NODES: Object = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list"]}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def olm(admin: Api, knative: Callable[..., Awaitable[Knative]]) -> AsyncIterator[Knative]:
    """scope-binding with OLM switched on, started before OLM's kinds are served."""
    running = await knative(CONFIG, functions=[SCOPES])
    for kind in (CLUSTER_SERVICE_VERSION, OPERATOR_GROUP):
        await admin.apply(CUSTOM_RESOURCE_DEFINITION, stand_in(kind))
        await until_served(admin, stand_in(kind))
    yield running
    await running.drain()
    assert not running.dead_letters.exists(), running.dead_letters.read_text()
    for kind in (CLUSTER_SERVICE_VERSION, OPERATOR_GROUP):
        await admin.delete(CUSTOM_RESOURCE_DEFINITION, f"{kind.plural}.operators.coreos.com")


class Operators:
    """What OLM would write for one operator in a namespace of its own."""

    def __init__(self, scoping: Scoping, csv: str = "") -> None:
        self.scoping = scoping
        self.home = f"ops-{token()}"
        self.csv = csv or f"my-op-{self.home}.v1.0.0"

    def pair(self, part: str) -> str:
        return f"{part}.{self.home}.{self.csv}"

    @property
    def user(self) -> str:
        return f"system:serviceaccount:{self.home}:my-op"

    async def group(self, name: str = "group", *, opted: bool = True, **spec: Any) -> None:
        labels = {"scope-binding/olm-compat": "true"} if opted else {}
        await self.scoping.admin.apply(OPERATOR_GROUP, obj(OPERATOR_GROUP, name, self.home, labels=labels, spec=spec))

    async def version(
        self,
        *,
        modes: tuple[str, ...] = ALL_MODES,
        labels: Object | None = None,
        name: str = "",
        strategy: str = "deployment",
        **fields: Any,
    ) -> None:
        permissions = {
            "permissions": [{"serviceAccountName": "my-op", "rules": [READ_SECRETS]}],
            "clusterPermissions": [{"serviceAccountName": "my-op", "rules": [READ_NODES]}],
        }
        spec = {
            "install": {"strategy": strategy, "spec": permissions},
            "installModes": [{"type": mode, "supported": mode in modes} for mode in ALL_MODES],
        }
        kind = CLUSTER_SERVICE_VERSION
        await self.scoping.admin.apply(kind, obj(kind, name or self.csv, self.home, labels=labels, spec=spec, **fields))

    async def generated(self) -> list[str]:
        """Templates and instances with our mark, and ClusterRoles, of this operator."""
        found: list[str] = []
        for kind in (SCOPE_TEMPLATE, SCOPE_INSTANCE, CLUSTER_ROLE):
            found += [
                obj["metadata"]["name"]
                for obj in (await self.scoping.admin.list(kind)).items
                if self.csv in obj["metadata"]["name"]
            ]
        return found

    async def nothing(self) -> None:
        """Wait until nothing that was generated is left."""
        await eventually(self.generated, lambda found: not found, within=SCOPES_S, what="nothing generated is left")

    async def warnings(self, reason: str) -> list[str]:
        events = await self.scoping.warnings(self.csv, kind=CLUSTER_SERVICE_VERSION, namespace=self.home)
        return [event["message"] for event in events if event["reason"] == reason]

    async def warned(self, reason: str) -> str:
        return await self.scoping.warned(self.csv, reason, kind=CLUSTER_SERVICE_VERSION, namespace=self.home)

    async def rested(self, olm: Knative) -> None:
        await settle(olm, self.scoping.admin)


@pytest_asyncio.fixture
async def operators(scoping: Scoping, olm: Knative) -> Operators:
    """An operator's namespace."""
    made = Operators(scoping)
    await scoping.namespace(made.home)
    return made


@pytest.mark.check("sb-91")
@pytest.mark.check("sb-95")
async def test_permissions_become_scopes(olm: Knative, scoping: Scoping, operators: Operators) -> None:
    """Permissions hold in the group's namespaces, cluster permissions everywhere, and all goes with the version."""
    ops = operators
    t1, t2 = f"t1-{ops.home}", f"t2-{ops.home}"
    for name in (t1, t2):
        await scoping.namespace(name)
    await ops.group(targetNamespaces=[t2, t1])
    await ops.version()
    for part in ("ns", "cluster"):
        await scoping.scoped(ops.pair(part))
    instance = await scoping.get(SCOPE_INSTANCE, ops.pair("ns"))
    assert instance["spec"] == {"scopeTemplateName": ops.pair("ns"), "namespaces": [t1, t2]}
    assert (await scoping.get(SCOPE_INSTANCE, ops.pair("cluster")))["spec"] == {"scopeTemplateName": ops.pair("cluster")}
    template = await scoping.get(SCOPE_TEMPLATE, ops.pair("ns"))
    (role,) = template["spec"]["clusterRoles"]
    assert role["rules"] == [READ_SECRETS]
    assert role["subjects"] == [{"kind": "ServiceAccount", "name": "my-op", "namespace": ops.home}]
    assert labels_of(template)["olm.owner"] == ops.csv
    assert labels_of(template)["olm.owner.kind"] == "ClusterServiceVersion"
    assert "ownerReferences" not in template["metadata"]

    bound = await scoping.bound(ops.csv[:20])
    assert set(bound) == {t1, t2, ""}
    assert await may(scoping.admin, ops.user, "list", "secrets", t1)
    assert not await may(scoping.admin, ops.user, "list", "secrets", "default")
    assert await may(scoping.admin, ops.user, "list", "nodes")

    await scoping.edit(SCOPE_INSTANCE, ops.pair("ns"), "", ("remove", "/spec/namespaces", None))
    await scoping.until(SCOPE_INSTANCE, ops.pair("ns"), "", lambda found: found["spec"].get("namespaces") == [t1, t2])
    await scoping.edit(SCOPE_TEMPLATE, ops.pair("ns"), "", ("add", "/spec/clusterRoles/-", {"generateName": "more", "rules": []}))
    await scoping.until(SCOPE_TEMPLATE, ops.pair("ns"), "", lambda found: len(found["spec"]["clusterRoles"]) == 1)
    await ops.rested(olm)
    kinds = (SCOPE_TEMPLATE, SCOPE_INSTANCE, CLUSTER_SERVICE_VERSION, OPERATOR_GROUP)
    before = await snapshot(scoping.admin, kinds, containing=ops.home)
    await olm.sweep(SCOPES)
    assert await snapshot(scoping.admin, kinds, containing=ops.home) == before

    # A new version of the operator: its pair is there before the old one goes (C-6).
    old = ops.csv
    await ops.version(name=f"{ops.csv}-next")
    await scoping.scoped(f"{ops.pair('ns')}-next")
    await scoping.delete(CLUSTER_SERVICE_VERSION, old, ops.home)
    for part in ("ns", "cluster"):
        await scoping.away(SCOPE_TEMPLATE, ops.pair(part))
    assert await may(scoping.admin, ops.user, "list", "secrets", t1)
    await scoping.delete(CLUSTER_SERVICE_VERSION, f"{old}-next", ops.home)

    async def nothing() -> bool:
        return not await ops.generated() and not await scoping.bindings(ops.csv[:20])

    await eventually(nothing, within=SCOPES_S, what="nothing generated is left")


async def test_a_hand_on_a_generated_scope_costs_no_right(olm: Knative, scoping: Scoping, operators: Operators) -> None:
    """What somebody narrows by hand is put back before the scope follows it: the bindings stay the same ones."""
    ops = operators
    places = [f"t{number}-{ops.home}" for number in (1, 2)]
    for name in places:
        await scoping.namespace(name)
    await ops.group(targetNamespaces=places)
    await ops.version()
    await scoping.scoped(ops.pair("ns"))
    await ops.rested(olm)
    before = await snapshot(scoping.admin, [ROLE_BINDING], containing=ops.home)
    assert len(before) == 2
    await scoping.edit(SCOPE_INSTANCE, ops.pair("ns"), "", ("replace", "/spec/namespaces", places[:1]))
    await scoping.until(SCOPE_INSTANCE, ops.pair("ns"), "", lambda found: found["spec"].get("namespaces") == places)
    await ops.rested(olm)
    assert await snapshot(scoping.admin, [ROLE_BINDING], containing=ops.home) == before


@pytest.mark.check("sb-91")
async def test_one_operator_in_two_namespaces(olm: Knative, scoping: Scoping) -> None:
    """The same version in two namespaces, with the same account and rules: each has its rights, and keeps them alone."""
    both = [Operators(scoping, f"my-op-{token()}.v1.0.0")]
    both.append(Operators(scoping, both[0].csv))
    for ops in both:
        await scoping.namespace(ops.home)
        await ops.group(targetNamespaces=[ops.home])
        await ops.version()
    for ops in both:
        for part in ("ns", "cluster"):
            await scoping.scoped(ops.pair(part))
        assert await may(scoping.admin, ops.user, "list", "secrets", ops.home)
        assert await may(scoping.admin, ops.user, "list", "nodes")
    one, other = both
    assert not await may(scoping.admin, one.user, "list", "secrets", other.home)
    await scoping.delete(CLUSTER_SERVICE_VERSION, one.csv, one.home)
    for part in ("ns", "cluster"):
        await scoping.away(SCOPE_TEMPLATE, one.pair(part))
    await one.rested(olm)
    assert not await may(scoping.admin, one.user, "list", "nodes")
    assert await may(scoping.admin, other.user, "list", "nodes")
    assert await may(scoping.admin, other.user, "list", "secrets", other.home)


async def test_roles_with_older_names_are_replaced_without_loss(olm: Knative, scoping: Scoping, operators: Operators) -> None:
    """What an older release generated, with another name of its role, gets the name of now, and is bound all the time."""
    ops, name = operators, operators.pair("ns")
    account = {"kind": "ServiceAccount", "name": "my-op", "namespace": ops.home}
    older = f"{ops.csv}-my-op-0123abcd"
    await scoping.template(name, role(older, subjects=[account]))
    await scoping.instance(name, name, namespaces=[ops.home])
    await scoping.scoped(name)
    seen: list[set[str]] = []

    async def poll() -> None:
        while True:
            seen.append({binding["roleRef"]["name"] for binding in (await scoping.admin.list(ROLE_BINDING, ops.home)).items})
            await asyncio.sleep(0.02)

    with scoping.asleep(olm):
        owner = {"olm.owner": ops.csv, "olm.owner.kind": "ClusterServiceVersion", "olm.owner.namespace": ops.home}
        for kind in (SCOPE_TEMPLATE, SCOPE_INSTANCE):
            await scoping.edit(kind, name, "", ("add", "/metadata/labels", {**owner, "scope-binding/generated": "true"}))
        await ops.group(targetNamespaces=[ops.home])
        await ops.version()
        polling = asyncio.create_task(poll())
        await until(lambda: seen, within=SCOPES_S)
    await scoping.no_role(older)
    await ops.rested(olm)
    polling.cancel()
    (now,) = (await scoping.get(SCOPE_TEMPLATE, name))["spec"]["clusterRoles"]
    assert seen[0] == {older}
    assert all(seen), "at some moment nothing was bound"
    assert list(await scoping.bound(now["generateName"])) == [ops.home]
    assert await may(scoping.admin, ops.user, "list", "secrets", ops.home)


@pytest.mark.check("sb-92")
async def test_a_selector_stays_a_selector(olm: Knative, scoping: Scoping, operators: Operators) -> None:
    """A group with a selector gives an instance with it; while it matches nothing, nothing is bound, least of all everywhere."""
    ops = operators
    await ops.group(selector={"matchLabels": {"team": ops.home}})
    await ops.version()
    await scoping.scoped(ops.pair("ns"))
    instance = await scoping.get(SCOPE_INSTANCE, ops.pair("ns"))
    assert instance["spec"] == {"scopeTemplateName": ops.pair("ns"), "namespaceSelector": {"matchLabels": {"team": ops.home}}}
    role = (await scoping.get(SCOPE_TEMPLATE, ops.pair("ns")))["spec"]["clusterRoles"][0]["generateName"]
    assert await scoping.bound(role) == {}
    await scoping.namespace(f"t-{ops.home}", labels={"team": ops.home})
    await scoping.bound_in(role, f"t-{ops.home}")


@pytest.mark.check("sb-93")
async def test_a_group_of_all_namespaces(olm: Knative, scoping: Scoping, operators: Operators) -> None:
    """Without targets the operator is of the whole cluster, and may see the namespaces, as under OLM."""
    ops = operators
    await ops.group()
    await ops.version()
    await scoping.scoped(ops.pair("ns"))
    (role,) = (await scoping.get(SCOPE_TEMPLATE, ops.pair("ns")))["spec"]["clusterRoles"]
    assert role["rules"] == [READ_SECRETS, {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "list", "watch"]}]
    assert set(await scoping.bound(role["generateName"])) == {""}
    assert await may(scoping.admin, ops.user, "list", "namespaces")


@pytest.mark.check("sb-94")
async def test_what_olm_refuses_is_refused(olm: Knative, scoping: Scoping, operators: Operators) -> None:
    """Two groups, or an install mode that is not supported: nothing is generated, and an Event says so with OLM's word."""
    ops = operators
    await ops.group(targetNamespaces=[ops.home])
    await ops.version(modes=("AllNamespaces",))
    assert "OwnNamespace" in await ops.warned("UnsupportedOperatorGroup")
    await ops.rested(olm)
    assert await ops.generated() == []
    await ops.version()
    await scoping.scoped(ops.pair("ns"))
    await ops.group("second")
    assert "group, second" in await ops.warned("TooManyOperatorGroups")
    await ops.nothing()
    await scoping.delete(OPERATOR_GROUP, "second", ops.home)
    await scoping.scoped(ops.pair("ns"))
    # Taking the label off ends it (C-1).
    await scoping.edit(OPERATOR_GROUP, "group", ops.home, ("remove", "/metadata/labels", None))
    await ops.nothing()


@pytest.mark.check("sb-94")
async def test_bad_targets_and_strategies_are_refused(olm: Knative, scoping: Scoping, operators: Operators) -> None:
    """An empty name among the targets is never the whole cluster, and only the strategy deployment is served."""
    ops = operators
    await ops.group(targetNamespaces=[""])
    await ops.version()
    assert "empty entry" in await ops.warned("UnsupportedOperatorGroup")
    await ops.rested(olm)
    assert await ops.generated() == []
    await ops.group(targetNamespaces=[ops.home])
    await scoping.scoped(ops.pair("ns"))
    await ops.version(strategy="helm")
    assert "'helm'" in await ops.warned("InvalidStrategy")
    await ops.nothing()


async def test_a_group_without_the_label_makes_nothing(olm: Knative, scoping: Scoping, operators: Operators) -> None:
    """Without the label on the OperatorGroup nothing is generated and nothing told, by no event and no sweep."""
    ops = operators
    await ops.group(opted=False)
    await ops.group("second", opted=False)
    await ops.version()
    await ops.rested(olm)
    await olm.sweep(SCOPES)
    assert await ops.generated() == []
    assert await ops.warnings("TooManyOperatorGroups") == []
    await scoping.delete(OPERATOR_GROUP, "second", ops.home)
    await ops.group()
    await scoping.scoped(ops.pair("ns"))


async def test_switched_off(olm: Knative, scoping: Scoping, operators: Operators, running: Start) -> None:
    """Without the switch the function takes back what was generated; with it again the rights are there again."""
    ops = operators
    await ops.group(targetNamespaces=[ops.home])
    await ops.version()
    await scoping.scoped(ops.pair("cluster"))
    await ops.rested(olm)
    with scoping.asleep(olm):
        async with running({}, functions=[SCOPES]):
            await ops.nothing()
            assert not await may(scoping.admin, ops.user, "list", "nodes")
    # What came while it stood still may be delivered again after pauses.
    await scoping.until(SCOPE_INSTANCE, ops.pair("cluster"), "", lambda found: "status" in found, within=LOCAL_S)
    await scoping.scoped(ops.pair("cluster"))
    assert await may(scoping.admin, ops.user, "list", "nodes")


async def test_a_refusal_in_other_words_each_time_is_told_once(olm: Knative, operators: Operators) -> None:
    """A refused template has one Event, whatever the words and however often it is tried; it is made when it may."""
    async with refusing(operators.scoping.admin, SCOPE_TEMPLATE, operators.pair("ns"), spec={"clusterRoles": []}):
        await operators.group()
        await operators.version()
        assert "denied request: request " in await operators.warned("ScopeRefused")
        await operators.rested(olm)
        await olm.sweep("scope-binding")
        await operators.rested(olm)
        assert len(await operators.warnings("ScopeRefused")) == 1
    await olm.sweep("scope-binding")
    assert operators.pair("ns") in await operators.generated()


@pytest.mark.check("sb-96")
async def test_copies_and_names_of_others_are_left_alone(olm: Knative, scoping: Scoping, operators: Operators) -> None:
    """A copied version generates nothing; somebody's own template of the name is neither changed nor bound, and told."""
    ops = operators
    theirs = await scoping.template(ops.pair("ns"), kind=SCOPE_TEMPLATE)
    await ops.group(targetNamespaces=[ops.home])
    await ops.version(labels={"olm.copiedFrom": "elsewhere"})
    await ops.rested(olm)
    await olm.sweep(SCOPES)
    assert await ops.generated() == [ops.pair("ns")]

    await ops.version(labels={"own": "true"})
    assert ops.pair("ns") in await ops.warned("ScopeNameTaken")
    await scoping.scoped(ops.pair("cluster"))
    await ops.rested(olm)
    live = await scoping.get(SCOPE_TEMPLATE, ops.pair("ns"))
    assert live["spec"] == theirs["spec"]
    assert await scoping.admin.get(SCOPE_INSTANCE, ops.pair("ns")) is None


@pytest.mark.check("sb-96")
async def test_a_version_that_became_a_copy(olm: Knative, scoping: Scoping, operators: Operators) -> None:
    """A copy is known by its status too: what was generated goes, and comes with the version that is none."""
    ops = operators
    await ops.group(targetNamespaces=[ops.home])
    await ops.version()
    await scoping.scoped(ops.pair("ns"))
    await ops.version(status={"reason": "Copied"})
    await ops.nothing()
    await ops.version(status={"reason": "InstallSucceeded"})
    await scoping.scoped(ops.pair("ns"))
