"""Rights of a Paas on OpenShift: what it gives, and how bindings and Groups follow every change (4.1, 4.2, 4.10)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio
from admitting import JSON, MERGE, Admitting, Answer, paas
from paasing import CONFIG, Paasing, example, managed, paas_name, together
from people import forced, may
from righting import (
    FUNCTIONS,
    NS_GROUPS,
    SHAPE,
    Change,
    anyway,
    binding,
    example_bindings,
    group_names,
    has_users,
    history,
    named,
    only,
    replaced,
    righting,
    sweep,
    versions,
)
from times import CONTROLLER_S, LEFT_TO_MAKE_WHOLE

from tenantry.api import Api
from tenantry.api.errors import AlreadyExists, RefusedError
from tenantry.local.knative import Knative
from tenantry.model.kinds import NAMESPACE, ROLE_BINDING, annotations_of, finalizers_of
from tenantry.model.paas.names import GROUP, MANAGED_BY_PAAS, PAAS, PAAS_NS, PAAS_UID, RIGHTS_FINALIZER
from tenantry.testing import eventually
from tenantry.testing.objects import obj

pytestmark = LEFT_TO_MAKE_WHOLE

PLACES = ("cicd", "test", "prod", "argocd")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(flawlessly: Callable[..., Awaitable[Knative]], admin: Api) -> Knative:
    """Namespaces and rights, with OpenShift's kinds."""
    return await righting(flawlessly, admin, "os")


@pytest.fixture
async def mine(system: Knative, paasing: Paasing) -> str:
    """The example, with all its rights."""
    name = paas_name()
    await paasing.paas(name, **example())
    await bound(paasing, name)
    return name


async def bound(paasing: Paasing, name: str, *places: str, **changes: list[str] | None) -> None:
    """Wait until the bindings of the example are in these namespaces, or all, but for changes by their ClusterRole."""
    wanted = {**example_bindings(name), **{f"paas-{role.replace('_', '-')}": found for role, found in changes.items()}}
    expected = {role: found for role, found in wanted.items() if found}
    await together(*(paasing.bound(f"{name}-{place}", expected) for place in places or PLACES))


@pytest.mark.check("p-3")
@pytest.mark.check("p-4")
@pytest.mark.check("p-5")
@pytest.mark.check("p-6")
async def test_groups_are_made_and_bound_in_all_namespaces(system: Knative, paasing: Paasing) -> None:
    """Users get the ClusterRoles of their roles; a query makes no Group, and its users are nobody's."""
    name = paas_name()
    paas = await paasing.paas(name, **example())
    await together(has_users(paasing, f"{name}-us", ["me", "you"]), has_users(paasing, f"{name}-them", ["friend"]))
    await bound(paasing, name)

    groups = {each["metadata"]["name"]: each for each in (await paasing.admin.list(GROUP)).items}
    assert all(managed(groups[f"{name}-{key}"], name) for key in ("us", "them"))
    assert annotations_of(groups[f"{name}-us"])[PAAS_UID] == paas["metadata"]["uid"]
    assert not {"others", f"{name}-others"} & set(groups)
    assert [each for each, found in groups.items() if each.startswith(name) and "friend" in found["users"]] == [f"{name}-them"]
    view = await paasing.get(ROLE_BINDING, "paas-view", f"{name}-cicd")
    assert [each["name"] for each in view["subjects"]] == sorted([f"{name}-them", f"{name}-us", "others"])
    assert {each["kind"] for each in view["subjects"]} == {"Group"}
    assert RIGHTS_FINALIZER in finalizers_of(await paasing.get(PAAS, name))
    await paasing.says(name, "tenantry.dev/Rights", "Reconciling", status="True")


@pytest.mark.check("p-47")
async def test_users_beside_a_query_count_for_nothing(system: Knative, paasing: Paasing, admitting: Admitting) -> None:
    """The Paas is admitted with a warning; the name out of the query is bound, and nobody makes a Group of the users."""
    name, asked = paas_name(), f"x-{paas_name()}"
    groups = {"both": {"query": f"CN={asked},OU=x", "users": [f"friend-{name}"]}, "us": {"users": ["me"]}}
    answer = await admitting.create(paas(name, groups=groups, namespaces=["a"], quota={"pods": "9"}), dry=False)
    assert answer.status == 201, answer
    assert "spec.groups[both].users: ignored, since the group has a query" in answer.told
    assert "[us]" not in answer.told
    await paasing.bound(f"{name}-a", {"paas-view": sorted([asked, f"{name}-us"])})
    told = await paasing.says(name, "Warnings", "QueryAndUsers", "'both'", status="True")
    assert "'us'" not in told["message"]
    await paasing.ready(name)
    for group in (asked, f"{name}-both"):
        assert await paasing.users(group) is None
    assert not [each for each in (await paasing.admin.list(GROUP)).items if f"friend-{name}" in (each.get("users") or ())]


