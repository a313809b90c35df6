"""Thieves of the two identities that write for Tenants: RoleBindings of their accounts, and what is delivered as them."""

from __future__ import annotations

from typing import Any

from thieves import Ask, Attack, Theft, apply, create, delete, in_system_namespaces, patch

from tenantry.model.flux.names import TENANT
from tenantry.model.flux.onboarding import (
    GIT_REPOSITORY,
    KUSTOMIZATION,
    binding_of,
    git_repository,
    kustomization,
    shipped_names,
)
from tenantry.model.flux.tenant import DELIVERY_FINALIZER, RIGHTS_FINALIZER, marks_of
from tenantry.model.kinds import NAMESPACE, ROLE_BINDING, Object
from tenantry.testing.objects import obj

NAME, PLACE, OTHER = "fence-tenant", "fence-tenant-apps", "fence-tenant-other"
MARKS = marks_of(NAME)
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "00000000-0000-4000-8000-000000000000"}


def _bound(namespace: str = PLACE, role: str = "cluster-admin", **parts: Any) -> Object:
    return {**binding_of(namespace, shipped_names(NAME), role, MARKS), **parts}


def _with(body: Object, **metadata: Any) -> Object:
    return {**body, "metadata": {**body["metadata"], **metadata}}


def _delivery(namespace: str = PLACE, **spec: Any) -> Object:
    body = kustomization(
        NAME,
        namespace,
        source={"kind": GIT_REPOSITORY.kind, "name": NAME},
        path="./",
        prune=True,
        interval="1m",
        account=NAME,
        labels=MARKS,
    )
    return {**body, "spec": {**body["spec"], **spec}}


def _source(namespace: str = PLACE) -> Object:
    return git_repository(NAME, namespace, url="https://example.com/x", ref={"branch": "main"}, interval="1m", labels=MARKS)


def _held(finalizer: str) -> Ask:
    return apply(TENANT, obj(TENANT, NAME, metadata={"finalizers": [finalizer]}))


def _declares(words: str) -> list[Attack]:
    return [
        Attack("what a Tenant declares", patch(TENANT, NAME, "", ("add", "/spec/clusterRole", "edit")), words),
        Attack("labels of a Tenant", apply(TENANT, obj(TENANT, NAME, labels={"team": "x"})), words),
        Attack("the end of a Tenant", delete(TENANT, NAME), "cannot"),
        Attack("a Tenant", create(TENANT, obj(TENANT, "mine-too", spec={"namespaces": ["kube-system"]})), "cannot"),
        Attack("a finalizer that holds a Tenant", _held("example.com/held"), "may not write the finalizers example.com/held"),
    ]


RIGHTS = Theft(
    function="rbac-aggregation-tenants",
    check="a-41",
    scene=[
        *((NAMESPACE, obj(NAMESPACE, place, labels=MARKS)) for place in (PLACE, OTHER)),
        (TENANT, obj(TENANT, NAME, spec={"namespaces": [PLACE]})),
        (ROLE_BINDING, _bound()),
        (ROLE_BINDING, _with(_bound(), name="of-others", labels={})),
    ],
    needs=[
        create(ROLE_BINDING, _bound(OTHER)),
        apply(ROLE_BINDING, _bound()),
        delete(ROLE_BINDING, f"{NAME}-reconciler", PLACE),
        _held(RIGHTS_FINALIZER),
    ],
    attacks=[
        *_declares("writes its finalizer only"),
        Attack("a binding without label", create(ROLE_BINDING, _with(_bound(OTHER), labels={})), "the label of a Tenant"),
        Attack("the end of a binding of others", delete(ROLE_BINDING, "of-others", PLACE), "the label of a Tenant"),
        Attack("another name", create(ROLE_BINDING, _with(_bound(OTHER), name="mine")), "is called <tenant>-reconciler"),
        Attack(
            "an account of another namespace",
            create(ROLE_BINDING, {**_bound(OTHER), "subjects": [{"kind": "ServiceAccount", "name": "x", "namespace": PLACE}]}),
            "binds an account of its own namespace",
        ),
        Attack(
            "a person",
            create(
                ROLE_BINDING,
                {**_bound(OTHER), "subjects": [{"kind": "User", "name": "x", "apiGroup": "rbac.authorization.k8s.io"}]},
            ),
            "binds an account of its own namespace",
        ),
        *in_system_namespaces("rights in", "in namespaces of the platform", lambda name: create(ROLE_BINDING, _bound(name))),
        Attack(
            "annotations", apply(ROLE_BINDING, _with(_bound(), annotations={"team": "x"})), "may not write the annotations team"
        ),
        Attack(
            "a finalizer", apply(ROLE_BINDING, _with(_bound(), finalizers=["example.com/held"])), "may not write the finalizers"
        ),
        Attack("an owner", create(ROLE_BINDING, _with(_bound(OTHER), ownerReferences=[OWNER])), "writes no owner references"),
    ],
)

DELIVERIES = Theft(
    function="release-provisioning-tenants",
    check="a-42",
    scene=[(GIT_REPOSITORY, _source()), (KUSTOMIZATION, _with(_delivery(), name="of-others", labels={}))],
    needs=[
        create(GIT_REPOSITORY, _source(OTHER)),
        apply(GIT_REPOSITORY, _source()),
        create(KUSTOMIZATION, _delivery()),
        delete(GIT_REPOSITORY, NAME, PLACE),
        _held(DELIVERY_FINALIZER),
    ],
    attacks=[
        *_declares("writes its finalizer only"),
        Attack("a source without label", create(GIT_REPOSITORY, _with(_source(OTHER), labels={})), "the label of a Tenant"),
        Attack("the end of others'", delete(KUSTOMIZATION, "of-others", PLACE), "the label of a Tenant"),
        Attack("another name", create(KUSTOMIZATION, _with(_delivery(), name="mine")), "has its name"),
        Attack("no account", create(KUSTOMIZATION, _delivery(serviceAccountName="")), "has an account"),
        Attack(
            "another cluster",
            create(KUSTOMIZATION, _delivery(kubeConfig={"secretRef": {"name": "x"}})),
            "delivers into this cluster",
        ),
        Attack(
            "another tenant's source",
            create(KUSTOMIZATION, _delivery(sourceRef={"kind": "GitRepository", "name": NAME, "namespace": OTHER})),
            "from its own namespace",
        ),
        *in_system_namespaces(
            "a delivery into", "into namespaces of the platform", lambda name: create(KUSTOMIZATION, _delivery(name))
        ),
        Attack(
            "annotations",
            apply(GIT_REPOSITORY, _with(_source(), annotations={"team": "x"})),
            "may not write the annotations team",
        ),
        Attack("an owner", create(GIT_REPOSITORY, _with(_source(OTHER), ownerReferences=[OWNER])), "writes no owner references"),
    ],
)

THEFTS = (RIGHTS, DELIVERIES)
