"""A member's consent bounds the rights that NamespaceScopes give in it, which come and go with it (sb-70 to 72)."""

from __future__ import annotations

import pytest
from operators import GET_LIST, Operators, chosen, name_of
from people import People

from scope_binding.consent import VERBS, consent_name, consent_objects
from tenantry.api import Api
from tenantry.model.kinds import ROLE, ROLE_BINDING
from tenantry.testing import eventually


async def test_escalate_and_bind_only_if_the_consent_names_them(own: Operators) -> None:
    """A consent that names escalate and bind on roles gives them in the managed projection; ``*`` does not name them."""
    await own.begin(2, consent=False)
    rules = [{"apiGroups": [ROLE.group], "resources": ["roles"], "verbs": ["*"]}]
    await own.consent(own.member(1), [{**rules[0], "verbs": ["get", "bind", "escalate", "impersonate"]}])
    await own.consent(own.member(2), rules)
    await own.scope(1, 2)
    name = "namespacescope-managed-role-from-common-service"
    named, _ = await own.given(1, name)
    starred, _ = await own.given(2, name)

    assert {verb for rule in named["rules"] for verb in rule["verbs"]} == {"get", "bind", "escalate"}
    assert {verb for rule in starred["rules"] for verb in rule["verbs"]} == set(VERBS)


@pytest.mark.check("sb-70")
async def test_consent_bounds_what_is_projected(own: Operators, projection: str) -> None:
    """What the consent lacks is not projected: told, and for own roles not ready unless a subset is allowed."""
    await own.begin(1, consent=False)
    await own.consent(own.member(1), [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}])
    await own.right("more", "my-op", [{**GET_LIST, "resources": ["configmaps", "secrets"]}])
    await own.scope(1, annotations=chosen(projection))
    role, _ = await own.given(1, name_of(own, projection, role="more"))
    verbs = sorted(VERBS) if projection == "managed" else ["get", "list"]
    assert role["rules"] == [{"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs}]
    assert await own.may(1, "list", "configmaps")
    assert not await own.may(1, "list", "secrets")
    await own.listed(1)
    if projection == "managed":
        await own.ready()
        return
    lacks = f"{own.member(1)}/more: insufficient permissions: the consent lacks get,list secrets"
    told = await own.ready("False", "ProjectionIncomplete", text=lacks)
    assert told["status"]["unprojectedRoles"] == [lacks]
    await own.scope(1, annotations=chosen(projection), allowSubsetProjection=True)
    told = await own.ready(text=lacks)
    assert told["status"]["unprojectedRoles"] == [lacks]
    await own.listed(1)


@pytest.mark.check("sb-71")
@pytest.mark.check("sb-72")
async def test_no_consent_no_rights(own: Operators, projection: str, admin: Api) -> None:
    """A member that does not consent gets nothing and holds nobody up; consent is followed at once, and so is its end."""
    await own.begin(2, consent=False)
    await own.consent(own.member(2))
    await own.scope(1, 2, annotations=chosen(projection))
    await own.given(2, name_of(own, projection))
    told = await own.ready("False", "NotAuthorized", text=own.member(1))
    assert f"{own.member(1)}: not authorized" in told["status"]["unprojectedRoles"]
    await own.listed(1, 2)
    assert await own.in_member(1) == []
    warned = await eventually(lambda: own.events("Forbidden"), what="a Warning")
    assert f"namespace admin permission of {own.member(1)} namespace" in warned[0]["message"]

    role, binding = consent_objects(own.member(1), own.home, subject=(own.home, "somebody"))
    await admin.apply(ROLE, role)
    await admin.apply(ROLE_BINDING, binding)
    await own.scope(1, 2, annotations=chosen(projection), license={"accept": True})
    await own.ready("False", "NotAuthorized")
    assert await own.in_member(1) == []
    await admin.delete(ROLE_BINDING, role["metadata"]["name"], own.member(1))
    await own.consent(own.member(1))
    await own.given(1, name_of(own, projection))
    await own.ready()
    await own.withdraw(own.member(1))
    await own.emptied(1)
    await own.ready("False", "NotAuthorized")
    await own.given(2, name_of(own, projection))


@pytest.mark.check("sb-71")
@pytest.mark.parametrize("end", ["both", "role", "binding", "subject", "roleRef"])
async def test_rights_end_with_the_consent(own: Operators, people: People, admin: Api, projection: str, end: str) -> None:
    """Whichever part of a consent goes or changes, the rights in that member go; the other member keeps its own."""
    await own.begin(2)
    await own.scope(1, 2, annotations=chosen(projection))
    name, member, consent = name_of(own, projection), own.member(1), consent_name(own.home)
    await own.given(1, name)
    _, kept = await own.given(2, name)
    await own.ready()
    match end:
        case "both":
            await own.withdraw(member)
        case "role":
            await people.delete(ROLE, consent, member)
        case "binding":
            await people.delete(ROLE_BINDING, consent, member)
        case "subject":
            other = {"kind": "ServiceAccount", "name": "somebody", "namespace": own.home}
            await people.edit(ROLE_BINDING, consent, member, ("replace", "/subjects", [other]))
        case "roleRef":
            _, binding = consent_objects(member, own.home)
            await people.delete(ROLE_BINDING, consent, member)
            await admin.create(
                ROLE_BINDING, {**binding, "roleRef": {**binding["roleRef"], "kind": "ClusterRole", "name": "view"}}
            )
    await own.emptied(1)
    told = await own.ready("False", "NotAuthorized", text=member)
    assert told["status"]["unprojectedRoles"] == [f"{member}: not authorized"]
    await eventually(
        lambda: own.may(1, "list", "configmaps"), lambda found: not found, what="the account has no right there any more"
    )
    _, still = await own.given(2, name)
    assert still["metadata"]["uid"] == kept["metadata"]["uid"]

    await people.delete(ROLE_BINDING, consent, member)
    await own.consent(member)
    await own.given(1, name)
    await own.ready()
