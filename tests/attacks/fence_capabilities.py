"""What the thieves try whose identities give capabilities of Paas something: rights of service accounts, and elements."""

from __future__ import annotations

from typing import Any

from rights import account, cluster_role, user
from thieves import Attack, Theft, apply, create, delete, patch, varied, with_team

from tenantry.model.kinds import CLUSTER_ROLE_BINDING, NAMESPACE, ROLE_BINDING, Object
from tenantry.model.paas.names import (
    ACCOUNTS_FINALIZER,
    APPLICATION_SET,
    ELEMENTS,
    HAND_OVER_FINALIZER,
    MANAGED_BY_PAAS,
    PAAS,
    PAAS_UID,
    SHARED,
    SUBJECTS_FINALIZER,
)
from tenantry.testing.objects import obj

MINE, OTHER, ASKS = "fence-argocd", "fence-somebody", "fence-capable"
PERMISSIONS = "tenantry.dev/paas-permissions"
SA = account("sa", MINE)
TEAM = {"team": "x"}
TAKES_ALONG = {"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "11111111-1111-1111-1111-111111111111"}


# -- permissions -----------------------------------------------------------------------------------------------------


def _shared(role: str = "fence-given", *subjects: Object, name: str = "", **metadata: Any) -> Object:
    made = obj(CLUSTER_ROLE_BINDING, name or f"paas-{role}", "", {PERMISSIONS: "cluster"}, annotations={SHARED: "permissions"})
    made["metadata"] |= metadata
    return {**made, "roleRef": cluster_role(role), "subjects": list(subjects) or [SA]}


def _local(*subjects: Object, namespace: str = MINE) -> Object:
    marks = {"labels": {PERMISSIONS: "namespace", MANAGED_BY_PAAS: "fence"}, "annotations": {PAAS_UID: "u"}}
    made = obj(ROLE_BINDING, "paas-sa-fence-given", namespace, metadata=marks)
    return {**made, "roleRef": cluster_role("fence-given"), "subjects": list(subjects) or [account("sa", namespace)]}


def _held(name: str, *finalizers: str) -> Object:
    return obj(NAMESPACE, name, metadata={"finalizers": list(finalizers)})


THEIRS = _shared(name="theirs-of-capabilities")
ONLY_OURS = "changes and deletes only bindings with the mark"
ACCOUNTS = Theft(
    function="scope-binding-paas",
    check="a-43",
    scene=[
        (NAMESPACE, obj(NAMESPACE, MINE, labels={MANAGED_BY_PAAS: "fence"}, annotations={PAAS_UID: "u"})),
        (NAMESPACE, obj(NAMESPACE, OTHER)),
        (PAAS, obj(PAAS, ASKS, spec={"requestor": "x", "quota": {}})),
        # Which ClusterRoles capabilities have says the PaasConfig of `fence_rights`.
        (CLUSTER_ROLE_BINDING, varied(THEIRS, ("metadata.annotations", {}), ("metadata.labels", {}))),
        (CLUSTER_ROLE_BINDING, _shared("fence-kept")),
    ],
    needs=[
        create(CLUSTER_ROLE_BINDING, _shared()),
        apply(CLUSTER_ROLE_BINDING, _shared("fence-kept", SA, account("more", MINE))),
        delete(CLUSTER_ROLE_BINDING, "paas-fence-kept"),
        create(ROLE_BINDING, _local()),
        apply(NAMESPACE, _held(MINE, SUBJECTS_FINALIZER)),
        apply(PAAS, obj(PAAS, ASKS, metadata={"finalizers": [ACCOUNTS_FINALIZER]})),
    ],
    attacks=[
        Attack("another's binding", apply(CLUSTER_ROLE_BINDING, THEIRS), ONLY_OURS),
        Attack("the end of another's binding", delete(CLUSTER_ROLE_BINDING, "theirs-of-capabilities"), ONLY_OURS),
        Attack(
            "a binding without mark",
            create(CLUSTER_ROLE_BINDING, varied(_shared(), ("metadata.annotations", {}))),
            "carries the mark of a Paas' permissions",
        ),
        Attack(
            "a binding without the label by which its role is judged",
            create(CLUSTER_ROLE_BINDING, varied(_shared(), ("metadata.labels", {}))),
            "and the label tenantry.dev/paas-permissions",
        ),
        Attack("a binding by another name", create(CLUSTER_ROLE_BINDING, _shared(name="mine")), "is called paas-<ClusterRole>"),
        Attack("a user", create(CLUSTER_ROLE_BINDING, _shared("fence-given", user("eve"))), "binds ServiceAccounts of Paas"),
        Attack(
            "an account of ours",
            create(CLUSTER_ROLE_BINDING, _shared("fence-given", account("scope-binding-paas", "tenantry-system"))),
            "never those of Tenantry",
        ),
        Attack(
            "an account of another namespace in this one",
            create(ROLE_BINDING, _local(account("sa", OTHER))),
            "in a namespace those of that namespace",
        ),
        Attack("a namespace", create(NAMESPACE, obj(NAMESPACE, "fence-mine")), "cannot"),
        Attack("the end of a Paas", delete(PAAS, ASKS), "cannot"),
        Attack(
            "what a Paas declares",
            patch(PAAS, ASKS, "", ("add", "/spec/requestor", "me")),
            "of namespaces and Paas scope-binding writes finalizers only",
        ),
        Attack(
            "a namespace that is no Paas', for ever",
            apply(NAMESPACE, _held(OTHER, SUBJECTS_FINALIZER)),
            "holds only namespaces with the label",
        ),
        Attack(
            "further labels",
            create(CLUSTER_ROLE_BINDING, varied(_shared(), ("metadata.labels", with_team))),
            "may not write the labels team",
        ),
        Attack(
            "labels of a namespace", apply(NAMESPACE, obj(NAMESPACE, MINE, labels={"team": "x"})), "may not write the labels team"
        ),
        Attack(
            "further annotations",
            create(CLUSTER_ROLE_BINDING, varied(_shared(), ("metadata.annotations", with_team))),
            "may not write the annotations team",
        ),
        Attack(
            "a finalizer that holds a namespace",
            apply(NAMESPACE, _held(MINE, "example.com/held")),
            "may not write the finalizers example.com/held",
        ),
        Attack(
            "an owner that takes a binding along",
            create(CLUSTER_ROLE_BINDING, _shared(ownerReferences=[TAKES_ALONG])),
            "writes no owner references",
        ),
    ],
)


# -- hand-over -------------------------------------------------------------------------------------------------------

FIRST = "/spec/generators/0/list"
GIT = {"git": {"repoURL": "https://git.example.com/all"}}


def _set(**parts: Any) -> Object:
    return obj(APPLICATION_SET, "fence-set", MINE, **parts)


def _step(*steps: tuple[str, str, Any]) -> Any:
    return patch(APPLICATION_SET, "fence-set", MINE, *steps)


HAND_OVER = Theft(
    function="release-provisioning-paas",
    check="a-42",
    scene=[
        (APPLICATION_SET, _set(spec={"generators": [{"list": {"elements": []}}, GIT], "template": {"a": "b"}})),
    ],
    needs=[
        _step(
            ("add", "/spec/generators/0/list/elements/-", {"paas": "x"}), ("add", "/metadata/annotations", {ELEMENTS: "argocd"})
        ),
        apply(PAAS, obj(PAAS, ASKS, metadata={"finalizers": [HAND_OVER_FINALIZER]})),
    ],
    attacks=[
        Attack("another ApplicationSet", create(APPLICATION_SET, obj(APPLICATION_SET, "mine", MINE)), "cannot"),
        Attack("the end of one", delete(APPLICATION_SET, "fence-set", MINE), "cannot"),
        Attack("what is made of elements", _step(("replace", "/spec/template/a", "evil")), "writes generators only"),
        Attack(
            "what a Paas declares",
            patch(PAAS, ASKS, "", ("add", "/spec/requestor", "me")),
            "of Paas the finalizer only",
        ),
        Attack(
            "another repository",
            _step(("replace", "/spec/generators/1/git/repoURL", "https://evil.example.com")),
            "writes list generators, and no others",
        ),
        Attack("labels", apply(APPLICATION_SET, _set(labels=TEAM)), "may not write the labels team"),
        Attack(
            "further annotations", apply(APPLICATION_SET, _set(annotations={"team": "x"})), "may not write the annotations team"
        ),
        Attack(
            "a finalizer that holds a Paas",
            apply(PAAS, obj(PAAS, ASKS, metadata={"finalizers": ["example.com/held"]})),
            "may not write the finalizers example.com/held",
        ),
        Attack(
            "an owner that takes one along",
            apply(APPLICATION_SET, _set(metadata={"ownerReferences": [TAKES_ALONG]})),
            "writes no owner references",
        ),
    ],
)

THEFTS = (ACCOUNTS, HAND_OVER)
