"""Templates and instances come, go and change places; what they leave is cleaned up, and drift is put back (sb-13 to sb-27)."""

from __future__ import annotations

import pytest
from flawless import Calm
from people import token
from refusing import keeping
from scoping import EVE, GENERATE_NAME, INSTANCE_UID, OP, READ_SECRETS, SCOPES, TEMPLATE_UID, Scoping, role
from times import GARBAGE_S

from tenantry.local.knative import Knative
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    ROLE_BINDING,
    SCOPE_INSTANCE,
    SCOPE_TEMPLATE,
    Object,
    labels_of,
)
from tenantry.testing.settling import snapshot

KINDS = (SCOPE_TEMPLATE, SCOPE_INSTANCE, CLUSTER_ROLE, ROLE_BINDING)


@pytest.mark.check("sb-13")
@pytest.mark.check("sb-14")
@pytest.mark.check("sb-15")
async def test_an_instance_waits_for_its_template(scopes: Knative, scoping: Scoping, calm: Calm) -> None:
    """Without its template an instance says so and rests; it is served when the template comes, and told when it goes."""
    nope = f"nope-{token()}"
    await scoping.instance(nope, nope, namespaces=["default"])
    told = await scoping.scoped(nope, "ScopeTemplateNotFound")
    assert told["status"] == "False"
    assert f'ScopeTemplate.operators.coreos.com "{nope}" not found' in told["message"]
    await calm(scopes)
    before = await snapshot(scoping.admin, KINDS, containing=nope)
    await scopes.sweep(SCOPES)
    assert await snapshot(scoping.admin, KINDS, containing=nope) == before
    assert not await scoping.bound(nope)

    await scoping.template(nope, role(nope))
    await scoping.bound_in(nope, "default")
    await scoping.scoped(nope)
    await scoping.delete(SCOPE_TEMPLATE, nope)
    await scoping.bound_in(nope)
    await scoping.scoped(nope, "ScopeTemplateNotFound")
    await scoping.template(nope, role(nope))
    await scoping.bound_in(nope, "default")
    await scoping.scoped(nope)


@pytest.mark.check("sb-16")
@pytest.mark.check("sb-17")
async def test_nothing_is_left_to_the_garbage_collector(scopes: Knative, scoping: Scoping) -> None:
    """What a template or an instance made goes with it, also where the garbage collector was told to leave it alone."""
    test = f"test-{token()}"
    await scoping.begin(f"si1-{test}", f"st1-{test}", test, "default")
    await scoping.admin.delete(SCOPE_TEMPLATE, f"st1-{test}", propagation="Orphan")
    await scoping.no_role(test)
    await scoping.bound_in(test)
    await scoping.away(SCOPE_TEMPLATE, f"st1-{test}", within=GARBAGE_S)  # which takes the finalizer "orphan" off

    await scoping.template(f"st1-{test}", role(test))
    await scoping.bound_in(test, "default")
    await scoping.admin.delete(SCOPE_INSTANCE, f"si1-{test}", propagation="Orphan")
    await scoping.bound_in(test)
    await scoping.no_role(test)


async def test_a_binding_that_may_not_be_deleted_says_so(scopes: Knative, scoping: Scoping) -> None:
    """Its instance is gone and nobody may delete it: it has a Warning; when it may, it goes, and the ClusterRole with it."""
    name, space = f"kept-{token()}", f"kept-{token()}"
    await scoping.namespace(space)
    (binding,) = (await scoping.begin(name, name, name, space)).values()
    called = binding["metadata"]["name"]

    async with keeping(scoping.admin, ROLE_BINDING, called, space):
        await scoping.delete(SCOPE_INSTANCE, name)
        text = await scoping.warned(called, "CleanUpFailed", kind=ROLE_BINDING, namespace=space)
        assert f"request {binding['metadata']['uid']}" in text
    await scopes.sweep(SCOPES)
    await scoping.bound_in(name)
    await scoping.no_role(name)


