"""Rights of a Paas on plain Kubernetes, where no Groups are: names are bound all the same, or the users themselves."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio
from commanding import commanding
from explaining import act
from flawless import Calm
from paasing import Paasing, example, paas_name, together
from people import forced, may, tell, token
from righting import SHAPE, anyway, example_bindings, named, refused, righting

from tenantry.api import Api
from tenantry.engine.unit import Owner
from tenantry.local.control_plane import ControlPlane
from tenantry.local.knative import Knative
from tenantry.model.kinds import CONFIG_MAP, ROLE_BINDING
from tenantry.model.paas.names import PAAS
from tenantry.testing.audit import AuditLog
from tenantry.testing.objects import obj

RIGHTS, WARNED = "tenantry.dev/Rights", "tenantry.dev/RightsWarnings"
RIGHTS_FUNCTION = "rbac-aggregation"
PERMISSIONS = {"resource_name": "argo-service", "role": "admin", "header": "g, system:cluster-admins, role:admin\n"}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(knative: Callable[..., Awaitable[Knative]], admin: Api) -> Knative:
    """Namespaces and rights, without kinds of other systems."""
    return await righting(knative, admin, "plain")


async def test_names_are_bound_without_groups(system: Knative, paasing: Paasing) -> None:
    """p-59, rights: that nobody makes the users members is told, and is no error."""
    name = paas_name()
    await paasing.paas(name, **example())
    await together(*(paasing.bound(f"{name}-{each}", example_bindings(name)) for each in ("cicd", "test", "prod", "argocd")))
    await paasing.says(name, WARNED, "QueryAndUsers", "them, us")
    await paasing.says(name, RIGHTS, "Reconciling", status="True")


async def test_one_function_says_which_groups_there_are(system: Knative, paasing: Paasing, calm: Calm) -> None:
    """In the status no Group is managed where none can be made, and nobody writes that again and again (1.4)."""
    name = paas_name()
    await paasing.paas(name, **example())
    await paasing.bound(f"{name}-cicd", example_bindings(name))
    await calm(system)
    before = await paasing.get(PAAS, name)
    names = {"others": "others", "them": f"{name}-them", "us": f"{name}-us"}
    assert before["status"]["groups"] == [{"key": key, "name": called, "managed": False} for key, called in names.items()]
    await calm(system)
    assert (await paasing.get(PAAS, name))["status"] == before["status"]


async def test_a_binding_as_it_was_is_looked_at_by_its_name(system: Knative, paasing: Paasing, audit_log: AuditLog) -> None:
    """An event that names a binding, and no state of it, costs two reads where the last run saw the binding as it is."""
    name = paas_name()
    place = f"{name}-a"
    await paasing.paas(name, groups={"us": {"users": ["me"]}}, namespaces={"a": {}})
    await paasing.bound(place, {"paas-view": [f"{name}-us"]})
    await paasing.says(name, "Ready", "Reconciling", status="True")
    for owner in (Owner("paas", name), Owner("paas-part", name, place)):
        await forced(system, RIGHTS_FUNCTION, "paas", str(owner))
    before = _requests(audit_log, place)
    await tell(system, RIGHTS_FUNCTION, ROLE_BINDING, "paas-view", place)
    assert _requests(audit_log, place)[len(before) :] == [f"get {place}", "get paas-view"]


def _requests(audit_log: AuditLog, namespace: str) -> list[str]:
    """What the function asked for in a namespace: verbs and names."""
    asked = ((each["verb"], each["objectRef"]) for each in audit_log.of(f"{RIGHTS_FUNCTION}-paas") if each.get("objectRef"))
    return [f"{verb} {at.get('name', at['resource'])}" for verb, at in asked if at.get("namespace") == namespace]


@pytest.mark.check("p-104")
async def test_users_can_be_bound_in_place_of_groups(system: Knative, paasing: Paasing) -> None:
    """But for those whose name begins with system:, which is told; changed back, the names of groups."""
    name = paas_name()
    groups = {"us": {"users": ["you", "me"]}, "q": {"query": "CN=q"}}
    await paasing.paas(name, groups=groups, namespaces={"a": {}})
    await paasing.bound(f"{name}-a", {"paas-view": [f"{name}-us", "q"]})
    try:
        await paasing.config(groupFallback="Users")
        await paasing.bound(f"{name}-a", {"paas-view": ["q", "me", "you"]})
        found = await paasing.get(ROLE_BINDING, "paas-view", f"{name}-a")
        assert [each["kind"] for each in found["subjects"]] == ["Group", "User", "User"]
        groups["us"]["users"] = ["you", "me", "system:kube-scheduler"]
        await anyway(paasing, (SHAPE,), PAAS, obj(PAAS, name, spec={"quota": {}, "groups": groups, "namespaces": {"a": {}}}))
        await paasing.says(name, RIGHTS, "InvalidGroup", "system:kube-scheduler", status="False")
        await paasing.bound(f"{name}-a", {"paas-view": ["q", "me", "you"]})
    finally:
        await paasing.config()
    await paasing.bound(f"{name}-a", {"paas-view": [f"{name}-us", "q"]})


async def test_a_user_of_two_groups_leaves_both_as_explain_says(
    system: Knative, paasing: Paasing, control_plane: ControlPlane
) -> None:
    """Where users are bound and two groups give the same, what ends it is to leave both; then the API server denies it."""
    name, me = paas_name(), f"me-{token()}"
    groups = {key: {"users": [me, "you"], "roles": ["view"]} for key in ("them", "us")}
    command = commanding(control_plane)
    try:
        await paasing.config(groupFallback="Users")
        await paasing.paas(name, groups=groups, namespaces={"a": {}})
        await paasing.bound(f"{name}-a", {"paas-view": sorted([me, "you"])})
        code, output, errors = await command("explain", "can", me, "list", "pods", "-n", f"{name}-a", "-o", "json")
        assert code == 0, errors
        (path,) = json.loads(output)["paths"]
        end = path["madeBy"][0]["ends"][0]
        assert end.endswith(f"  # take {me} out of spec.groups.them.users; take {me} out of spec.groups.us.users")
        await act(paasing.admin, end)
        await paasing.bound(f"{name}-a", {"paas-view": ["you"]})
        assert not await may(paasing.admin, me, "list", "pods", f"{name}-a")
    finally:
        await paasing.config()


@pytest.mark.check("p-55")
async def test_a_name_is_bound_that_no_object_could_have(system: Knative, paasing: Paasing) -> None:
    """Without an expression for keys the name is bound; with one the key is refused."""
    name = paas_name()
    await paasing.paas(name, groups={"my_group": {"users": ["me"]}}, namespaces={"a": {}})
    await paasing.bound(f"{name}-a", {"paas-view": [f"{name}-my_group"]})
    try:
        await paasing.config(validations={"paas": {"groupName": "^[a-z0-9-]*$"}})
        await refused(paasing, 'spec.groups["my_group"] does not match ^[a-z0-9-]*$', groups={"my_group": {"users": ["me"]}})
    finally:
        await paasing.config()


async def test_a_query_comes_before_a_generated_name(system: Knative, paasing: Paasing) -> None:
    """Without objects too: the name means what the query says, and is bound once for the other Paas when it is free."""
    asking, name = paas_name(), paas_name()
    await paasing.paas(asking, groups={"x": {"query": f"CN={name}-us"}}, namespaces={"a": {}})
    await paasing.bound(f"{asking}-a", {"paas-view": [f"{name}-us"]})
    await paasing.paas(name, groups={"us": {"users": ["me"]}}, namespaces={"a": {}})
    await paasing.says(name, RIGHTS, "GroupConflict", f"{name}-us", status="False")
    assert await named(paasing, f"{name}-us", name) == []
    await paasing.paas(asking, groups={}, namespaces={"a": {}})
    await paasing.bound(f"{name}-a", {"paas-view": [f"{name}-us"]})
    assert await named(paasing, f"{name}-us", asking) == []


# -- the policy of Argo CD -------------------------------------------------------------------------------------------


@pytest.fixture
async def permissions(system: Knative, paasing: Paasing) -> Any:
    """The PaasConfig with argopermissions."""
    await paasing.config(argopermissions=PERMISSIONS)
    yield PERMISSIONS
    await paasing.config()


def policy(name: str, *keys: str) -> str:
    """The header, then the groups."""
    names = sorted(key if key == "others" else f"{name}-{key}" for key in keys)
    return "\n".join([PERMISSIONS["header"].strip(), *(f"g, {each}, role:admin" for each in names)])


async def has_policy(paasing: Paasing, name: str, text: str) -> dict[str, str]:
    """Wait until the ConfigMap has this policy; returns its data."""
    found = await paasing.until(
        CONFIG_MAP, "argocd-rbac-cm", f"{name}-argocd", lambda live: live.get("data", {}).get("policy.csv") == text
    )
    data: dict[str, str] = found["data"]
    return data


@pytest.mark.check("p-142")
@pytest.mark.check("p-143")
async def test_argo_cd_gets_its_policy(permissions: dict[str, str], paasing: Paasing) -> None:
    """Foreign keys stay; what somebody changes of ours is put back; what others set before is not taken."""
    name, other = paas_name(), paas_name()
    await paasing.paas(name, **example())
    text = policy(name, "them", "us", "others")
    data = await has_policy(paasing, name, text)
    assert data == {"policy.csv": text, "policy.default": "", "scopes": "[groups]"}
    edits = [("add", "/data/mine", "x"), ("replace", "/data/policy.csv", "g, me, role:admin")]
    await paasing.edit(CONFIG_MAP, "argocd-rbac-cm", f"{name}-argocd", *edits)
    assert (await has_policy(paasing, name, text))["mine"] == "x"

    spec = {"groups": {"us": {"users": ["me"]}}, "namespaces": {"a": {}}}
    await paasing.paas(other, **spec)
    await paasing.bound(f"{other}-a", {"paas-view": [f"{other}-us"]})
    await paasing.config()  # so that nothing is written before somebody else has written
    await paasing.paas(other, **spec, capabilities={"argocd": {"enabled": True}})
    await paasing.bound(f"{other}-argocd", {"paas-view": [f"{other}-us"]})
    before = obj(CONFIG_MAP, "argocd-rbac-cm", f"{other}-argocd", data={"policy.csv": "g, root, role:admin"})
    before = await paasing.admin.create(CONFIG_MAP, before)
    await paasing.config(argopermissions=permissions)
    await paasing.says(other, RIGHTS, "ArgoPolicyConflict", "policy.csv", status="False")
    assert await paasing.get(CONFIG_MAP, "argocd-rbac-cm", f"{other}-argocd") == before


@pytest.mark.check("p-144")
async def test_names_that_would_add_to_the_policy_are_left_out(permissions: dict[str, str], paasing: Paasing) -> None:
    """They are bound, and that is told; without an Argo CD there is no policy."""
    name, without = paas_name(), paas_name()
    groups = {"us": {"users": ["me"]}, "doe": {"query": r"CN=Doe\, John,OU=x"}}
    await paasing.paas(name, groups=groups, capabilities={"argocd": {"enabled": True}})
    await paasing.paas(without, groups={"us": {}}, namespaces={"a": {}})
    await has_policy(paasing, name, policy(name, "us"))
    await paasing.bound(f"{name}-argocd", {"paas-view": ["Doe, John", f"{name}-us"]})
    await paasing.says(name, RIGHTS, "InvalidGroup", "Doe, John", status="False")
    await paasing.bound(f"{without}-a", {"paas-view": [f"{without}-us"]})
    found = (await paasing.admin.list(CONFIG_MAP, f"{without}-a")).items
    assert "argocd-rbac-cm" not in {each["metadata"]["name"] for each in found}
