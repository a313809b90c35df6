"""Mistakes and attacks: told with the field and the fix, without a right for anybody, and healed (sb-32 to sb-34, O-2, O-3)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from flawless import Calm
from people import may, token
from refusing import refusing
from scoping import EVE, OP, READ_SECRETS, SCOPES, TEMPLATE_UID, Scoping, condition_of, role
from times import GARBAGE_S, LEFT_TO_MAKE_WHOLE, POLICY_S

from tenantry.api import Api
from tenantry.api.errors import AdmissionDenied, ApiError, Invalid
from tenantry.local.knative import Knative
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    RESOURCE_QUOTA,
    SCOPE_INSTANCE,
    SCOPE_INSTANCE_FRAMEWORK,
    SCOPE_TEMPLATE,
    SCOPE_TEMPLATE_FRAMEWORK,
    Kind,
    Object,
)
from tenantry.testing import eventually
from tenantry.testing.objects import obj

pytestmark = LEFT_TO_MAKE_WHOLE

Start = Callable[..., Awaitable[Knative]]
Identity = Callable[..., Awaitable[Path]]


def by_hand(name: str) -> Object:
    return obj(CLUSTER_ROLE, name, labels={"team": "x"}, rules=[{"apiGroups": [""], "resources": ["*"], "verbs": ["*"]}])


@pytest.mark.check("sb-32")
@pytest.mark.check("sb-34")
async def test_a_role_of_somebody_else_is_not_taken_over(scopes: Knative, scoping: Scoping, calm: Calm) -> None:
    """A name that is taken fails that role alone, for good; it is neither changed nor bound, and heals when it is free."""
    test = f"test-{token()}"
    taken, st, si = f"{test}.taken", f"st-{test}", f"si-{test}"
    made = await scoping.admin.create(CLUSTER_ROLE, by_hand(taken))
    await scoping.template(st, role(f"{test}.ok1"), role(taken, subjects=[EVE]))
    await scoping.instance(si, st, namespaces=["default"])
    told = await scoping.templated(st, "TemplatingFailed")
    assert f'"{taken}" already exists' in told["message"]
    assert taken in (await scoping.scoped(si, "ScopeTemplateFailed"))["message"]
    await scoping.bound_in(f"{test}.ok1", "default")
    for _ in range(2):
        await calm(scopes)
        assert condition_of(await scoping.get(SCOPE_TEMPLATE, st), "Templated")["status"] == "False"
    assert await scoping.bound(taken) == {}
    assert (await scoping.get(CLUSTER_ROLE, taken))["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]

    await scoping.delete(CLUSTER_ROLE, taken)
    await scoping.templated(st)
    await scoping.bound_in(taken, "default")
    await scoping.scoped(si)


async def test_a_role_that_becomes_somebody_elses_is_not_bound_any_more(scopes: Knative, scoping: Scoping, calm: Calm) -> None:
    """When a foreign ClusterRole takes a template's place, the bindings that would now lead to it go."""
    test = f"test-{token()}"
    await scoping.begin(f"si-{test}", f"st-{test}", test, "default")
    with scoping.asleep(scopes):
        await scoping.delete(CLUSTER_ROLE, test)
        await scoping.admin.create(CLUSTER_ROLE, by_hand(test))
    await scoping.bound_in(test)
    await scoping.templated(f"st-{test}", "TemplatingFailed")