@pytest.mark.check("sb-18")
@pytest.mark.check("sb-45")
async def test_roles_go_with_their_last_instance(scopes: Knative, scoping: Scoping) -> None:
    """An instance that changes templates takes the old role with it, unless another instance still needs it."""
    test = f"test-{token()}"
    st1, st9 = f"st1-{test}", f"st9-{test}"
    await scoping.namespace(f"b-{test}")
    await scoping.template(st1, role(f"{test}.one"))
    await scoping.template(st9, role(f"{test}.nine"))
    await scoping.instance(f"si1-{test}", st1, namespaces=["default"])
    await scoping.instance(f"si3-{test}", st1, namespaces=[f"b-{test}"])
    await scoping.bound_in(f"{test}.one", "default", f"b-{test}")
    await scoping.instance(f"si1-{test}", st9, namespaces=["default"])
    await scoping.bound_in(f"{test}.nine", "default")
    kept = await scoping.bound_in(f"{test}.one", f"b-{test}")
    await scoping.instance(f"si4-{test}", st1, namespaces=["default"])
    await scoping.bound_in(f"{test}.one", "default", f"b-{test}")
    await scoping.delete(SCOPE_INSTANCE, f"si4-{test}")
    left = await scoping.bound_in(f"{test}.one", f"b-{test}")
    assert left[f"b-{test}"]["metadata"]["uid"] == kept[f"b-{test}"]["metadata"]["uid"]
    assert await scoping.admin.get(CLUSTER_ROLE, f"{test}.one") is not None

    await scoping.instance(f"si3-{test}", st9, namespaces=[f"b-{test}"])
    await scoping.no_role(f"{test}.one")
    await scoping.bound_in(f"{test}.nine", "default", f"b-{test}")


@pytest.mark.check("sb-19")
@pytest.mark.check("sb-20")
@pytest.mark.check("sb-24")
@pytest.mark.check("sb-25")
@pytest.mark.check("sb-26")
async def test_a_binding_that_drifts_is_put_back(scopes: Knative, scoping: Scoping, calm: Calm) -> None:
    """Deleted, subjects, owner references, labels, another role under the same name: each is put back, and there is one."""
    test = f"test-{token()}"
    binding = (await scoping.begin(f"si1-{test}", f"st1-{test}", test, "default"))["default"]
    name = binding["metadata"]["name"]
    await calm(scopes)

    await scoping.delete(ROLE_BINDING, name, "default")
    again = await scoping.until(ROLE_BINDING, name, "default", lambda found: found["subjects"] == [OP])
    assert labels_of(again) == labels_of(binding)
    eve = {"apiGroup": "rbac.authorization.k8s.io", **EVE}
    await scoping.edit(ROLE_BINDING, name, "default", ("replace", "/subjects", [eve]))
    await scoping.until(ROLE_BINDING, name, "default", lambda found: found["subjects"] == [OP])
    await scoping.edit(ROLE_BINDING, name, "default", ("remove", "/metadata/ownerReferences", None))
    owners = binding["metadata"]["ownerReferences"]
    assert [(owner["name"], owner["controller"]) for owner in owners] == [(f"si1-{test}", True)]
    await scoping.until(ROLE_BINDING, name, "default", lambda found: found["metadata"].get("ownerReferences") == owners)
    uid = f"/metadata/labels/{INSTANCE_UID.replace('/', '~1')}"
    await scoping.edit(ROLE_BINDING, name, "default", ("remove", uid, None))
    await scoping.until(ROLE_BINDING, name, "default", lambda found: labels_of(found) == labels_of(binding))
    assert set(await scoping.bound(test)) == {"default"}

    foreign: Object = {
        "apiVersion": ROLE_BINDING.api_version,
        "kind": "RoleBinding",
        "metadata": {"name": name, "namespace": "default", "labels": dict(labels_of(binding))},
        "roleRef": {**binding["roleRef"], "name": "view"},
        "subjects": [OP],
    }
    with scoping.asleep(scopes):
        await scoping.delete(ROLE_BINDING, name, "default")
        await scoping.admin.create(ROLE_BINDING, foreign)
    await scoping.until(ROLE_BINDING, name, "default", lambda found: found["roleRef"]["name"] == test)
    await calm(scopes)
    assert set(await scoping.bound(test)) == {"default"}
    assert not [found for found in (await scoping.admin.list(ROLE_BINDING, "default")).items if "view" in str(found["roleRef"])]


