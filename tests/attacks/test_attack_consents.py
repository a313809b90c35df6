"""Consents of members of NamespaceScopes: they pass on to nobody (a-37), and what is given by them goes to nobody else (a-38).

The victims are members that consent to be served by a home namespace. The attackers are who makes that home anew after it was
deleted, and who may write Roles and RoleBindings in a member but has less than the member consents to.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from attackers import HOME, Attackers
from click.testing import CliRunner
from one_function import ready, serving
from operators import GET_LIST, Operators, chosen, name_of, template, workload
from people import People, look, post
from rights import cluster_role, group
from times import NAMESPACE_GONE_S
from watching import history

from scope_binding.consent import consent_name
from tenantry.api import Api
from tenantry.api.errors import Forbidden
from tenantry.cli import main
from tenantry.local.control_plane import ControlPlane
from tenantry.local.knative import Knative
from tenantry.model.kinds import (
    DEPLOYMENT,
    NAMESPACE,
    NAMESPACE_SCOPE,
    RESOURCE_QUOTA,
    ROLE,
    ROLE_BINDING,
    SERVICE_ACCOUNT,
    Kind,
    Object,
)
from tenantry.testing import eventually
from tenantry.testing.fault import Forward, Predicate, on
from tenantry.testing.objects import obj
from tenantry.testing.proxy import FaultProxy
from tenantry.testing.wire import Request, Response

FUNCTION = "scope-binding"
COMMAND = (sys.executable, "-m", "tenantry.cli", "serve", FUNCTION)
AGENT = "ibm-namespace-scope-operator"
GROUP = group(f"system:serviceaccounts:{HOME}")
"""All attackers."""
QUOTAS: Object = {"apiGroups": [""], "resources": ["resourcequotas"], "verbs": ["create", "delete", "get", "list"]}
"""What a member consents to, and who administrates a namespace has not: nobody may raise his own quota."""


MANAGED = "namespacescope-managed-role-from-common-service"
"""The Role of a NamespaceScope ``common-service`` in a member."""


@pytest.fixture
def own(admin: Api) -> Operators:
    """The home and the members of one test."""
    return Operators(admin)


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


async def told(own: Operators, reason: str, *parts: str, event: str = "") -> Object:
    """The condition and a Warning on the NamespaceScope say so and name all of these."""
    scope = await own.ready("False", reason, text=parts[0])
    message = next(each for each in scope["status"]["conditions"] if each["type"] == "Ready")["message"]
    uid = scope["metadata"]["uid"]

    assert all(part in message for part in parts), message

    async def warned() -> bool:
        found = [each for each in await own.events(event or reason) if each["involvedObject"].get("uid") == uid]
        return any(each["type"] == "Warning" and all(part in each["message"] for part in parts) for each in found)

    await eventually(warned, what=f"a Warning {event or reason} with {parts}")
    return scope


# -- a-37: a home that is made again -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Takeover:
    """Somebody makes a namespace again that was deleted, and in it whatever was there, under the same names."""

    attackers: Attackers
    own: Operators
    projection: str

    async def happens(self, *members: int, labels: dict[str, str] | None = None) -> Api:
        """The home goes and comes back as the attacker's."""
        admin, home = self.own.admin, self.own.home
        live = await self.own.people.get(NAMESPACE, home)
        await admin.delete(NAMESPACE, home)
        await self.own.people.gone(home, live["metadata"]["uid"])
        attacker = await self.attackers.someone("labeller")

        async def made() -> bool:
            try:
                await People(attacker).namespace(home)
            except Forbidden:
                return False
            return True

        await eventually(made, within=NAMESPACE_GONE_S, what="the attacker makes the namespace")
        for role_name in ("admin", "tenantry-namespace-scope-editor"):
            body = obj(ROLE_BINDING, role_name, home, roleRef=cluster_role(role_name), subjects=[GROUP])
            await admin.create(ROLE_BINDING, body)
        await _in_force(attacker, home, NAMESPACE_SCOPE, SERVICE_ACCOUNT)
        theirs = Operators(attacker, home=home, prefix=self.own.prefix)
        for account in ("my-op", AGENT):
            await theirs.account(account)
        await theirs.right("my-op", "my-op", [GET_LIST])
        await attacker.create(DEPLOYMENT, workload(DEPLOYMENT, home, "my-op", template()))
        await theirs.scope(*members, annotations=chosen(self.projection), labels=labels)
        return attacker


