"""Roles in the members of NamespaceScopes to which somebody else is bound are not filled (a-38)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from attackers import Attackers
from consenting import GROUP, MANAGED, alone, in_force, looked, told
from operators import GET_LIST, Operators, chosen, name_of, template
from watching import history

from tenantry.api import Api
from tenantry.api.errors import Forbidden
from tenantry.local.knative import Knative
from tenantry.model.kinds import NAMESPACE_SCOPE, RESOURCE_QUOTA, ROLE, ROLE_BINDING, Object
from tenantry.testing.fault import Forward, Predicate, on
from tenantry.testing.objects import obj
from tenantry.testing.wire import Request, Response

QUOTAS: Object = {"apiGroups": [""], "resources": ["resourcequotas"], "verbs": ["create", "delete", "get", "list"]}
"""What a member consents to, and who administrates a namespace has not: nobody may raise his own quota."""


def bound(name: str, to: str, namespace: str, labels: dict[str, str] | None = None) -> Object:
    """A RoleBinding of all attackers to a Role."""
    reference = {"apiGroup": ROLE.group, "kind": "Role", "name": to}
    return obj(ROLE_BINDING, name, namespace, labels=labels, roleRef=reference, subjects=[GROUP])


async def raises_his_quota(attacker: Api, namespace: str) -> bool:
    """Whether an attacker gets what the member consents to, by trying."""
    try:
        await attacker.create(RESOURCE_QUOTA, obj(RESOURCE_QUOTA, "mine", namespace, spec={}))
    except Forbidden:
        return False
    await attacker.delete(RESOURCE_QUOTA, "mine", namespace)
    return True


@dataclass
class Quicker:
    """Somebody who acts right before a request of the function is carried out, once."""

    where: Predicate
    act: Callable[[], Awaitable[object]]
    acted: bool = False

    async def meet(self, request: Request, forward: Forward) -> Response | None:
        """Act; the request goes on as it was."""
        del forward
        if not self.acted and self.where(request):
            self.acted = True
            await self.act()
        return None


@pytest.mark.one_variant("name")
@pytest.mark.check("a-38")
@pytest.mark.parametrize("name", ["quick", MANAGED], ids=["beside-ours", "in-place-of-ours"])
async def test_who_is_quicker_than_the_filling_does_not_keep_it(
    own: Operators, attackers: Attackers, identity: Callable[..., Awaitable[Path]], tmp_path: Path, name: str
) -> None:
    """A binding that is made between our look and our write gets what is written, and loses it at the next look."""
    place = MANAGED, own.member(1)
    async with alone(identity, tmp_path) as (looks, proxy):
        await own.begin(1, consent=False)
        await own.consent(own.member(1), [GET_LIST])
        attacker = await attackers.someone("owner", own.member(1))
        await own.scope(1)
        await looks(own)
        before, _ = await own.given(1, MANAGED)
        await own.consent(own.member(1))

        async def binds() -> None:
            if name == MANAGED:
                await attacker.delete(ROLE_BINDING, *place)
            await attacker.create(ROLE_BINDING, bound(name, *place))

        quick = Quicker(on("roles", MANAGED, verb="apply"), binds)
        proxy.faults.append(quick)
        await looks(own)
        assert quick.acted
        assert (await own.people.get(ROLE, *place))["rules"] != before["rules"], "he was quicker"
        await looks(own)  # our own write is an event
        assert (await own.people.get(ROLE, *place))["rules"] == before["rules"]
        assert not await raises_his_quota(attacker, own.member(1))
        if name == "quick":
            await told(own, "ProjectionIncomplete", f"Role {own.member(1)}/{MANAGED} (by RoleBinding quick)")
            assert await own.may(1, "list", "configmaps"), "what it had before it keeps"
        else:
            await told(own, "ProjectionIncomplete", f"not ours and left as they are: Role or RoleBinding {own.member(1)}/{name}")
        await own.admin.delete(ROLE_BINDING, name, own.member(1))
        await looks(own)
        await own.ready()
        assert await own.may(1, "create", "resourcequotas")
        await own.admin.delete(NAMESPACE_SCOPE, "common-service", own.home)
        await looks(own)
        await own.people.away(NAMESPACE_SCOPE, "common-service", own.home)


def rules_written(changes: list[tuple[str, Object]], name: str) -> list[Object]:
    """Every rule that a Role of this name had at any time."""
    return [rule for _, each in changes if each["metadata"]["name"] == name for rule in each.get("rules") or ()]


@pytest.mark.one_variant("projection")
@pytest.mark.check("a-38", without="roles-that-others-bind")
@pytest.mark.check("a-35", without="roles-that-others-bind")
@pytest.mark.parametrize("way", ["role", "summary", "dangling"])
async def test_a_role_made_in_advance_is_not_filled(
    own: Operators, scopes: Knative, attackers: Attackers, projection: str, way: str
) -> None:
    """A Role of the name that we give, that of the summary, or only a RoleBinding to the name: nothing goes there while the
    attacker's binding names it, the other member is served, and when it is gone so is this one."""
    await own.begin(2)
    await own.right("my-op", "my-op", [GET_LIST, QUOTAS])
    member, name = own.member(1), name_of(own, projection)
    summary = f"nss-runtime-managed-role-from-{own.home}"
    target = summary if way == "summary" else name
    attacker = await attackers.someone("owner", member)
    labels = None if way == "summary" else {"namespace-scope-configmap": f"namespace-scope-{own.home}"}
    await in_force(attacker, member)
    await attackers.plant(attacker, ROLE, obj(ROLE, target, member, labels, rules=[]))
    made = await own.people.get(ROLE, target, member)
    await attacker.create(ROLE_BINDING, bound("mine", target, member))
    if way == "dangling":
        await attacker.delete(ROLE, target, member)
    since = (await own.admin.list(ROLE, member)).resource_version

    await own.scope(1, 2, annotations=chosen(projection))
    await looked(scopes)
    assert not await raises_his_quota(attacker, member)
    assert rules_written(await history(own.admin, ROLE, since, member), target) == []
    assert await own.admin.get(ROLE, target, member) == (None if way == "dangling" else made)
    scope = await told(own, "ProjectionIncomplete", f"Role {member}/{target} (by RoleBinding mine)", "delete these RoleBindings")
    verb = "create" if way == "dangling" else "update"
    source = "my-op" if target == name and projection == "own-roles" else target
    assert scope["status"]["unprojectedRoles"] == [f"{member}/{source}: failed to {verb} from namespace {own.home}"]
    await own.given(2, name)
    assert await own.may(2, "create", "resourcequotas")
    if way != "summary":
        assert await own.admin.get(ROLE_BINDING, name, member) is None
    else:
        await own.given(1, name)

    await own.admin.delete(ROLE_BINDING, "mine", member)
    await own.ready()
    await own.given(1, name)
    assert await own.may(1, "create", "resourcequotas")
    assert not await raises_his_quota(attacker, member)
    await _leave(own)