@pytest.mark.check("p-7")
@pytest.mark.check("p-8")
@pytest.mark.check("p-111")
async def test_a_paas_ns_is_bound_for_its_groups(mine: str, paasing: Paasing) -> None:
    """Its own groups, or those of the namespace that it lives in; when they change, bindings follow in place."""
    await paasing.paas_ns(f"{mine}-argocd", "adminonly", groups=["us"])
    await paasing.paas_ns(f"{mine}-cicd", "plain")
    await together(paasing.bound(f"{mine}-adminonly", only(mine, "us")), bound(paasing, mine, "plain"))
    uid = (await paasing.get(NAMESPACE, f"{mine}-adminonly"))["metadata"]["uid"]
    view = (await paasing.get(ROLE_BINDING, "paas-view", f"{mine}-adminonly"))["metadata"]["uid"]

    await paasing.edit(PAAS_NS, "adminonly", f"{mine}-argocd", ("replace", "/spec/groups", ["us", "them"]))
    await paasing.bound(f"{mine}-adminonly", {**only(mine, "us"), "paas-view": [f"{mine}-them", f"{mine}-us"]})
    await paasing.edit(PAAS_NS, "adminonly", f"{mine}-argocd", ("replace", "/spec/groups", ["us"]))
    await paasing.bound(f"{mine}-adminonly", only(mine, "us"))
    assert (await paasing.get(ROLE_BINDING, "paas-view", f"{mine}-adminonly"))["metadata"]["uid"] == view
    assert (await paasing.get(NAMESPACE, f"{mine}-adminonly"))["metadata"]["uid"] == uid
    where = {"kind": PAAS_NS, "namespace": f"{mine}-argocd"}
    await paasing.says("adminonly", "tenantry.dev/Rights", "Reconciling", status="True", **where)  # type: ignore[arg-type]


@pytest.mark.check("p-41")
async def test_a_paas_ns_whose_groups_all_left_is_bound_to_nobody(mine: str, paasing: Paasing) -> None:
    """It never falls back to all groups, and it says so."""
    await paasing.paas_ns(f"{mine}-argocd", "x", groups=["them"])
    await paasing.bound(f"{mine}-x", only(mine, "them"))
    await paasing.edit(PAAS, mine, "", ("remove", "/spec/groups/them", None))
    await paasing.bound(f"{mine}-x", {})
    where = {"kind": PAAS_NS, "namespace": f"{mine}-argocd"}
    await paasing.says("x", "tenantry.dev/Rights", "UnknownGroup", "'them'", **where)  # type: ignore[arg-type]
    await bound(paasing, mine, view=sorted([f"{mine}-us", "others"]))


@pytest.mark.check("p-40")
async def test_a_paas_ns_names_groups_of_its_paas(mine: str, paasing: Paasing) -> None:
    """Another key is refused; where it got in it counts for nothing, and is told."""
    body = obj(PAAS_NS, "x", f"{mine}-argocd", spec={"groups": ["us", "nobody"]})
    with pytest.raises(RefusedError, match="nobody"):
        await paasing.admin.create(PAAS_NS, body)
    await anyway(paasing, (NS_GROUPS,), PAAS_NS, body)
    await paasing.bound(f"{mine}-x", only(mine, "us"))
    where = {"kind": PAAS_NS, "namespace": f"{mine}-argocd"}
    await paasing.says("x", "tenantry.dev/Rights", "UnknownGroup", "'nobody'", **where)  # type: ignore[arg-type]