@pytest.mark.check("sb-33")
async def test_no_template_hands_out_cluster_admin(scopes: Knative, scoping: Scoping, calm: Calm) -> None:
    """A template named like a ClusterRole of Kubernetes is refused, and where it was stored already it binds nobody."""
    test = f"test-{token()}"
    for name in ("cluster-admin", "admin", "edit", "view"):
        with pytest.raises(Invalid, match="choose another generateName"):
            await scoping.template(f"st-{test}", role(name, subjects=[EVE]))
    with pytest.raises(Invalid, match="should match"):
        await scoping.template(f"st-{test}", role("system:node", subjects=[EVE]))
    # Not in the schema's list: ClusterRoles that are there all the same, ours and the cluster's.
    for name in ("tenantry-scope-binding", "tenantry-source-scope-binding"):
        eve = {"kind": "User", "name": f"eve-{test}"}
        await scoping.template(f"st-{name}-{test}", role(name, subjects=[eve]))
        await scoping.instance(f"si-{name}-{test}", f"st-{name}-{test}")
        await scoping.templated(f"st-{name}-{test}", "TemplatingFailed")
        await scoping.scoped(f"si-{name}-{test}", "ScopeTemplateFailed")
    await calm(scopes)
    bindings = (await scoping.admin.list(CLUSTER_ROLE_BINDING)).items
    assert not [found for found in bindings if any("eve" in subject["name"] for subject in found.get("subjects") or [])]
    assert not await may(scoping.admin, f"eve-{test}", "list", "secrets")


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"generateName": ""}, "at least 1 chars"),
        ({"generateName": "-a"}, "should match"),
        ({"generateName": "a" * 64}, "Too long"),
        ({"generateName": "a", "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": []}]}, "verbs"),
        ({"generateName": "a", "rules": [{"resources": ["pods"], "verbs": ["get"]}]}, "names their apiGroups"),
        ({"generateName": "a", "rules": [{"verbs": ["get"]}]}, "either resources"),
        (
            {
                "generateName": "a",
                "rules": [{"nonResourceURLs": ["/a"], "resources": ["b"], "apiGroups": [""], "verbs": ["get"]}],
            },
            "either resources",
        ),
    ],
)
async def test_bad_templates_are_refused_with_advice(scopes: Knative, scoping: Scoping, entry: Object, words: str) -> None:
    """What the API server would refuse later is refused when it is declared."""
    with pytest.raises(ApiError, match=words):
        await scoping.template(f"st-{token()}", {**role("a"), **entry})


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"namespaces": [""]}, "at least 1 chars"),
        ({"namespaces": ["A_b"]}, "should match"),
        ({"namespaceSelector": "env=prod"}, "must be of type object"),
        ({"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}, "needs at least one entry"),
        ({"scopeTemplateName": 1}, "must be of type string"),
        ({"namespaceSelektor": {}}, "unknown field"),
    ],
)
async def test_bad_instances_are_refused_with_advice(scopes: Knative, scoping: Scoping, spec: Object, words: str) -> None:
    """Nothing empty, null or misspelt can mean the whole cluster: it is refused when it is declared."""
    name = f"si-{token()}"
    body = obj(SCOPE_INSTANCE, name, spec={"scopeTemplateName": "a", **spec})
    with pytest.raises(ApiError, match=words):
        await scoping.admin.request("POST", SCOPE_INSTANCE.path(), {"fieldValidation": "Strict"}, body)


@pytest.mark.parametrize(
    "family",
    [(SCOPE_TEMPLATE, SCOPE_INSTANCE), (SCOPE_TEMPLATE_FRAMEWORK, SCOPE_INSTANCE_FRAMEWORK)],
    ids=lambda family: family[0].group,
)
@pytest.mark.parametrize(
    "empty",
    [{}, {"spec": {}}, {"spec": {"scopeTemplateName": ""}}, {"spec": {"scopeTemplateName": None, "namespaces": ["default"]}}],
    ids=["no spec", "empty spec", "empty name", "null"],
)
async def test_an_instance_without_a_template_is_taken_and_told(
    scopes: Knative, scoping: Scoping, family: tuple[Kind, Kind], empty: Object
) -> None:
    """As with Oria: it gives nothing and says ScopeTemplateNotFound; named it gives, and emptied it takes back."""
    template, instance = family
    name = f"test-{token()}"
    await scoping.admin.create(instance, obj(instance, name, **empty))
    told = await scoping.scoped(name, "ScopeTemplateNotFound", kind=instance)
    assert told["status"] == "False"
    assert told["message"].startswith(f'getting ScopeTemplate "": ScopeTemplate.{template.group} "" not found')
    assert "write spec.scopeTemplateName" in told["message"]

    await scoping.template(name, role(name), kind=template)
    await scoping.instance(name, name, kind=instance, namespaces=["default"])
    await scoping.bound_in(name, "default")
    await scoping.scoped(name, kind=instance)  # the last write to it but ours
    live = await scoping.get(instance, name)
    await scoping.admin.request("PUT", instance.path("", name), None, obj(instance, name, metadata=live["metadata"], **empty))
    await scoping.scoped(name, "ScopeTemplateNotFound", kind=instance)
    assert await scoping.bound(name) == {}


@pytest.mark.parametrize("field", ["namespaces", "namespaceSelector"])
async def test_null_is_not_the_whole_cluster(scopes: Knative, scoping: Scoping, field: str) -> None:
    """A field that is left empty in YAML gives nothing to anybody, and is told."""
    test = f"test-{token()}"
    await scoping.template(f"st-{test}", role(test))
    await scoping.instance(f"si-{test}", f"st-{test}", **{field: None})
    assert f"{field}: it is null" in (await scoping.scoped(f"si-{test}", "ScopingFailed"))["message"]
    assert await scoping.bound(test) == {}