async def _leave(own: Operators) -> None:
    await own.admin.delete(NAMESPACE_SCOPE, "common-service", own.home)
    await own.people.away(NAMESPACE_SCOPE, "common-service", own.home)


@pytest.mark.one_variant("projection")
@pytest.mark.check("a-38")
async def test_a_role_of_ours_that_somebody_binds_gets_no_more(
    own: Operators, scopes: Knative, attackers: Attackers, projection: str
) -> None:
    """What he is bound to he had himself; more does not come, less does, and when he is out of it, it is as declared."""
    await own.begin(2, consent=False)
    for number in (1, 2):
        await own.consent(own.member(number), [{**GET_LIST, "resources": ["configmaps", "pods"]}])
    await own.right("my-op", "my-op", [{**GET_LIST, "resources": ["configmaps", "pods"]}, QUOTAS])
    member, name = own.member(1), name_of(own, projection)
    attacker = await attackers.someone("owner", member)
    await in_force(attacker, member)
    await own.scope(1, 2, annotations=chosen(projection), allowSubsetProjection=True)
    before, binding = await own.given(1, name)
    await scopes.drain()  # it was looked again after the filling: what comes now came later
    await attacker.create(ROLE_BINDING, bound("mine", name, member))
    await scopes.drain()

    since = (await own.admin.list(ROLE, member)).resource_version
    await asyncio.gather(*(own.consent(own.member(number)) for number in (1, 2)))
    await own.scope(1, 2, annotations=chosen(projection))
    await own.account("second")
    await own.pod("second", template(account="second"))
    await own.right("second", "second", [GET_LIST])
    await looked(scopes)
    assert not await raises_his_quota(attacker, member)
    await told(own, "ProjectionIncomplete", f"Role {member}/{name} (by RoleBinding mine)", "delete these RoleBindings")
    await own.given(2, name, lambda found: found["rules"] != before["rules"])
    assert await own.may(2, "create", "resourcequotas")
    assert (await own.people.get(ROLE, name, member))["rules"] == before["rules"]
    assert (await own.people.get(ROLE_BINDING, name, member))["subjects"] == binding["subjects"]
    written = rules_written(await history(own.admin, ROLE, since, member), name)
    assert not [rule for rule in written if rule not in before["rules"]]
    assert await own.may(1, "list", "configmaps"), "what is there stays"

    await own.consent(member, [GET_LIST])
    await own.people.until(ROLE, name, member, lambda found: found["rules"] == [GET_LIST])
    await own.consent(member, [QUOTAS])
    await own.people.until(ROLE, name, member, lambda found: not found.get("rules"))
    await told(own, "ProjectionIncomplete", f"Role {member}/{name} (by RoleBinding mine)")
    await own.withdraw(member)
    await own.emptied(1)
    await own.ready("False", "NotAuthorized", text=member)

    await own.consent(member)
    await told(own, "ProjectionIncomplete", f"Role {member}/{name} (by RoleBinding mine)")
    assert await own.admin.get(ROLE, name, member) is None, "the binding names it still"
    await attacker.delete(ROLE_BINDING, "mine", member)
    await own.ready()
    await own.given(1, name)
    assert await own.may(1, "create", "resourcequotas")
    assert not await raises_his_quota(attacker, member)
    await _leave(own)