@pytest.mark.check("p-16")
async def test_a_new_user_is_added_to_the_group_in_place(mine: str, paasing: Paasing) -> None:
    """The Group stays the same object, and no binding is written."""
    before = await paasing.get(GROUP, f"{mine}-us")
    unchanged = await versions(paasing, *(f"{mine}-{place}" for place in PLACES))
    await paasing.edit(PAAS, mine, "", ("add", "/spec/groups/us/users/-", "he"))
    await has_users(paasing, f"{mine}-us", ["me", "you", "he"])
    await paasing.says(mine, "tenantry.dev/Rights", "Reconciling")
    assert (await paasing.get(GROUP, f"{mine}-us"))["metadata"]["uid"] == before["metadata"]["uid"]
    assert await versions(paasing, *(f"{mine}-{place}" for place in PLACES)) == unchanged


@pytest.mark.check("p-17")
@pytest.mark.check("p-18")
async def test_a_role_that_a_group_loses_is_unbound(mine: str, paasing: Paasing) -> None:
    """What another role still gives stays; without roles the default is what a group has."""
    await paasing.edit(PAAS, mine, "", ("replace", "/spec/groups/us/roles", ["edit", "view"]))
    await bound(paasing, mine, admin=None)
    await paasing.edit(PAAS, mine, "", ("replace", "/spec/groups/them/roles", ["edit"]))
    both = [f"{mine}-them", f"{mine}-us"]
    edits = {"edit": both, "alert_routing_edit": both, "monitoring_edit": both}
    await bound(paasing, mine, admin=None, view=sorted([f"{mine}-us", "others"]), **edits)
    await paasing.edit(PAAS, mine, "", ("replace", "/spec/groups/them/roles", []))
    await bound(paasing, mine, admin=None)


@pytest.mark.check("p-19")
async def test_a_group_that_leaves_the_paas_is_gone(mine: str, paasing: Paasing) -> None:
    """The Group, and its name in all bindings."""
    await paasing.edit(PAAS, mine, "", ("remove", "/spec/groups/them", None))
    await bound(paasing, mine, view=sorted([f"{mine}-us", "others"]))
    await has_users(paasing, f"{mine}-them", None)
    assert await named(paasing, f"{mine}-them", mine) == []


@pytest.mark.check("p-20")
async def test_a_group_can_become_a_query(mine: str, paasing: Paasing) -> None:
    """The name out of the query takes the place of the Group, which goes."""
    await paasing.edit(PAAS, mine, "", ("add", "/spec/groups/them/query", "CN=ext-them,OU=x"))
    await bound(paasing, mine, view=sorted(["ext-them", f"{mine}-us", "others"]))
    await has_users(paasing, f"{mine}-them", None)


@pytest.mark.check("p-21")
async def test_a_key_can_be_renamed(mine: str, paasing: Paasing) -> None:
    """Group and subjects have the new name, and nothing the old one."""
    spec = example()
    spec["groups"]["they"] = spec["groups"].pop("them")
    await replaced(paasing, mine, **spec)
    await together(has_users(paasing, f"{mine}-they", ["friend"]), has_users(paasing, f"{mine}-them", None))
    await bound(paasing, mine, view=sorted([f"{mine}-they", f"{mine}-us", "others"]))


@pytest.mark.check("p-24")
@pytest.mark.check("p-25")
@pytest.mark.check("p-62")
async def test_bindings_follow_the_mappings(mine: str, paasing: Paasing) -> None:
    """A role that loses its mapping counts as default; what no mapping names any more is bound nowhere, in no Paas."""
    mappings = CONFIG["rolemappings"]
    generation = (await paasing.get(PAAS, mine))["metadata"]["generation"]
    try:
        await paasing.config(rolemappings={role: found for role, found in mappings.items() if role != "edit"})
        await bound(paasing, mine, edit=None)
        await paasing.says(mine, "tenantry.dev/RightsWarnings", "UnknownRole", "'edit'")
        await paasing.config(rolemappings={**mappings, "default": ["edit"]})
        await bound(paasing, mine, edit=sorted([f"{mine}-us", "others"]), view=[f"{mine}-them", f"{mine}-us"])
        only_view = {"default": ["view"], "view": ["view"], "admin": mappings["admin"]}
        await paasing.config(rolemappings=only_view)
        await bound(paasing, mine, edit=None)
        assert (await paasing.get(PAAS, mine))["metadata"]["generation"] == generation
    finally:
        await paasing.config()
    await bound(paasing, mine)