@pytest.mark.check("sb-37")
async def test_an_empty_list_and_a_selector_are_not_the_whole_cluster(scopes: Knative, scoping: Scoping, calm: Calm) -> None:
    """``namespaces: []`` beside a selector that matches nothing gives nothing, and takes back what the whole cluster had."""
    test = f"test-{token()}"
    st, si = f"st-{test}", f"si-{test}"
    nothing = {"namespaces": [], "namespaceSelector": {f"env-{test}": "prod"}}
    await scoping.template(st, role(test))
    await scoping.instance(si, st, **nothing)
    await scoping.scoped(si)
    await calm(scopes)
    assert await scoping.bound(test) == {}
    await scoping.instance(si, st, namespaces=[])
    await scoping.bound_in(test, "")
    await scoping.instance(si, st, **nothing)
    await scoping.bound_in(test)
    await scoping.scoped(si)
    await scoping.namespace(f"p-{test}", labels={f"env-{test}": "prod"})
    await scoping.bound_in(test, f"p-{test}")


async def test_two_roles_of_one_name_are_refused(scopes: Knative, scoping: Scoping) -> None:
    """generateName is unique inside a template."""
    with pytest.raises(ApiError, match="give each its own"):
        await scoping.template(f"st-{token()}", role("a"), role("a"))


async def test_a_bad_selector_takes_nothing_and_gives_nothing(scopes: Knative, scoping: Scoping) -> None:
    """A selector that means nothing is told with its field; what is bound stays, and nothing is added, until it is mended."""
    test = f"test-{token()}"
    st, si = f"st-{test}", f"si-{test}"
    await scoping.begin(si, st, test, "default")
    await scoping.instance(si, st, namespaces=["default", "kube-public"], namespaceSelector={"env": True})
    told = await scoping.scoped(si, "ScopingFailed")
    assert "namespaceSelector: env: the value must be a text" in told["message"]
    assert set(await scoping.bound(test)) == {"default"}
    await scoping.instance(si, st, namespaces=["default", "kube-public"])
    await scoping.bound_in(test, "default", "kube-public")
    await scoping.scoped(si)


async def test_a_mistake_in_a_template_takes_nobodys_rights(scopes: Knative, scoping: Scoping, calm: Calm) -> None:
    """When a template is changed to a name that is taken, or to impossible subjects, what was bound stays bound (O-5)."""
    test = f"test-{token()}"
    taken, st, si = f"taken-{test}", f"st-{test}", f"si-{test}"
    await scoping.admin.create(CLUSTER_ROLE, by_hand(taken))
    before = await scoping.begin(si, st, test, "default")
    await scoping.template(st, role(taken))
    await scoping.scoped(si, "ScopeTemplateFailed")
    await calm(scopes)
    assert (await scoping.bound(test))["default"]["metadata"]["uid"] == before["default"]["metadata"]["uid"]
    assert await scoping.admin.get(CLUSTER_ROLE, test) is not None

    await scoping.template(st, role(test, subjects=[{**OP, "kind": "Robot"}]))
    await scoping.scoped(si, "ScopingFailed")
    await calm(scopes)
    assert (await scoping.bound(test))["default"]["subjects"] == [OP]
    await scoping.template(st, role(test))
    await scoping.scoped(si)


async def test_what_a_namespace_refuses_keeps_no_wider_right(scopes: Knative, scoping: Scoping, calm: Calm) -> None:
    """A namespace that refuses its binding is told by name; what is no longer declared goes all the same."""
    test = f"test-{token()}"
    full, st, si = f"full-{test}", f"st-{test}", f"si-{test}"
    await scoping.namespace(full)
    quota = obj(RESOURCE_QUOTA, "none", full, spec={"hard": {"count/rolebindings.rbac.authorization.k8s.io": "0"}})
    await scoping.admin.create(RESOURCE_QUOTA, quota)
    await scoping.until(RESOURCE_QUOTA, "none", full, lambda found: (found.get("status") or {}).get("hard"))
    await scoping.begin(si, st, test)
    await scoping.instance(si, st, namespaces=["default", full])
    await scoping.bound_in(test, "default")
    told = await scoping.scoped(si, "ScopingFailed")
    assert "exceeded quota" in told["message"]
    assert told["message"].startswith(f"{full}: ")
    await calm(scopes)

    await scoping.delete(RESOURCE_QUOTA, "none", full)
    await calm(scopes)
    await scoping.bound_in(test, "default", full)
    await scoping.scoped(si)


