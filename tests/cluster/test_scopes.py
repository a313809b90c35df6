"""Scopes: what templates and instances declare holds, and follows every change (sb-1 to sb-12)."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

import pytest
import yaml
from people import may, token
from scoping import (
    GENERATE_NAME,
    INSTANCE_HASH,
    INSTANCE_UID,
    OP,
    READ_SECRETS,
    TEMPLATE_HASH,
    TEMPLATE_UID,
    Scoping,
    condition_of,
    role,
)

from tenantry.local.knative import Knative
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    ROLE_BINDING,
    SCOPE_INSTANCE,
    SCOPE_INSTANCE_FRAMEWORK,
    SCOPE_TEMPLATE,
    SCOPE_TEMPLATE_FRAMEWORK,
    Kind,
    labels_of,
)

FAMILIES = {
    "operators.coreos.com": (SCOPE_TEMPLATE, SCOPE_INSTANCE),
    "operators.io.operator-framework": (SCOPE_TEMPLATE_FRAMEWORK, SCOPE_INSTANCE_FRAMEWORK),
}


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> tuple[Kind, Kind]:
    """The two kinds, in each API group."""
    return FAMILIES[request.param]


@pytest.mark.check("sb-1")
@pytest.mark.check("sb-2")
@pytest.mark.check("sb-3")
@pytest.mark.check("sb-4")
async def test_an_instance_gives_a_template_its_rights(scopes: Knative, scoping: Scoping, family: tuple[Kind, Kind]) -> None:
    """A template alone makes nothing; with an instance its role is made, bound where the instance says, and nowhere else."""
    test, op = f"test-{token()}", f"op-{token()}"
    subject = {**OP, "name": op}
    template_kind, instance_kind = family
    template = await scoping.template(f"st1-{test}", role(test, subjects=[subject]), kind=template_kind)
    told = await scoping.templated(f"st1-{test}", kind=template_kind)
    assert (told["status"], told["message"]) == ("True", f'ScopeTemplate "st1-{test}" successfully reconciled')
    assert await scoping.admin.get(CLUSTER_ROLE, test) is None

    instance = await scoping.instance(f"si1-{test}", f"st1-{test}", kind=instance_kind, namespaces=["default"])
    told = await scoping.scoped(f"si1-{test}", kind=instance_kind)
    assert (told["status"], told["message"]) == ("True", f'ScopeInstance "si1-{test}" reconciled successfully')

    made = await scoping.get(CLUSTER_ROLE, test)
    assert made["rules"] == [READ_SECRETS]
    labels = labels_of(made)
    assert (labels[TEMPLATE_UID], labels[GENERATE_NAME]) == (template["metadata"]["uid"], test)
    assert 0 < len(labels[TEMPLATE_HASH]) <= 10
    (owner,) = made["metadata"]["ownerReferences"]
    assert (owner["uid"], owner["name"], owner["controller"]) == (template["metadata"]["uid"], f"st1-{test}", True)

    bound = await scoping.bound(test)
    assert set(bound) == {"default"}
    binding = bound["default"]
    assert binding["metadata"]["name"].startswith(f"{test}-")
    assert binding["roleRef"] == {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": test}
    assert binding["subjects"] == [subject]
    labels = labels_of(binding)
    assert (labels[INSTANCE_UID], labels[GENERATE_NAME]) == (instance["metadata"]["uid"], test)
    assert 0 < len(labels[INSTANCE_HASH]) <= 10
    (owner,) = binding["metadata"]["ownerReferences"]
    assert (owner["uid"], owner["kind"], owner["controller"]) == (instance["metadata"]["uid"], "ScopeInstance", True)

    user = f"system:serviceaccount:ops:{op}"
    assert await may(scoping.admin, user, "list", "secrets", "default")
    assert not await may(scoping.admin, user, "list", "secrets", "kube-public")
    assert not await may(scoping.admin, user, "delete", "secrets", "default")


@pytest.mark.check("sb-5")
@pytest.mark.check("sb-6")
@pytest.mark.check("sb-7")
@pytest.mark.check("sb-8")
@pytest.mark.check("sb-9")
async def test_bindings_follow_the_namespaces_of_an_instance(scopes: Knative, scoping: Scoping) -> None:
    """Namespaces come and go in place; to the whole cluster and back access is never missing."""
    test = f"test-{token()}"
    other = f"t2-{test}"
    st1, si1 = f"st1-{test}", f"si1-{test}"
    await scoping.namespace(other)
    first = await scoping.begin(si1, st1, test, "default")
    await scoping.instance(si1, st1, namespaces=["default", other])
    both = await scoping.bound_in(test, "default", other)
    assert both["default"]["metadata"]["name"] == first["default"]["metadata"]["name"]

    await scoping.instance(si1, st1, namespaces=[other])
    left = await scoping.bound_in(test, other)
    assert left[other]["metadata"]["uid"] == both[other]["metadata"]["uid"]

    since = {kind: (await scoping.admin.list(kind)).resource_version for kind in (ROLE_BINDING, CLUSTER_ROLE_BINDING)}
    await scoping.instance(si1, st1)
    whole = await scoping.bound_in(test, "")
    assert whole[""]["metadata"]["name"].startswith(f"{test}-")
    await scoping.scoped(si1)
    await scoping.instance(si1, st1, namespaces=["default"])
    await scoping.bound_in(test, "default")
    changes = sorted([change for kind in since for change in await _changes(scoping, kind, since[kind], test)])
    assert [step for _, step in changes] == [1, -1, 1, -1], "at some moment nothing was bound"


async def _changes(scoping: Scoping, kind: Kind, since: str, name: str) -> list[tuple[int, int]]:
    """When (resource version) a binding of a role was made (1) or deleted (-1), as a watch tells it afterwards."""
    steps, found = {"ADDED": 1, "DELETED": -1}, []
    selector = f"{GENERATE_NAME}={name}"
    watch = scoping.admin.watch(kind, resource_version=since, label_selector=selector, timeout_s=60)
    async with aclosing(watch) as told:  # type: ignore[type-var]
        async for change, obj in told:
            if change in steps:
                found.append((int(obj["metadata"]["resourceVersion"]), steps[change]))
            if len(found) == 2:
                break
    return found


@pytest.mark.check("sb-10")
@pytest.mark.check("sb-11")
@pytest.mark.check("sb-12")
async def test_bindings_follow_the_template(scopes: Knative, scoping: Scoping) -> None:
    """Rules and subjects change in place; a new name makes a new role with a new binding, and the old ones go."""
    test = f"test-{token()}"
    st1, si1 = f"st1-{test}", f"si1-{test}"
    await scoping.template(st1, role(f"{test}.a"))
    await scoping.instance(si1, st1, namespaces=["default"])
    first = await scoping.bound_in(test, "default")
    made = await scoping.get(CLUSTER_ROLE, f"{test}.a")

    await scoping.template(st1, role(f"{test}.a", rules=[{**READ_SECRETS, "verbs": ["get"]}]))
    now = await scoping.role_when(f"{test}.a", lambda found: found["rules"][0]["verbs"] == ["get"])
    assert now["metadata"]["uid"] == made["metadata"]["uid"]
    manager = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "manager"}
    await scoping.template(st1, role(f"{test}.a", subjects=[{"kind": "Group", "name": "manager"}]))
    name = first["default"]["metadata"]["name"]
    changed = await scoping.until(ROLE_BINDING, name, "default", lambda found: found["subjects"] == [manager])
    assert changed["metadata"]["uid"] == first["default"]["metadata"]["uid"]

    await scoping.template(st1, role(f"{test}.b"))
    await scoping.no_role(f"{test}.a")
    bound = await scoping.bound_in(test, "default")
    assert bound["default"]["roleRef"]["name"] == f"{test}.b"
    assert bound["default"]["metadata"]["name"].startswith(f"{test}.b-")


SEED_TEMPLATE = """
apiVersion: operators.coreos.com/v1alpha1
kind: ScopeTemplate
metadata:
  name: foo