@pytest.mark.one_variant("projection")
@pytest.mark.check("a-38")
async def test_a_binding_of_our_name_is_emptied_before_its_role_is_filled(
    own: Operators, scopes: Knative, attackers: Attackers, projection: str
) -> None:
    """Role and RoleBinding of our name and marks with the attacker in it become ours, and he is never in the filled one."""
    await own.begin(1)
    await own.right("my-op", "my-op", [GET_LIST, QUOTAS])
    member, name = own.member(1), name_of(own, projection)
    attacker = await attackers.someone("owner", member)
    await in_force(attacker, member)
    labels = {"namespace-scope-configmap": f"namespace-scope-{own.home}"}
    await attackers.plant(attacker, ROLE, obj(ROLE, name, member, labels, rules=[]))
    await attackers.plant(attacker, ROLE_BINDING, bound(name, name, member, labels))
    since = (await own.admin.list(ROLE, member)).resource_version

    await own.scope(1, annotations=chosen(projection))
    await own.ready()
    filled, binding = await own.given(1, name, lambda found: found["rules"])
    assert [subject["name"] for subject in binding["subjects"]] == ["my-op"]
    changes = await history(own.admin, ROLE_BINDING, since, member)
    versions = [
        (int(each["metadata"]["resourceVersion"]), GROUP in (each.get("subjects") or []))
        for _, each in changes
        if each["metadata"]["name"] == name
    ]
    first = min(
        int(each["metadata"]["resourceVersion"])
        for _, each in await history(own.admin, ROLE, since, member)
        if each["metadata"]["name"] == name and each.get("rules")
    )
    assert [within for version, within in versions if version < first][-1:] == [False]
    assert not any(within for version, within in versions if version > first)
    assert filled["rules"]
    assert not await raises_his_quota(attacker, member)
    await _leave(own)
