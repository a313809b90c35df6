"""What is told of rights of Paas, and what is left alone: conflicts, roles, ways to manage users, leftovers, the fence."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from admitting import Admitting, paas
from paasing import CONFIG, Paasing, paas_name, together
from people import token
from righting import binding, has_users, named, refused, righting, sweep, versions
from times import LEFT_TO_MAKE_WHOLE, POLICY_S

from tenantry.api import Api
from tenantry.api.errors import AdmissionDenied, RefusedError
from tenantry.local.knative import Knative
from tenantry.model.conditions import find_condition
from tenantry.model.kinds import CLUSTER_ROLE, NAMESPACE, ROLE_BINDING, Object
from tenantry.model.paas.names import GROUP, MANAGED_BY_PAAS, PAAS, PAAS_UID
from tenantry.testing import eventually
from tenantry.testing.objects import obj

pytestmark = LEFT_TO_MAKE_WHOLE

RIGHTS, WARNED = "tenantry.dev/Rights", "tenantry.dev/RightsWarnings"
IDENTITY = "rbac-aggregation-paas"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(flawlessly: Callable[..., Awaitable[Knative]], admin: Api) -> Knative:
    """Namespaces and rights, with OpenShift's kinds."""
    return await righting(flawlessly, admin, "os")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def thief(system: Knative, identity: Callable[..., Awaitable[Path]]) -> AsyncIterator[Api]:
    """Whoever has the token of the function."""
    async with await Api.connect(field_manager="thief", kubeconfig=await identity(IDENTITY)) as api:
        yield api


@pytest.fixture
async def mine(system: Knative, paasing: Paasing) -> str:
    """A small Paas with its rights."""
    name = paas_name()
    await paasing.paas(name, groups={"us": {"users": ["me"], "roles": ["edit"]}, "them": {}}, namespaces={"a": {}, "b": {}})
    roles = {f"paas-{role}": [f"{name}-us"] for role in CONFIG["rolemappings"]["edit"]}
    await together(*(paasing.bound(f"{name}-{each}", {**roles, "paas-view": [f"{name}-them"]}) for each in "ab"))
    return name


@pytest.mark.check("p-45")
async def test_a_role_that_is_not_mapped(system: Knative, paasing: Paasing) -> None:
    """It counts as default and is warned of; or it gives nothing and is an error; or it is refused.  The rest is there."""
    name = paas_name()
    groups = {"us": {"roles": ["viewer"]}, "ad": {"roles": ["edit"]}}
    await paasing.paas(name, groups=groups, namespaces={"a": {}})
    edits = {f"paas-{role}": [f"{name}-ad"] for role in CONFIG["rolemappings"]["edit"]}
    await paasing.bound(f"{name}-a", {**edits, "paas-view": [f"{name}-us"]})
    await paasing.says(name, WARNED, "UnknownRole", "'viewer'", status="True")
    await paasing.ready(name)
    try:
        await paasing.config(unknownRolePolicy="Ignore")
        await paasing.bound(f"{name}-a", edits)
        await paasing.says(name, "HasErrors", "UnknownRole", "'viewer'", status="True")
        await paasing.config(unknownRolePolicy="Reject")
        await refused(paasing, "viewer", groups=groups)
    finally:
        await paasing.config()


@pytest.mark.check("p-112")
async def test_a_cluster_role_that_does_not_exist_is_bound(system: Knative, paasing: Paasing) -> None:
    """It is told, until a sweep finds it."""
    name, role = paas_name(), f"role-{token()}"
    try:
        await paasing.config(rolemappings={**CONFIG["rolemappings"], "odd": [role]})
        await paasing.paas(name, groups={"us": {"users": ["me"], "roles": ["odd"]}}, namespaces={"a": {}})
        await paasing.bound(f"{name}-a", {f"paas-{role}": [f"{name}-us"]})
        await paasing.says(name, WARNED, "ClusterRoleMissing", role, status="True")
        await paasing.admin.create(CLUSTER_ROLE, obj(CLUSTER_ROLE, role, rules=[]))
        await sweep(system)

        def mended(live: Object) -> bool:
            told = find_condition(live, "Warnings")
            return find_condition(live, WARNED) is None and told is not None and role not in told["message"]

        await paasing.until(PAAS, name, "", mended)
    finally:
        await paasing.config()