spec:
  clusterRoles: # Any number of clusterRoles can be defined
    - generateName: fooClusterRole-
      rules:
        - apiGroups:
            - ""
          resources:
            - pods
            - services
          verbs:
            - get
            - list
            - create
            - update
            - delete
            - patch
            - watch
  bindingTemplate:
    subjects: # Supports multiple subjects, could be limited to one.
      - kind: ServiceAccount # MVP can support users, groups, and serviceAccounts.
        name: fooServiceAccount
        namespace: # Can be required for the MVP, but must be updated based on the namespace of the serviceAccount.
"""
SEED_INSTANCE = """
apiVersion: operators.coreos.com/v1alpha1
kind: ScopeInstance
metadata:
  name: foo
spec:
  scopeTemplateName: foo # Required field.
  namespaces: # If the namespaces array is empty, a clusterRoleBinding will be cretaed.
    - foo # A roleBinding should be created in the foo namespace
    - bar # A roleBinding should be created in the bar namespace
  namespaceSelector:
    fooKey: barValue # Support roleBinding generation in namespaces with given label.
"""


@pytest.mark.check("sb-38")
@pytest.mark.check("sb-39")
@pytest.mark.check("sb-40")
async def test_the_examples_of_the_design_document(scopes: Knative, scoping: Scoping) -> None:
    """The examples of Oria's design apply as they stand and give what it says: one role, bound in foo, bar and by label.

    No ServiceAccount can be called fooServiceAccount, so Kubernetes refuses to bind it: that is told, and heals with the name.
    """
    for name in ("foo", "bar"):
        await scoping.namespace(name)
    await scoping.namespace("seed-labelled", labels={"fooKey": "barValue"})
    template: dict[str, Any] = yaml.safe_load(SEED_TEMPLATE)
    await scoping.admin.apply(SCOPE_TEMPLATE, template)
    await scoping.templated("foo")
    assert not await scoping.bound("fooClusterRole-")
    await scoping.admin.apply(SCOPE_INSTANCE, yaml.safe_load(SEED_INSTANCE))
    assert "fooServiceAccount" in (await scoping.scoped("foo", "ScopingFailed"))["message"]
    assert not await scoping.bound("fooClusterRole-")
    template["spec"]["bindingTemplate"]["subjects"][0]["name"] = "foo-service-account"
    await scoping.admin.apply(SCOPE_TEMPLATE, template)
    await scoping.bound_in("fooClusterRole-", "foo", "bar", "seed-labelled")
    await scoping.scoped("foo")

    bound = await scoping.bound("fooClusterRole-")
    assert set(bound) == {"foo", "bar", "seed-labelled"}
    names = {binding["roleRef"]["name"] for binding in bound.values()}
    made = await scoping.get(CLUSTER_ROLE, names.pop())
    assert not names
    assert made["metadata"]["ownerReferences"][0]["name"] == "foo"
    assert made["rules"][0]["resources"] == ["pods", "services"]
    for namespace, binding in bound.items():
        assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "foo-service-account"}]
        assert binding["metadata"]["ownerReferences"][0]["kind"] == "ScopeInstance"
        assert await may(scoping.admin, f"system:serviceaccount:{namespace}:foo-service-account", "list", "pods", namespace)
        assert not await may(scoping.admin, "system:serviceaccount:ops:foo-service-account", "list", "pods", namespace)

    for verb in ("get", "list", "watch"):
        template["spec"]["clusterRoles"][0]["rules"][0]["verbs"] = [verb]
        await scoping.admin.apply(SCOPE_TEMPLATE, template)
        now = await scoping.role_when(made["metadata"]["name"], lambda found, verb=verb: found["rules"][0]["verbs"] == [verb])
        assert now["metadata"]["uid"] == made["metadata"]["uid"]

    await scoping.delete(SCOPE_INSTANCE, "foo")
    await scoping.no_role(made["metadata"]["name"])
    assert not await scoping.bound("fooClusterRole-")
    assert condition_of(await scoping.get(SCOPE_TEMPLATE, "foo"), "Templated")["status"] == "True"