@pytest.fixture
def authorize(control_plane: ControlPlane) -> Callable[..., Awaitable[None]]:
    """``await authorize(member, home)``: the administrator of a member consents by command."""

    async def run(member: str, home: str) -> None:
        def invoke() -> tuple[int, str]:
            environment = {"KUBECONFIG": str(control_plane.kubeconfig)}
            done = CliRunner().invoke(main, ["authorize-namespace", member, "--to", home], env=environment)
            return done.exit_code, done.output

        code, output = await asyncio.to_thread(invoke)  # the command brings an event loop of its own
        assert code == 0, output

    return run


@asynccontextmanager
async def alone(
    identity: Callable[..., Awaitable[Path]], folder: Path
) -> AsyncIterator[tuple[Callable[[Operators], Awaitable[None]], FaultProxy]]:
    """The function behind a proxy and without sources: it looks at a NamespaceScope when it is told to."""
    kubeconfig = await identity(f"{FUNCTION}-namespace-scopes")
    async with (
        FaultProxy(kubeconfig, folder) as proxy,
        serving(proxy.kubeconfig_for(kubeconfig), {}, folder, command=COMMAND) as (process, url),
    ):
        await ready(process, url)

        async def looks(own: Operators) -> None:
            status, text = await post(url, *look(NAMESPACE_SCOPE, "common-service", own.home))
            assert status == 204, text

        yield looks, proxy


@pytest.mark.check("a-37")
async def test_what_was_given_is_taken_back_from_who_took_the_name(
    own: Operators, attackers: Attackers, identity: Callable[..., Awaitable[Path]], tmp_path: Path, projection: str
) -> None:
    """While nobody looked the home was deleted and made again: the rights that still stand go at the first look."""
    label = {"cpfs.helm/install": "true"}  # without a finalizer nothing waits for the function
    async with alone(identity, tmp_path) as (looks, _):
        await own.begin(1)
        await own.scope(1, annotations=chosen(projection), labels=label)
        await looks(own)
        await own.given(1, name_of(own, projection))
        await Takeover(attackers, own, projection).happens(1, labels=label)
        assert await own.may(1, "list", "configmaps"), "Kubernetes goes by the name, until we have looked"
        await looks(own)
        await _may_not(own, "list", "configmaps")
        assert await own.in_member(1) == []
        await told(own, "NotAuthorized", own.member(1), "authorize-namespace", event="Forbidden")
    await own.admin.delete(NAMESPACE_SCOPE, "common-service", own.home)


async def _may_not(own: Operators, verb: str, resource: str, account: str = "my-op") -> None:
    async def refused() -> bool:
        return not await own.may(1, verb, resource, account)

    await eventually(refused, what=f"{account} may not {verb} {resource}")


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


@pytest.mark.check("a-37")
@pytest.mark.parametrize("given", ["by-command", "by-manifest"])
async def test_consent_does_not_pass_on_with_the_name(
    own: Operators,
    scopes: Knative,
    attackers: Attackers,
    authorize: Callable[..., Awaitable[None]],
    projection: str,
    given: str,
) -> None:
    """Who makes the home anew gets nothing, not for a moment, and is told; what another home has in the member stays.

    The member may consent to him as to anybody; the other member, which does not, gives him nothing.
    """
    admin, member = own.admin, own.member(1)
    other = Operators(admin, home=f"{own.home}2", prefix=own.prefix)
    await own.begin(2, consent=False)
    await other.begin(0)

    async def consents(number: int) -> None:
        if given == "by-command":
            await authorize(own.member(number), own.home)
        else:
            for kind in (ROLE, ROLE_BINDING):
                if await admin.get(kind, consent_name(own.home), own.member(number)) is not None:
                    await admin.delete(kind, consent_name(own.home), own.member(number))
            await own.consent(own.member(number))

    for number in (1, 2):
        await consents(number)
    await authorize(member, other.home)
    await own.scope(1, 2, annotations=chosen(projection))
    await other.scope(1, name="other", annotations=chosen(projection))
    await own.ready()
    await own.given(1, name_of(own, projection))
    _, kept = await other.given(1, name_of(other, projection, "other"))

    await Takeover(attackers, own, projection).happens()
    await scopes.drain()
    since = (await admin.list(ROLE_BINDING, member)).resource_version
    theirs = await own.scope(1, 2, annotations=chosen(projection))
    assert theirs["metadata"]["uid"]
    await _looked(scopes)
    assert await own.in_member(1) == await own.in_member(2) == []
    written = await history(admin, ROLE_BINDING, since, member)
    assert [each for _, each in written if "scope-binding/from-namespace" in each["metadata"].get("labels", {})] == []
    for account in ("my-op", AGENT):
        await _may_not(own, "list", "configmaps", account)
        await _may_not(own, "list", "secrets", account)
    still = await own.people.get(ROLE_BINDING, kept["metadata"]["name"], member)
    assert still["metadata"]["uid"] == kept["metadata"]["uid"]
    assert await other.may(1, "list", "configmaps")
    command = f"`tenantry authorize-namespace {member} --to {own.home}`"
    scope = await told(own, "NotAuthorized", member, own.member(2), command, event="Forbidden")
    assert scope["status"]["unprojectedRoles"] == [f"{own.member(each)}: not authorized" for each in (1, 2)]

    await consents(1)
    await own.given(1, name_of(own, projection))
    assert await own.may(1, "list", "configmaps")
    await told(own, "NotAuthorized", f"the consent of {own.member(2)} ", event="Forbidden")
    assert await own.in_member(2) == []
    for each in (own, other):
        for found in (await admin.list(NAMESPACE_SCOPE, each.home)).items:
            await admin.delete(NAMESPACE_SCOPE, found["metadata"]["name"], each.home)