@pytest.mark.check("p-113")
async def test_a_binding_of_others_is_left_alone(system: Knative, paasing: Paasing) -> None:
    """It has a name of ours and no proof: it is told, and the other namespaces are bound."""
    name = paas_name()
    await paasing.paas(name, namespaces={"a": {}, "b": {}})
    await paasing.has_namespaces(name, "a", "b")
    theirs = await paasing.admin.create(ROLE_BINDING, binding("paas-view", f"{name}-a", "view", "root"))
    await paasing.paas(name, groups={"us": {"users": ["me"]}}, namespaces={"a": {}, "b": {}})
    await paasing.bound(f"{name}-b", {"paas-view": [f"{name}-us"]})
    await paasing.says(name, RIGHTS, "BindingConflict", f"{name}-a/paas-view", status="False")
    await sweep(system)
    assert await paasing.get(ROLE_BINDING, "paas-view", f"{name}-a") == theirs


@pytest.mark.check("p-55")
async def test_a_group_that_the_api_refuses_is_not_bound(system: Knative, paasing: Paasing) -> None:
    """A CRD takes no underscore; the other groups are there. Administrators can have such a key refused at once."""
    name = paas_name()
    groups = {"my_group": {"users": ["me"]}, "us": {"users": ["you"]}}
    try:
        await paasing.config(validations={"paas": {"groupName": "^[a-z0-9-]*$"}})
        await refused(paasing, 'spec.groups["my_group"] does not match ^[a-z0-9-]*$', groups=groups)
        await paasing.config()
        body = obj(PAAS, name, spec={"quota": {}, "groups": groups, "namespaces": {"a": {}}})
        await eventually(lambda: admitted(paasing, body), within=POLICY_S, what="the expression is forgotten")
    finally:
        await paasing.config()
    await paasing.bound(f"{name}-a", {"paas-view": [f"{name}-us"]})
    await paasing.says(name, RIGHTS, "GroupRefused", "my_group", status="False")
    await sweep(system)
    assert await named(paasing, f"{name}-my_group", name) == []
    assert await paasing.users(f"{name}-my_group") is None
    groups_told = [(each["key"], each["managed"]) for each in (await paasing.get(PAAS, name))["status"]["groups"]]
    assert groups_told == [("my_group", False), ("us", True)]


async def admitted(paasing: Paasing, body: Object) -> bool:
    """Whether an object could be made."""
    try:
        await paasing.admin.apply(PAAS, body)
    except AdmissionDenied:
        return False
    return True


@pytest.mark.check("p-94")
async def test_no_function_runs_an_expression(system: Knative, paasing: Paasing) -> None:
    """One that would keep Python busy for years over a key that is there: that Paas, and others, are worked on as ever."""
    name, other = paas_name(), paas_name()
    key = "a" * 188 + "-b"
    await paasing.paas(name, groups={key: {"users": ["me"]}}, namespaces={"a": {}}, quota={"pods": "9"})
    await paasing.bound(f"{name}-a", {"paas-view": [f"{name}-{key}"]})
    slow = "^(a+)+$"
    try:
        every = dict.fromkeys(("name", "groupName", "namespaceName", "requestor", "allowedQuotas"), slow)
        await paasing.config(validations={"paas": {**every, "name": "", "allowedQuotas": ""}, "paasNs": {"name": slow}})
        await refused(paasing, f"does not match {slow}", groups={key: {}})
        await paasing.edit(PAAS, name, "", ("add", "/spec/groups/aaa", {"users": ["you"]}))
        await paasing.paas(other, groups={"a" * 150: {"users": ["me"]}}, namespaces={"aa": {}}, quota={"pods": "9"})
        await together(
            paasing.bound(f"{name}-a", {"paas-view": [f"{name}-aaa", f"{name}-{key}"]}),
            paasing.bound(f"{other}-aa", {"paas-view": [f"{other}-{'a' * 150}"]}),
            paasing.ready(name),
            paasing.ready(other),
        )
    finally:
        await paasing.config()


