"""A member's consent to a home namespace passes on to nobody who makes that home anew (a-37)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from attackers import Attackers
from click.testing import CliRunner
from consenting import GROUP, MANAGED, alone, in_force, looked, told
from operators import GET_LIST, Operators, chosen, name_of, template, workload
from people import People
from rights import cluster_role
from times import NAMESPACE_GONE_S
from watching import history

from scope_binding.consent import consent_name
from tenantry.api import Api
from tenantry.api.errors import Forbidden
from tenantry.cli import main
from tenantry.local.control_plane import ControlPlane
from tenantry.local.knative import Knative
from tenantry.model.kinds import DEPLOYMENT, NAMESPACE, NAMESPACE_SCOPE, ROLE, ROLE_BINDING, SERVICE_ACCOUNT
from tenantry.testing import eventually
from tenantry.testing.objects import obj

AGENT = "ibm-namespace-scope-operator"


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
        await in_force(attacker, home, NAMESPACE_SCOPE, SERVICE_ACCOUNT)
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


@pytest.mark.one_variant("projection")
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


@pytest.mark.one_variant("projection", "given")
@pytest.mark.check("a-37", without="consent-by-uid")
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
    await looked(scopes)
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


@pytest.mark.check("a-37", without="consent-by-uid")
async def test_a_consent_that_names_another_namespace_counts_for_none(own: Operators, scopes: Knative) -> None:
    """The uid decides, not the age: a consent made anew from an old copy is still the one to the old namespace."""
    await own.begin(1)
    annotations = {"scope-binding/from-namespace-uid": "00000000-0000-0000-0000-000000000000"}
    place = consent_name(own.home), own.member(1)
    await own.people.edit(ROLE_BINDING, *place, ("add", "/metadata/annotations", annotations))
    await own.scope(1)
    await looked(scopes)
    assert await own.in_member(1) == []
    await told(own, "NotAuthorized", own.member(1), event="Forbidden")
    await own.people.edit(ROLE_BINDING, *place, ("remove", "/metadata/annotations", None))
    await own.ready()
    await own.given(1, MANAGED)
    await own.admin.delete(NAMESPACE_SCOPE, "common-service", own.home)
    await scopes.drain()