@pytest.mark.parametrize("mark", [INSTANCE_UID, GENERATE_NAME], ids=["uid", "generateName"])
async def test_a_binding_that_lost_a_label_goes_with_its_template(scopes: Knative, scoping: Scoping, mark: str) -> None:
    """A label taken off by hand just before nobody wants the binding any more hides it from nobody: it goes."""
    test = f"test-{token()}"
    binding = (await scoping.begin(f"si1-{test}", f"st1-{test}", test, "default"))["default"]
    await scoping.scoped(f"si1-{test}")

    with scoping.asleep(scopes):
        path = f"/metadata/labels/{mark.replace('/', '~1')}"
        await scoping.edit(ROLE_BINDING, binding["metadata"]["name"], "default", ("remove", path, None))
        await scoping.delete(SCOPE_TEMPLATE, f"st1-{test}")

    await scoping.away(ROLE_BINDING, binding["metadata"]["name"], "default")
    await scoping.scoped(f"si1-{test}", "ScopeTemplateNotFound")


@pytest.mark.check("sb-21")
@pytest.mark.check("sb-22")
@pytest.mark.check("sb-23")
async def test_a_role_that_drifts_is_put_back(scopes: Knative, scoping: Scoping, calm: Calm) -> None:
    """Rules and labels that somebody edits, and roles that somebody deletes, are put back, each role for itself."""
    test = f"test-{token()}"
    one, two = f"{test}.1", f"{test}.2"
    await scoping.template(f"st2-{test}", role(one), role(two))
    await scoping.instance(f"si2-{test}", f"st2-{test}", namespaces=["default"])
    await scoping.role_when(two)
    await scoping.scoped(f"si2-{test}")
    await calm(scopes)
    first = await scoping.get(CLUSTER_ROLE, one)

    await scoping.delete(CLUSTER_ROLE, two)
    await scoping.role_when(two)
    for name in (two, one):
        await scoping.edit(CLUSTER_ROLE, name, "", ("replace", "/rules", [{**READ_SECRETS, "verbs": ["delete"]}]))
        await scoping.role_when(name, lambda found: found["rules"] == [READ_SECRETS])
    uid = f"/metadata/labels/{TEMPLATE_UID.replace('/', '~1')}"
    await scoping.edit(CLUSTER_ROLE, one, "", ("remove", uid, None))
    await scoping.role_when(one, lambda found: labels_of(found) == labels_of(first))
    await scoping.edit(
        CLUSTER_ROLE, one, "", ("add", "/aggregationRule", {"clusterRoleSelectors": [{"matchLabels": {"no": "such"}}]})
    )
    await scoping.role_when(one, lambda found: found.get("rules") == [READ_SECRETS] and "aggregationRule" not in found)
    await calm(scopes)


async def test_a_cluster_wide_binding_that_drifts_is_put_back(scopes: Knative, scoping: Scoping) -> None:
    """Subjects that somebody edits and a binding that somebody deletes are put back in the whole cluster as well."""
    test = f"test-{token()}"
    name = (await scoping.begin(f"si1-{test}", f"st1-{test}", test))[""]["metadata"]["name"]
    await scoping.scoped(f"si1-{test}")
    await scoping.edit(CLUSTER_ROLE_BINDING, name, "", ("replace", "/subjects", []))
    await scoping.until(CLUSTER_ROLE_BINDING, name, "", lambda found: found.get("subjects") == [OP])
    await scoping.delete(CLUSTER_ROLE_BINDING, name)
    await scoping.until(CLUSTER_ROLE_BINDING, name, "", lambda found: found.get("subjects") == [OP])


@pytest.mark.check("sb-27")
async def test_what_others_add_stays_and_causes_no_write(scopes: Knative, scoping: Scoping, calm: Calm) -> None:
    """A label that somebody puts on a binding or a role survives, and nothing is written any more."""
    test = f"test-{token()}"
    await scoping.template(f"st1-{test}", role(test, rules=[]))
    await scoping.instance(f"si1-{test}", f"st1-{test}", namespaces=["default"])
    name = (await scoping.bound_in(test, "default"))["default"]["metadata"]["name"]
    await scoping.edit(ROLE_BINDING, name, "default", ("add", "/metadata/labels/team", "x"))
    await scoping.edit(CLUSTER_ROLE, test, "", ("add", "/metadata/labels/team", "x"))
    await calm(scopes)
    before = await snapshot(scoping.admin, KINDS, containing=test)
    for _ in range(2):
        await scopes.sweep(SCOPES)
    await calm(scopes)
    assert await snapshot(scoping.admin, KINDS, containing=test) == before
    assert labels_of(await scoping.get(ROLE_BINDING, name, "default"))["team"] == "x"
    assert labels_of(await scoping.get(ROLE_BINDING, name, "default"))[GENERATE_NAME] == test