@pytest.mark.check("p-47")
async def test_users_beside_a_query(system: Knative, paasing: Paasing, admitting: Admitting) -> None:
    """They are ignored, and that is said when it is written and afterwards: the name is the query's, and no Group has them."""
    name = paas_name()
    groups = {"ext": {"query": f"CN=ext-{name},OU=x", "users": ["friend"]}, "us": {"users": ["me"]}}
    answer = await admitting.create(paas(name, groups=groups, namespaces={"one": {}}, quota={"limits.cpu": 1}), dry=False)
    assert answer.status == 201, answer
    assert "spec.groups[ext].users: ignored" in answer.told
    await paasing.bound(f"{name}-one", {"paas-view": [f"ext-{name}", f"{name}-us"]})
    await paasing.ready(name)
    await paasing.says(name, "Warnings", "QueryAndUsers", "'ext'", status="True")
    await sweep(system)
    mine = (await paasing.admin.list(GROUP, label_selector=f"{MANAGED_BY_PAAS}={name}")).items
    assert [(each["metadata"]["name"], each["users"]) for each in mine] == [(f"{name}-us", ["me"])]
    for each in (f"ext-{name}", f"{name}-ext"):
        assert await paasing.admin.get(GROUP, each) is None


@pytest.mark.check("p-117")
async def test_users_are_allowed_where_nothing_is_said(system: Knative, paasing: Paasing) -> None:
    """And where it says allow: no warning."""
    for changes in ({}, {"feature_flags": {"group_user_management": "allow"}}):
        name = paas_name()
        await paasing.config(**changes)
        await paasing.paas(name, groups={"us": {"users": ["me", "you"]}}, namespaces={"a": {}}, quota={"limits.cpu": "1"})
        await has_users(paasing, f"{name}-us", ["me", "you"])
        await paasing.bound(f"{name}-a", {"paas-view": [f"{name}-us"]})
        await paasing.says(name, "Warnings", "Reconciling", status="False")
    await paasing.config()


@pytest.mark.check("p-118")
async def test_users_are_discouraged(system: Knative, paasing: Paasing, admitting: Admitting) -> None:
    """The Paas is admitted with a warning for each group with users; all is there, and it is told."""
    name = paas_name()
    groups = {"us": {"users": ["me"]}, "them": {"users": ["you"]}, "others": {"query": "CN=others"}, "nobody": {}}
    body = paas(name, groups=groups, namespaces=["a"], quota={"pods": "9"})
    words = ("spec.groups[them].users", "spec.groups[us].users", "users are going to be managed elsewhere")
    try:
        await paasing.config(feature_flags={"group_user_management": "warn"})
        await eventually(lambda: admitting.admitted(body), lambda found: words[-1] in found, within=POLICY_S)
        said = (await admitting.create(body, dry=False)).told
        assert [each for each in words if each not in said] == []
        assert "[others]" not in said
        assert "[nobody]" not in said
        names = sorted([*(f"{name}-{key}" for key in ("nobody", "them", "us")), "others"])
        await together(
            paasing.bound(f"{name}-a", {"paas-view": names}),
            has_users(paasing, f"{name}-us", ["me"]),
            has_users(paasing, f"{name}-them", ["you"]),
        )
        for type_ in (WARNED, "Warnings"):
            warning = await paasing.says(name, type_, "GroupUsersDiscouraged", "'us'", status="True")
            assert "'them'" in warning["message"]
            assert "'nobody'" not in warning["message"]
        await paasing.ready(name)
    finally:
        await paasing.config()


async def test_rights_of_a_paas_that_is_gone_go(mine: str, system: Knative, paasing: Paasing) -> None:
    """p-192, rights: with finalizers forced off nothing was cleaned up, and the next sweep does it."""
    await system.functions[IDENTITY].stop()
    try:
        await paasing.admin.delete(PAAS, mine)
        await paasing.edit(PAAS, mine, "", ("remove", "/metadata/finalizers", None))
        await paasing.away(PAAS, mine)
    finally:
        await system.functions[IDENTITY].start()
    await sweep(system)
    await together(*(paasing.bound(f"{mine}-{each}", {}) for each in "ab"))
    await has_users(paasing, f"{mine}-us", None)


