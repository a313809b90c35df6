"""The order in which rights of Paas come and go (4.21), and what goes although something else is refused or wrong."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import pytest_asyncio
from paasing import CONFIG, Paasing, example, paas_name, together
from righting import (
    CONFIGURED,
    SHAPE,
    Change,
    anyway,
    example_bindings,
    group_names,
    has_users,
    history,
    in_order,
    named,
    righting,
    sweep,
)
from times import GARBAGE_S, LEFT_TO_MAKE_WHOLE

from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.model.kinds import NAMESPACE, RESOURCE_QUOTA, ROLE_BINDING, is_terminating, labels_of
from tenantry.model.paas.names import GROUP, MANAGED_BY_PAAS, PAAS, PAAS_CONFIG, RIGHTS_FINALIZER
from tenantry.testing import eventually
from tenantry.testing.objects import obj

pytestmark = LEFT_TO_MAKE_WHOLE

RIGHTS = "tenantry.dev/Rights"
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
    await together(*(paasing.bound(f"{name}-{place}", example_bindings(name)) for place in PLACES))
    return name


async def until_gone(seen: list[Change], *groups: str) -> None:
    """Wait until the watch has seen these Groups go."""

    async def gone() -> bool:
        return {*groups} <= {change.found["metadata"]["name"] for change in seen if change.gone and change.kind == GROUP}

    await eventually(gone, within=5, what=f"the watch has seen {groups} go")


def named_after_it_was_gone(seen: list[Change], group: str, bound: set[tuple[str, str]]) -> bool:
    """Whether a binding still had a Group's name when the Group went, or got it afterwards; ``bound`` had it before."""
    gone = False
    for change in in_order(seen):
        metadata = change.found["metadata"]
        key = metadata.get("namespace", ""), metadata["name"]
        if change.kind == GROUP and metadata["name"] == group:
            gone = change.gone
        elif change.kind == ROLE_BINDING:
            (bound.discard if change.gone or group not in group_names(change.found) else bound.add)(key)
        if gone and bound:
            return True
    return False


async def bound_to(paasing: Paasing, group: str, paas: str) -> set[tuple[str, str]]:
    """The RoleBindings of a Paas that have a name."""
    found = (await paasing.admin.list(ROLE_BINDING, label_selector=f"{MANAGED_BY_PAAS}={paas}")).items
    return {(each["metadata"]["namespace"], each["metadata"]["name"]) for each in found if group in group_names(each)}


@pytest.mark.check("p-174")
async def test_a_group_goes_after_its_last_binding(mine: str, paasing: Paasing) -> None:
    """Its name is never free while a binding has it."""
    bound = await bound_to(paasing, f"{mine}-them", mine)
    assert len(bound) == len(PLACES)
    async with history(paasing.admin, ROLE_BINDING, GROUP) as seen:
        await paasing.edit(PAAS, mine, "", ("remove", "/spec/groups/them", None))
        await has_users(paasing, f"{mine}-them", None)
        await until_gone(seen, f"{mine}-them")
    assert not named_after_it_was_gone(seen, f"{mine}-them", bound)


@pytest.mark.check("p-173")
@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
async def test_a_deleted_paas_loses_its_rights_in_order(mine: str, paasing: Paasing, propagation: str) -> None:
    """No binding names a Group that is gone, and no namespace goes before the finalizer is off the Paas."""
    groups = [f"{mine}-{key}" for key in ("us", "them")]
    bound = {group: await bound_to(paasing, group, mine) for group in groups}
    async with history(paasing.admin, ROLE_BINDING, GROUP, NAMESPACE, PAAS) as seen:
        await paasing.admin.delete(PAAS, mine, propagation=propagation)
        # Kubernetes' own collector takes its finalizer off, when it knows the kind.
        await paasing.away(PAAS, mine, within=GARBAGE_S if propagation == "Foreground" else 0.0)
        await until_gone(seen, *groups)
        await eventually(lambda: _terminating(seen, mine), within=5, what="the watch has seen namespaces go")
    assert not any(named_after_it_was_gone(seen, group, bound[group]) for group in groups)
    held = True
    for change in in_order(seen):
        if change.kind == PAAS and change.found["metadata"]["name"] == mine:
            held = not change.gone and RIGHTS_FINALIZER in (change.found["metadata"].get("finalizers") or ())
        elif change.kind == NAMESPACE and labels_of(change.found).get(MANAGED_BY_PAAS) == mine:
            assert not (held and is_terminating(change.found)), change.found["metadata"]


