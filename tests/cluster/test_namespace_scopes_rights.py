"""Rights that NamespaceScopes give in members: two projections, for which accounts (sb-49, 50, 68, 69, 73 to 76, 81, 83, 97)."""

from __future__ import annotations

import asyncio

import pytest
from flawless import Calm
from operators import GET_LIST, LIST, OWN_ROLES, Operators, chosen, name_of, template
from people import People
from times import SCOPES_S

from scope_binding.consent import VERBS
from scope_binding.namespace_scopes.names import own_role_name, value_hash
from tenantry.api import Api
from tenantry.local.control_plane import ControlPlane
from tenantry.local.knative import Knative
from tenantry.model.kinds import DEPLOYMENT, NAMESPACE_SCOPE, POD, ROLE, ROLE_BINDING, labels_of, object_of
from tenantry.testing import eventually
from tenantry.testing.awaiting import deadline
from tenantry.testing.objects import obj

SECRETS = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "use"]}


@pytest.mark.check("sb-47")
@pytest.mark.check("sb-49")
@pytest.mark.check("sb-50")
@pytest.mark.check("sb-78")
async def test_managed_projection(own: Operators, people: People) -> None:
    """Without a choice each member gets the one Role of the document, for all accounts, bounded by the consent."""
    await own.begin(2, consent=False)
    await own.consent(own.member(1), [{"apiGroups": ["", "apps"], "resources": ["*"], "verbs": ["*"]}])
    await own.consent(own.member(2))
    await own.account("second")
    await own.pod("second", template(account="second"))
    await own.scope(1, 2)
    role, binding = await own.given(1, "namespacescope-managed-role-from-common-service")

    assert role["rules"] == [{"apiGroups": ["", "apps"], "resources": ["*"], "verbs": sorted(VERBS)}]
    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": name, "namespace": own.home} for name in ("my-op", "second")
    ]
    assert labels_of(role)["namespace-scope-configmap"] == f"namespace-scope-{own.home}"
    assert await own.may(1, "create", "pods", "second")
    assert not await own.may(1, "create", "jobs", group="batch")
    assert not await own.may(1, "escalate", "roles", group=ROLE.group)
    wide, _ = await own.given(2, "namespacescope-managed-role-from-common-service")
    assert wide["rules"] == [{"apiGroups": ["*"], "resources": ["*"], "verbs": sorted(VERBS)}]
    assert not await own.may(2, "escalate", "roles", group=ROLE.group)
    assert not await own.may(2, "impersonate", "serviceaccounts")

    await people.delete(NAMESPACE_SCOPE, "common-service", own.home)
    await own.people.away(NAMESPACE_SCOPE, "common-service", own.home)
    assert [await own.in_member(member) for member in (1, 2)] == [[], []]