@pytest.mark.check("p-27")
@pytest.mark.check("p-28")
async def test_what_somebody_does_to_bindings_is_undone(mine: str, paasing: Paasing) -> None:
    """A further subject goes, a deleted binding comes back, and a label of ours that is taken off."""
    eve = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "eve"}
    await paasing.edit(ROLE_BINDING, "paas-admin", f"{mine}-cicd", ("add", "/subjects/-", eve))
    await paasing.admin.delete(ROLE_BINDING, "paas-view", f"{mine}-prod")
    label = f"/metadata/labels/{MANAGED_BY_PAAS.replace('/', '~1')}"
    await paasing.edit(ROLE_BINDING, "paas-edit", f"{mine}-test", ("remove", label, None))
    await bound(paasing, mine)


@pytest.mark.check("p-114")
async def test_a_binding_to_another_role_becomes_what_is_declared(mine: str, paasing: Paasing) -> None:
    """Also where it has our marks."""
    live = await paasing.get(ROLE_BINDING, "paas-edit", f"{mine}-cicd")
    marks = {part: live["metadata"][part] for part in ("labels", "annotations")}
    await paasing.admin.delete(ROLE_BINDING, "paas-edit", f"{mine}-cicd")
    await eventually(lambda: _swapped(paasing, mine, marks), within=paasing.eventually_s, what="it is replaced by hand")
    await bound(paasing, mine)
    assert (await paasing.get(ROLE_BINDING, "paas-edit", f"{mine}-cicd"))["roleRef"]["name"] == "edit"


async def _swapped(paasing: Paasing, name: str, marks: dict[str, dict[str, str]]) -> bool:
    """Put a binding to another role in the place of one, whoever is there first."""
    await paasing.admin.delete(ROLE_BINDING, "paas-edit", f"{name}-cicd")
    body = binding("paas-edit", f"{name}-cicd", "admin", f"{name}-them", **marks)
    try:
        await paasing.admin.create(ROLE_BINDING, body)
    except AlreadyExists:
        return False  # the function was faster
    return True


@pytest.mark.check("p-86")
@pytest.mark.check("p-73")
async def test_a_namespace_can_be_restricted_to_groups(system: Knative, paasing: Paasing) -> None:
    """To those and never to all, also when the last one leaves the Paas; a PaasNS in it is restricted too."""
    name = paas_name()
    groups = {"us": {"users": ["me"]}, "them": {}}
    namespaces = {"cicd": {"groups": ["us"]}, "test": {}}
    with pytest.raises(RefusedError, match="nobody"):
        await paasing.paas(name, groups=groups, namespaces={"cicd": {"groups": ["nobody"]}})
    await paasing.paas(name, groups=groups, namespaces=namespaces)
    one, both = {"paas-view": [f"{name}-us"]}, {"paas-view": [f"{name}-them", f"{name}-us"]}
    await together(paasing.bound(f"{name}-cicd", one), paasing.bound(f"{name}-test", both))
    await paasing.paas_ns(f"{name}-cicd", "plain")
    await paasing.bound(f"{name}-plain", one)
    await sweep(system)
    await paasing.bound(f"{name}-plain", one)

    left = obj(PAAS, name, spec={"quota": {}, "groups": {"them": {}}, "namespaces": namespaces})
    await anyway(paasing, (SHAPE,), PAAS, left)
    await together(*(paasing.bound(f"{name}-{each}", {}) for each in ("cicd", "plain")))
    await paasing.bound(f"{name}-test", {"paas-view": [f"{name}-them"]})
    await paasing.says(name, "tenantry.dev/Rights", "UnknownGroup", "'us'", status="False")


@pytest.mark.check("p-115")
@pytest.mark.check("p-116")
async def test_without_a_default_or_groups_nobody_is_bound(system: Knative, paasing: Paasing) -> None:
    """A group without roles exists and is bound nowhere; a Paas without groups has no binding of ours."""
    one, other = paas_name(), paas_name()
    mappings = {role: found for role, found in CONFIG["rolemappings"].items() if role != "default"}
    try:
        await paasing.config(rolemappings=mappings)
        await paasing.paas(one, groups={"us": {"users": ["me"]}, "ad": {"roles": ["admin"]}}, namespaces={"a": {}})
        await paasing.paas(other, namespaces={"a": {}}, quota={"limits.cpu": "1"})
        roles = {f"paas-{role}": [f"{one}-ad"] for role in mappings["admin"]}
        await together(paasing.bound(f"{one}-a", roles), has_users(paasing, f"{one}-us", ["me"]), paasing.ready(other))
        assert await paasing.bindings(f"{other}-a") == {}
    finally:
        await paasing.config()