async def _terminating(seen: list[Change], paas: str) -> bool:
    found = (change.found for change in seen if change.kind == NAMESPACE)
    return any(is_terminating(each) and labels_of(each).get(MANAGED_BY_PAAS) == paas for each in found)


@pytest.mark.check("p-175")
async def test_access_is_never_missing_when_roles_change(system: Knative, paasing: Paasing) -> None:
    """A group has both bindings between two consecutive writes in its namespace, and never neither."""
    name = paas_name()
    await paasing.paas(name, groups={"us": {"users": ["me"]}}, namespaces={"a": {}, "b": {}})
    places = [f"{name}-a", f"{name}-b"]
    await together(*(paasing.bound(place, {"paas-view": [f"{name}-us"]}) for place in places))
    edits = {f"paas-{role}": [f"{name}-us"] for role in ("edit",)}
    try:
        async with history(paasing.admin, ROLE_BINDING) as seen:
            await paasing.config(rolemappings={**CONFIG["rolemappings"], "default": ["edit"]})
            await together(*(paasing.bound(place, edits) for place in places))
            await eventually(lambda: _gone_in(seen, places), within=5, what="the watch has seen the old bindings go")
        for place in places:
            changes = [each for each in in_order(seen) if each.found["metadata"]["namespace"] == place]
            assert [(each.found["metadata"]["name"], each.gone) for each in changes] == [
                ("paas-edit", False),
                ("paas-view", True),
            ]
    finally:
        await paasing.config()


async def _gone_in(seen: list[Change], places: list[str]) -> bool:
    return {*places} <= {change.found["metadata"]["namespace"] for change in seen if change.gone}


@pytest.mark.check("p-176")
async def test_what_goes_goes_although_adding_is_refused(system: Knative, paasing: Paasing) -> None:
    """A quota on RoleBindings in one namespace stops what is added there, no withdrawal there, and nothing elsewhere."""
    name = paas_name()
    await paasing.paas(name, groups={"us": {"users": ["me"]}, "them": {"users": ["you"]}}, namespaces={"a": {}, "b": {}})
    both = {"paas-view": [f"{name}-them", f"{name}-us"]}
    await together(paasing.bound(f"{name}-a", both), paasing.bound(f"{name}-b", both))
    hard = {"count/rolebindings.rbac.authorization.k8s.io": "0"}
    await paasing.admin.create(RESOURCE_QUOTA, obj(RESOURCE_QUOTA, "full", f"{name}-a", spec={"hard": hard}))
    used = {"count/rolebindings.rbac.authorization.k8s.io"}
    await paasing.until(
        RESOURCE_QUOTA, "full", f"{name}-a", lambda found: used <= set((found.get("status") or {}).get("used", ()))
    )

    await paasing.paas(name, groups={"us": {"users": ["me"], "roles": ["edit"]}}, namespaces={"a": {}, "b": {}})
    edits = {f"paas-{role}": [f"{name}-us"] for role in CONFIG["rolemappings"]["edit"]}
    await together(paasing.bound(f"{name}-a", {}), paasing.bound(f"{name}-b", edits), has_users(paasing, f"{name}-them", None))
    await paasing.says(name, RIGHTS, "QuotaExceeded", "raise the ResourceQuota", status="False")
    await paasing.admin.delete(RESOURCE_QUOTA, "full", f"{name}-a")
    await sweep(system)
    await paasing.bound(f"{name}-a", edits)
    await paasing.says(name, RIGHTS, "Reconciling", status="True")