@pytest.mark.check("sb-97")
async def test_managed_role_is_the_consent_for_the_accounts_of_the_pods(
    own: Operators, admin: Api, scopes: Knative, calm: Calm
) -> None:
    """In each member that consents the one Role has what it consents to, and the one RoleBinding the accounts of the scoped pods.

    It follows both: a consent that shrinks, a pod under a new account, the last pod of an account.
    """
    await own.begin(3, consent=False)
    group = ROLE.group
    await own.consent(
        own.member(1),
        [
            {"apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": ["get", "list", "use", "impersonate"]},
            {"apiGroups": [""], "resources": ["pods"], "resourceNames": ["one"], "verbs": ["*"]},
            {"apiGroups": [group], "resources": ["roles"], "verbs": ["get", "bind"]},
        ],
    )
    await own.consent(own.member(2))
    bounded = [
        {"apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": ["get", "list"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": sorted(VERBS), "resourceNames": ["one"]},
        {"apiGroups": [group], "resources": ["roles"], "verbs": ["bind"]},
        {"apiGroups": [group], "resources": ["roles"], "verbs": ["get"]},
    ]
    full = [{"apiGroups": ["*"], "resources": ["*"], "verbs": sorted(VERBS)}]
    for name in ("second", "third", "outside"):
        await own.account(name)
        await own.right(name, name, [SECRETS])  # what an account may do at home says nothing
    await own.pod("outside", template({"intent": "none"}, account="outside"))
    name = "namespacescope-managed-role-from-common-service"

    async def given(*accounts: str) -> None:
        with deadline(SCOPES_S):
            for member, rules in ((1, bounded), (2, full)):
                await own.given(member, name, lambda found, rules=rules: found["rules"] == rules)
                place = name, own.member(member)
                wanted = [{"kind": "ServiceAccount", "name": account, "namespace": own.home} for account in accounts]
                await own.people.until(ROLE_BINDING, *place, lambda found, wanted=wanted: found["subjects"] == wanted)

    await own.scope(1, 2, 3)
    await given("my-op")
    await own.ready("False", "NotAuthorized", text=own.member(3))
    await own.pod("second-a", template(account="second"))
    await given("my-op", "second")
    await own.pod("second-b", template(account="second"))
    await own.running("third", template({"intent": "projected", "app": "third"}, account="third"))
    await given("my-op", "second", "third")
    await calm(scopes)
    for member in (1, 2):
        summary = f"Role nss-runtime-managed-role-from-{own.home}"
        assert await own.in_member(member) == [f"Role {name}", summary, f"RoleBinding {name}"]
        _, binding = await own.given(member, name)
        assert binding["roleRef"] == {"apiGroup": group, "kind": "Role", "name": name}
    assert await own.in_member(3) == []
    assert await own.may(1, "list", "secrets", "second")
    assert not await own.may(1, "delete", "secrets", "second")
    assert not await own.may(1, "list", "secrets", "outside")
    assert not await own.may(3, "list", "secrets", "second")

    bounded = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]
    await own.consent(own.member(1), bounded)
    await given("my-op", "second", "third")
    await admin.delete(POD, "second-a", own.home)
    await calm(scopes)
    await given("my-op", "second", "third")
    await admin.delete(POD, "second-b", own.home)
    await given("my-op", "third")
    await admin.delete(DEPLOYMENT, "third", own.home)
    await own.stopped("third")
    await given("my-op")
    await admin.delete(DEPLOYMENT, "my-op", own.home)
    await own.scope(1, 2, 3, license={"accept": True})  # it has no pod whose end would be told
    with deadline(SCOPES_S):
        for member in (1, 2):
            await own.emptied(member)
    assert not await own.may(2, "list", "secrets")


async def test_switching_the_projection_never_takes_access_away(own: Operators, admin: Api) -> None:
    """The new rights stand before the old ones go, in either direction; at the end only the new ones are there."""
    await own.begin(1)
    await own.scope(1)
    for projection, other in (("own-roles", "managed"), ("managed", "own-roles")):
        await own.given(1, name_of(own, other))
        lost = asyncio.create_task(_access_is_lost(own))
        await own.scope(1, annotations=chosen(projection))
        await own.given(1, name_of(own, projection))
        await own.people.away(ROLE_BINDING, name_of(own, other), own.member(1))
        await own.people.away(ROLE, name_of(own, other), own.member(1))
        lost.cancel()
        assert not lost.done() or lost.cancelled(), "the account had no right for a moment"


async def _access_is_lost(own: Operators) -> None:
    while await own.may(1, "list", "configmaps"):  # noqa: ASYNC110
        await asyncio.sleep(0.01)  # asks the API server, which cannot tell by itself


@pytest.mark.check("sb-68")
@pytest.mark.check("sb-69")
@pytest.mark.check("sb-73")
@pytest.mark.check("sb-74")
@pytest.mark.check("sb-75")
@pytest.mark.check("sb-76")
async def test_what_is_projected_of_which_role(own: Operators) -> None:
    """Own roles: other verbs are dropped, wildcards are bounded by both sides, ClusterRoles count too."""
    await own.begin(1)
    await own.right(
        "used", "my-op", [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "use"], "resourceNames": ["x"]}]
    )
    await own.right("only-use", "my-op", [{"apiGroups": ["policy"], "resources": ["podsecuritypolicies"], "verbs": ["use"]}])
    await own.right("every-group", "my-op", [{"apiGroups": ["*"], "resources": ["configmaps"], "verbs": ["get"]}])
    await own.right("view", "my-op", None, kind="ClusterRole")
    await own.right("no-namespace", "my-op", [GET_LIST], namespaced=False)
    await own.right("nothing", "my-op", [])
    await own.right("not-there", "my-op", None)
    await own.account("extra")
    await own.right("extra", "extra", [GET_LIST])
    await own.scope(1, annotations=OWN_ROLES, serviceAccountMembers=["extra", "no-such-account"], allowSubsetProjection=True)

    used, _ = await own.given(1, own_role_name("used", "my-op", own.home))
    assert used["rules"] == [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], "resourceNames": ["x"]}]
    starred, _ = await own.given(1, own_role_name("every-group", "my-op", own.home))
    assert starred["rules"] == [{"apiGroups": ["*"], "resources": ["configmaps"], "verbs": ["get"]}]
    await own.given(1, own_role_name("view", "my-op", own.home))
    assert await own.may(1, "list", "pods")
    assert not await own.may(1, "delete", "secrets")
    await own.given(1, own_role_name("no-namespace", "my-op", own.home))
    _, extra = await own.given(1, own_role_name("extra", "extra", own.home))
    assert extra["subjects"] == [{"kind": "ServiceAccount", "name": "extra", "namespace": own.home}]
    await own.listed(1)
    scope = await own.ready(text="insufficient permissions")
    assert scope["status"]["unprojectedRoles"] == [
        f"{own.home}/not-there: role not found",
        f"{own.home}/only-use: insufficient permissions",
    ]
    nothing = own_role_name("nothing", "my-op", own.home)
    assert f"Role {nothing}" not in await own.in_member(1)