@pytest.mark.check("p-72")
async def test_of_several_paas_ns_for_a_name_the_first_counts(system: Knative, paasing: Paasing) -> None:
    """However often it is looked at: its namespace names no other group at any moment, and the later two are told."""
    name = paas_name()
    groups = {key: {"users": [key], "roles": ["edit"]} for key in ("us", "them")}
    await paasing.paas(name, groups=groups, namespaces={"one": {}, "two": {}}, quota={"pods": "9"})
    await paasing.has_namespaces(name, "one", "two")
    edits = [f"paas-{role}" for role in CONFIG["rolemappings"]["edit"]]
    us, both = (dict.fromkeys(edits, subjects) for subjects in ([f"{name}-us"], [f"{name}-them", f"{name}-us"]))
    async with history(paasing.admin, ROLE_BINDING) as seen:
        await paasing.paas_ns(f"{name}-one", "secret", groups=["us"])
        await paasing.bound(f"{name}-secret", us)
        await paasing.paas_ns(f"{name}-two", "secret")
        await paasing.paas_ns(f"{name}-one", "two", groups=["us"])
        for paas_ns, home in (("secret", f"{name}-two"), ("two", f"{name}-one")):
            await paasing.says(paas_ns, "Ready", "NamespaceConflict", kind=PAAS_NS, namespace=home, status="False")
        await paasing.bound(f"{name}-two", both)
        for _ in range(20):
            await together(*(forced(system, function, "paas", f"paas/{name}") for function in FUNCTIONS))
        await sweep(system)
        await eventually(lambda: _seen_in(seen, f"{name}-secret"), within=5, what="the watch has seen the bindings")
    there = [each.found for each in seen if each.found["metadata"]["namespace"] == f"{name}-secret"]
    assert {group for each in there for group in group_names(each)} == {f"{name}-us"}
    await together(paasing.bound(f"{name}-secret", us), paasing.bound(f"{name}-two", both))
    await paasing.says("secret", "Ready", "Reconciling", kind=PAAS_NS, namespace=f"{name}-one", status="True")


async def _seen_in(seen: list[Change], namespace: str) -> bool:
    return len([each for each in seen if each.found["metadata"]["namespace"] == namespace]) >= len(CONFIG["rolemappings"]["edit"])


@pytest.mark.check("p-167")
async def test_a_tenant_binds_whom_he_likes_and_changes_nothing_of_ours(
    mine: str, paasing: Paasing, admitting: Admitting
) -> None:
    """An admin of a namespace makes RoleBindings of his own, none called paas-*; what he does to ours is undone."""
    place, tenant = f"{mine}-cicd", f"tenant-{mine}"
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": tenant}
    await paasing.admin.create(ROLE_BINDING, {**binding("tenant", place, "admin"), "subjects": [subject]})
    group = ROLE_BINDING.group
    await eventually(lambda: may(paasing.admin, tenant, "create", "rolebindings", place, group=group), within=CONTROLLER_S)

    async def ask(method: str, name: str = "", body: Any = None, content: str = JSON) -> Answer:
        return await admitting.ask(method, ROLE_BINDING.path(place, name), body, user=tenant, content=content)

    assert (await ask("POST", body=binding("own", place, "view", "friends"))).status == 201
    for name in ("paas-mine", "paas-cluster-admin"):
        refused = await ask("POST", body=binding(name, place, "view", "friends"))
        assert f"metadata.name: {name}" in refused.message, refused
    marks = {"metadata": {"labels": {MANAGED_BY_PAAS: None}, "annotations": {PAAS_UID: None}}}
    assert "written by the functions of Tenantry" in (await ask("PATCH", "paas-view", marks, MERGE)).message
    assert (await ask("PATCH", "paas-view", {"subjects": [subject]}, MERGE)).status == 200
    assert (await ask("DELETE", "paas-edit")).status == 200
    await bound(paasing, mine)
    assert (await paasing.get(ROLE_BINDING, "own", place))["subjects"][0]["name"] == "friends"