@pytest.mark.check("a-37")
async def test_a_consent_that_names_another_namespace_counts_for_none(own: Operators, scopes: Knative) -> None:
    """The uid decides, not the age: a consent made anew from an old copy is still the one to the old namespace."""
    await own.begin(1)
    annotations = {"scope-binding/from-namespace-uid": "00000000-0000-0000-0000-000000000000"}
    place = consent_name(own.home), own.member(1)
    await own.people.edit(ROLE_BINDING, *place, ("add", "/metadata/annotations", annotations))
    await own.scope(1)
    await _looked(scopes)
    assert await own.in_member(1) == []
    await told(own, "NotAuthorized", own.member(1), event="Forbidden")
    await own.people.edit(ROLE_BINDING, *place, ("remove", "/metadata/annotations", None))
    await own.ready()
    await own.given(1, MANAGED)
    await own.admin.delete(NAMESPACE_SCOPE, "common-service", own.home)
    await scopes.drain()


# -- a-38: a Role that others are bound to -----------------------------------------------------------------------------


def rules_written(changes: list[tuple[str, Object]], name: str) -> list[Object]:
    """Every rule that a Role of this name had at any time."""
    return [rule for _, each in changes if each["metadata"]["name"] == name for rule in each.get("rules") or ()]


@pytest.mark.check("a-38")
@pytest.mark.check("a-35")
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
    await _in_force(attacker, member)
    await attackers.plant(attacker, ROLE, obj(ROLE, target, member, labels, rules=[]))
    made = await own.people.get(ROLE, target, member)
    await attacker.create(ROLE_BINDING, bound("mine", target, member))
    if way == "dangling":
        await attacker.delete(ROLE, target, member)
    since = (await own.admin.list(ROLE, member)).resource_version

    await own.scope(1, 2, annotations=chosen(projection))
    await _looked(scopes)
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


async def _looked(scopes: Knative) -> None:
    """What came is handled, and a sweep has looked at everything."""
    await scopes.drain()
    await scopes.sweep(FUNCTION)
    await scopes.drain()


async def _in_force(attacker: Api, namespace: str, *kinds: Kind) -> None:
    """Wait until the attacker has what he was given in a namespace: he may list these kinds."""

    async def has_it() -> bool:
        try:
            for kind in kinds or (ROLE_BINDING,):
                await attacker.list(kind, namespace)
        except Forbidden:
            return False
        return True

    await eventually(has_it, what="the attacker's rights")


async def _leave(own: Operators) -> None:
    await own.admin.delete(NAMESPACE_SCOPE, "common-service", own.home)
    await own.people.away(NAMESPACE_SCOPE, "common-service", own.home)


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
    await _in_force(attacker, member)
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
    await _looked(scopes)
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


@pytest.mark.check("a-38")
async def test_a_binding_of_our_name_is_emptied_before_its_role_is_filled(
    own: Operators, scopes: Knative, attackers: Attackers, projection: str
) -> None:
    """Role and RoleBinding of our name and marks with the attacker in it become ours, and he is never in the filled one."""
    await own.begin(1)
    await own.right("my-op", "my-op", [GET_LIST, QUOTAS])
    member, name = own.member(1), name_of(own, projection)
    attacker = await attackers.someone("owner", member)
    await _in_force(attacker, member)
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