@pytest.mark.check("p-75")
async def test_a_mistake_stops_no_withdrawal(system: Knative, paasing: Paasing) -> None:
    """With a bad query, or a capability that nobody knows, a group that leaves is unbound, and all others are there."""
    for spec in ({"groups": {"bad": {"query": "CN="}}}, {"capabilities": {"nope": {"enabled": True}}}):
        name = paas_name()
        groups = {"us": {"users": ["me"]}, **spec.get("groups", {})}
        declared = {"quota": {}, **spec, "groups": {**groups, "them": {"users": ["you"]}}, "namespaces": {"a": {}}}
        try:
            if "capabilities" in spec:
                await paasing.config(unknownCapabilityPolicy="Reject")
            await anyway(paasing, (SHAPE, CONFIGURED), PAAS, obj(PAAS, name, spec=declared))
            await paasing.bound(f"{name}-a", {"paas-view": [f"{name}-them", f"{name}-us"]})
            left = obj(PAAS, name, spec={**declared, "groups": groups})
            await anyway(paasing, (SHAPE, CONFIGURED), PAAS, left)
            await paasing.bound(f"{name}-a", {"paas-view": [f"{name}-us"]})
            await has_users(paasing, f"{name}-them", None)
        finally:
            await paasing.config()


@pytest.mark.check("p-120")
async def test_blocked_users_lose_their_bindings_and_then_their_group(system: Knative, paasing: Paasing) -> None:
    """Queries and groups without users stay; allowed again, all is there again."""
    names = [paas_name(), paas_name()]
    groups = {"us": {"users": ["me"]}, "q": {"query": "CN=others"}, "empty": {}}
    await together(*(paasing.paas(name, groups=groups, namespaces={"a": {}}) for name in names))
    whole = {name: {"paas-view": sorted([f"{name}-empty", f"{name}-us", "others"])} for name in names}
    await together(*(paasing.bound(f"{name}-a", whole[name]) for name in names))
    bound = {name: await bound_to(paasing, f"{name}-us", name) for name in names}
    try:
        async with history(paasing.admin, ROLE_BINDING, GROUP) as seen:
            await paasing.config(feature_flags={"group_user_management": "block"})
            await together(*(has_users(paasing, f"{name}-us", None) for name in names))
            await until_gone(seen, *(f"{name}-us" for name in names))
        assert not any(named_after_it_was_gone(seen, f"{name}-us", bound[name]) for name in names)
        for name in names:
            await paasing.bound(f"{name}-a", {"paas-view": sorted([f"{name}-empty", "others"])})
            await paasing.says(name, "HasErrors", "GroupUsersBlocked", "'us'", status="True")
    finally:
        await paasing.config()
    for name in names:
        await paasing.bound(f"{name}-a", whole[name])
        await has_users(paasing, f"{name}-us", ["me"])


async def test_without_a_configuration_rights_only_go(mine: str, system: Knative, paasing: Paasing) -> None:
    """p-182, rights: nothing changes at first; a group that leaves goes, a role waits until there is one again."""
    try:
        await paasing.admin.delete(PAAS_CONFIG, "opr-paas-config")
        await paasing.says(mine, RIGHTS, "NoPaasConfig", status="False")
        await together(*(paasing.bound(f"{mine}-{place}", example_bindings(mine)) for place in PLACES))
        spec = example()
        del spec["groups"]["them"]
        await paasing.paas(mine, **spec)
        await has_users(paasing, f"{mine}-them", None)
        assert await named(paasing, f"{mine}-them", mine) == []
        await paasing.says(mine, RIGHTS, "NoPaasConfig", status="False")
    finally:
        await paasing.config()
    await paasing.says(mine, RIGHTS, "Reconciling", status="True")
    await paasing.bound(f"{mine}-cicd", {**example_bindings(mine), "paas-view": sorted([f"{mine}-us", "others"])})