@pytest.mark.check("p-71")
async def test_at_rest_no_binding_is_written(system: Knative, paasing: Paasing) -> None:
    """Five groups on one role: sorted, and as they are after twenty runs and sweeps."""
    name = paas_name()
    groups = {key: {"users": [key]} for key in ("e", "b", "d", "a", "c")}
    await paasing.paas(name, groups=groups, namespaces={"a": {}})
    await paasing.bound(f"{name}-a", {"paas-view": [f"{name}-{key}" for key in "abcde"]})
    await paasing.says(name, RIGHTS, "Reconciling", status="True")
    before = await versions(paasing, f"{name}-a")
    for _ in range(20):
        await sweep(system)
    await system.functions[IDENTITY].stop()
    await system.functions[IDENTITY].start()
    await sweep(system)
    assert await versions(paasing, f"{name}-a") == before


# -- the fence -------------------------------------------------------------------------------------------------------


def ours(name: str, place: str, role: str, paas: Object, *groups: str, **changes: Any) -> Object:
    """A RoleBinding as the function writes it."""
    marks = {"labels": {MANAGED_BY_PAAS: name}, "annotations": {PAAS_UID: paas["metadata"]["uid"]}}
    body = binding(changes.pop("called", f"paas-{role}"), place, role, *groups, **marks)
    return {**body, **changes}


@pytest.mark.check("p-78")
async def test_whoever_has_the_token_cannot_bind_what_is_not_declared(mine: str, thief: Api, paasing: Paasing) -> None:
    """No other role, name, kind of subject or namespace, no name of Kubernetes, no Group without a mark, no Secret."""
    paas, place = await paasing.get(PAAS, mine), f"{mine}-a"
    account = {"kind": "ServiceAccount", "name": "default", "namespace": "default"}
    user = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "eve"}
    elsewhere = f"other-{token()}"
    await paasing.namespace(elsewhere)
    for body in (
        ours(mine, place, "cluster-admin", paas, "eve"),
        ours(mine, place, "system:node", paas, "eve"),
        ours(mine, place, "admin", paas, "eve", called="mine"),
        ours(mine, place, "admin", paas, subjects=[account]),
        ours(mine, place, "admin", paas, subjects=[user]),
        ours(mine, place, "admin", paas, "system:authenticated"),
        ours(mine, elsewhere, "admin", paas, "eve"),
        binding("paas-admin", place, "admin", "eve"),
    ):
        with pytest.raises(AdmissionDenied):
            await thief.create(ROLE_BINDING, body, dry_run=True)
    await thief.create(ROLE_BINDING, ours(mine, place, "admin", paas, f"{mine}-us"), dry_run=True)
    with pytest.raises(AdmissionDenied):
        await thief.create(GROUP, obj(GROUP, f"g-{token()}", users=["eve"]), dry_run=True)
    with pytest.raises(RefusedError):
        await thief.request("GET", f"/api/v1/namespaces/{place}/secrets")
    with pytest.raises(RefusedError):
        await thief.delete(NAMESPACE, place)


@pytest.mark.check("p-169")
async def test_what_was_withdrawn_can_still_be_taken_away(mine: str, thief: Api, system: Knative, paasing: Paasing) -> None:
    """A role that no mapping has any more: its bindings shrink and go, and do not grow."""
    await system.functions[IDENTITY].stop()
    place = f"{mine}-a"
    try:
        await paasing.config(rolemappings={"default": ["monitoring-edit"]})
        live = await paasing.get(ROLE_BINDING, "paas-view", place)
        wide = {**live, "subjects": [*live["subjects"], {**live["subjects"][0], "name": "eve"}]}
        await eventually(lambda: _is_refused(thief, wide), within=POLICY_S, what="the fence knows the new mappings")
        await _put(thief, {**live, "subjects": []})
        await thief.delete(ROLE_BINDING, "paas-edit", place)
        assert await paasing.admin.get(ROLE_BINDING, "paas-edit", place) is None
    finally:
        await paasing.config()
        await system.functions[IDENTITY].start()
    await sweep(system)
    await paasing.bound(place, await paasing.bindings(f"{mine}-b"))


async def _put(api: Api, body: Object, **query: str) -> None:
    """Give a RoleBinding other subjects."""
    metadata = body["metadata"]
    steps = [{"op": "replace", "path": "/subjects", "value": body["subjects"]}]
    path = ROLE_BINDING.path(metadata["namespace"], metadata["name"])
    await api.request("PATCH", path, query, steps, "application/json-patch+json")


async def _is_refused(api: Api, body: Object) -> bool:
    try:
        await _put(api, body, dryRun="All")
    except AdmissionDenied:
        return True
    return False