@pytest.mark.check("sb-76")
async def test_further_accounts(own: Operators, projection: str) -> None:
    """An account that the spec names gets its rights though no pod runs; one that is not there is ignored until it is."""
    await own.begin(1)
    for name in ("extra", "later"):
        await own.right(name, name, [GET_LIST])
    await own.account("extra")

    async def given(*accounts: str) -> None:
        if projection == "own-roles":
            for name in accounts:
                _, binding = await own.given(1, own_role_name(name, name, own.home))
                assert [subject["name"] for subject in binding["subjects"]] == [name]
            return
        place = name_of(own, projection), own.member(1)
        await own.people.until(
            ROLE_BINDING, *place, lambda found: [subject["name"] for subject in found["subjects"]] == sorted(accounts)
        )

    await own.scope(1, annotations=chosen(projection), serviceAccountMembers=["extra", "later"])
    await given("my-op", "extra")
    await own.ready()
    assert await own.may(1, "list", "configmaps", "extra")
    assert not await own.may(1, "list", "configmaps", "later")
    await own.account("later")
    await given("my-op", "extra", "later")
    await own.scope(1, annotations=chosen(projection))
    await given("my-op")

    async def taken() -> bool:
        return not await own.may(1, "list", "configmaps", "extra") and not await own.may(1, "list", "configmaps", "later")

    await eventually(taken, within=SCOPES_S, what="the accounts that are not named any more have no right")
    assert await own.may(1, "list", "configmaps")


@pytest.mark.check("sb-81")
async def test_manual_management_leaves_members_alone(own: Operators, people: People, projection: str) -> None:
    """With manualManagement nothing is written or deleted in members; list and restart go on."""
    await own.begin(2)
    await own.scope(1, annotations=chosen(projection))
    name = name_of(own, projection)
    await own.given(1, name)
    await own.scope(1, annotations=chosen(projection), manualManagement=True)
    await own.ready(text="by hand")
    await people.delete(ROLE_BINDING, name, own.member(1))
    restarted = await own.restarted_for()
    await own.scope(1, annotations=chosen(projection), manualManagement=True, license={"accept": True})
    lacks = f"{own.member(1)}: my-op may not get configmaps, list configmaps"
    await own.ready("False", "ProjectionIncomplete", text=lacks)
    await own.scope(1, 2, annotations=chosen(projection), manualManagement=True)
    await own.listed(1, 2)
    await own.ready("False", "ProjectionIncomplete", text=f"{own.member(2)}: my-op may not")
    assert await own.restarted_for() != restarted
    assert await own.in_member(2) == []
    assert f"RoleBinding {name}" not in await own.in_member(1)
    assert f"Role {name}" in await own.in_member(1)
    for member in (1, 2):
        role = {"apiGroup": ROLE.group, "kind": "ClusterRole", "name": "view"}
        subject = {"kind": "ServiceAccount", "name": "my-op", "namespace": own.home}
        body = obj(ROLE_BINDING, "by-hand", own.member(member), roleRef=role, subjects=[subject])
        await own.admin.create(ROLE_BINDING, body)
    await own.ready(text="by hand")