async def test_a_new_template_of_the_same_name_takes_over_at_once(scopes: Knative, scoping: Scoping, calm: Calm) -> None:
    """A template, and an instance, that are deleted and made anew while nobody looks are served at once."""
    test = f"test-{token()}"
    st, si = f"st-{test}", f"si-{test}"
    await scoping.begin(si, st, test, "default")
    with scoping.asleep(scopes):
        for kind, name in ((SCOPE_TEMPLATE, st), (SCOPE_INSTANCE, si)):
            await scoping.admin.delete(kind, name, propagation="Orphan")
            await scoping.away(kind, name, within=GARBAGE_S)  # which takes the finalizer "orphan" off
        template = await scoping.template(st, role(test))
        await scoping.instance(si, st, namespaces=["default"])
    uid = template["metadata"]["uid"]
    await scoping.role_when(test, lambda found: (found["metadata"].get("labels") or {}).get(TEMPLATE_UID) == uid)
    await scoping.scoped(si)
    await calm(scopes)
    assert set(await scoping.bound(test)) == {"default"}


async def test_a_refusal_in_other_words_each_time_is_told_once(scopes: Knative, scoping: Scoping, calm: Calm) -> None:
    """Words that differ with every try are no news: the system comes to rest, and heals when it may."""
    test = f"test-{token()}"
    st, si = f"st-{test}", f"si-{test}"
    async with refusing(scoping.admin, CLUSTER_ROLE, test):
        await scoping.template(st, role(test))
        await scoping.instance(si, st, namespaces=["default"])
        told = await scoping.templated(st, "TemplatingFailed")
        assert "denied request: request " in told["message"]
        await calm(scopes)
        assert await scoping.templated(st, "TemplatingFailed") == told
        assert told["message"] in (await scoping.scoped(si, "ScopeTemplateFailed"))["message"]
    await scopes.sweep(SCOPES)
    await scoping.bound_in(test, "default")
    await scoping.scoped(si)


async def test_a_sweep_alone_converges(scopes: Knative, scoping: Scoping, knative: Start) -> None:
    """Without a single event one sweep makes roles and bindings, and one removes them when their declarations are gone."""
    test = f"test-{token()}"
    with scoping.asleep(scopes):
        quiet = await knative({}, functions=[SCOPES], watch=False)
        await scoping.template(f"st-{test}", role(test, rules=[READ_SECRETS]))
        await scoping.instance(f"si-{test}", f"st-{test}", namespaces=["default"])
        await quiet.sweep(SCOPES)
        assert set(await scoping.bound(test)) == {"default"}
        assert condition_of(await scoping.get(SCOPE_INSTANCE, f"si-{test}"), "Scoped")["status"] == "True"
        await scoping.template(f"st-{test}", role(f"{test}.new"))
        await quiet.sweep(SCOPES)
        assert set(await scoping.bound(f"{test}.new")) == {"default"}
        assert await scoping.admin.get(CLUSTER_ROLE, test) is None
        await scoping.admin.delete(SCOPE_INSTANCE, f"si-{test}", propagation="Orphan")
        await scoping.away(SCOPE_INSTANCE, f"si-{test}")
        await quiet.sweep(SCOPES)
        assert await scoping.bound(test) == {}
        assert await scoping.admin.get(CLUSTER_ROLE, f"{test}.new") is None


async def test_the_functions_identity_is_bounded(scopes: Knative, scoping: Scoping, identity: Identity) -> None:
    """Even with the function's own token nobody binds cluster-admin, or touches a ClusterRole that is not a template's."""
    test = f"test-{token()}"
    await scoping.admin.create(CLUSTER_ROLE, by_hand(test))
    marked = {"operators.coreos.io/scopeInstanceUID": "forged"}
    reference = {"apiGroup": CLUSTER_ROLE.group, "kind": "ClusterRole"}
    binding: Object = obj(
        CLUSTER_ROLE_BINDING, test, labels=marked, roleRef={**reference, "name": "cluster-admin"}, subjects=[EVE]
    )
    async with await Api.connect(field_manager="tests-thief", kubeconfig=await identity(SCOPES)) as thief:

        async def refused() -> bool:
            try:
                await thief.create(CLUSTER_ROLE_BINDING, binding)
            except AdmissionDenied:
                return True
            await scoping.admin.delete(CLUSTER_ROLE_BINDING, test)
            return False

        await eventually(refused, within=POLICY_S, what="the policy is in force")
        with pytest.raises(AdmissionDenied, match="mark of a ScopeTemplate"):
            await thief.create(
                CLUSTER_ROLE_BINDING, {**binding, "metadata": {"name": test}, "roleRef": {**reference, "name": test}}
            )
        with pytest.raises(AdmissionDenied, match="changes and deletes only"):
            await thief.apply(CLUSTER_ROLE, {**by_hand(test), "metadata": {"name": test, "labels": {TEMPLATE_UID: "forged"}}})
        with pytest.raises(AdmissionDenied, match="changes and deletes only"):
            await thief.delete(CLUSTER_ROLE, test)
        with pytest.raises(AdmissionDenied, match="mark of a ScopeTemplate"):
            await thief.create(CLUSTER_ROLE, by_hand(f"{test}-2"))