@pytest.mark.check("sb-83")
async def test_two_from_namespaces(own: Operators, admin: Api, projection: str) -> None:
    """NamespaceScopes of two namespaces are served side by side, also with one name and one member."""
    other = Operators(admin, home=f"{own.home}2", prefix=own.prefix)
    await own.begin(1)
    await other.begin(0)
    await other.consent(own.member(1))
    await own.scope(1, annotations=chosen(projection))
    await own.given(1, name_of(own, projection))
    await other.scope(1, annotations=chosen(projection))
    for each in (own, other):
        suffix = f"-{value_hash(each.home)[:10]}" if projection == "managed" else ""
        _, binding = await each.given(1, name_of(each, projection) + suffix)
        assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "my-op", "namespace": each.home}]
        await each.listed(1)
        assert await each.may(1, "list", "configmaps")
    await own.people.away(ROLE, "namespacescope-managed-role-from-common-service", own.member(1))
    await admin.delete(NAMESPACE_SCOPE, "common-service", other.home)
    await other.emptied(1)
    await own.given(1, name_of(own, projection))


@pytest.mark.check("sb-49")
@pytest.mark.parametrize("label", ["{list}-{home}", "{home}-{list}"], ids=["newer", "older"])
async def test_what_the_ibm_operator_left_is_taken_over(
    own: Operators, people: People, projection: str, control_plane: ControlPlane, label: str
) -> None:
    """Roles and RoleBindings of the names and labels of the IBM operator become ours in place, and go with ours."""
    await own.begin(1)
    name, member = name_of(own, projection), own.member(1)
    labels = {
        "namespace-scope-configmap": label.format(list=LIST, home=own.home),
        "app.kubernetes.io/instance": "namespace-scope",
        "app.kubernetes.io/managed-by": "ibm-namespace-scope-operator",
        "app.kubernetes.io/name": LIST,
    }
    subject = {"kind": "ServiceAccount", "name": "gone", "namespace": own.home}
    summary = f"nss-runtime-managed-role-from-{own.home}"
    async with await Api.connect(field_manager="namespace-scope-operator", kubeconfig=control_plane.kubeconfig) as upstream:
        made = [
            await upstream.create(kind, object_of(kind, metadata, **fields))
            for kind, metadata, fields in (
                (ROLE, {"name": name, "namespace": member, "labels": labels}, {"rules": [SECRETS]}),
                (ROLE, {"name": summary, "namespace": member}, {"rules": [SECRETS]}),
                (
                    ROLE_BINDING,
                    {"name": name, "namespace": member, "labels": labels},
                    {"roleRef": {"apiGroup": ROLE.group, "kind": "Role", "name": name}, "subjects": [subject]},
                ),
            )
        ]
    await own.scope(1, annotations=chosen(projection))
    scope = await own.ready()
    assert scope["status"]["unprojectedRoles"] == []
    role, binding = await own.given(1, name)
    total = await people.get(ROLE, summary, member)
    assert [each["metadata"]["uid"] for each in made] == [each["metadata"]["uid"] for each in (role, total, binding)]
    assert SECRETS not in (*role["rules"], *total["rules"])
    assert role["rules"] == total["rules"]
    assert binding["subjects"] == [{**subject, "name": "my-op"}]
    for each in (role, binding, total):
        assert labels_of(each)["scope-binding/from-namespace"] == own.home
        assert labels_of(each)["namespace-scope-configmap"] == f"{LIST}-{own.home}"
    await people.delete(NAMESPACE_SCOPE, "common-service", own.home)
    await own.people.away(NAMESPACE_SCOPE, "common-service", own.home)
    for each in made:
        kind = ROLE if each["kind"] == "Role" else ROLE_BINDING
        assert await own.admin.get(kind, each["metadata"]["name"], member) is None
