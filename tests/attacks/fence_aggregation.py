"""What the thief of rbac-aggregation tries (a-41)."""

from __future__ import annotations

from typing import Any

from rights import RBAC, account, cluster_role, group, user
from thieves import Attack, Theft, apply, create, delete, in_system_namespaces, patch, varied

from tenantry.model.kinds import CLUSTER_ROLE_BINDING, NAMESPACE, ROLE, ROLE_BINDING, Object
from tenantry.testing.objects import obj

OPERATED, PROJECT_ID = "helm.cattle.io/helm-project-operated", "helm.cattle.io/projectId"
MARKS = {OPERATED: "true", PROJECT_ID: "p-fence", "helm.cattle.io/project-helm-chart-role-binding": "shop-dummy"}
RELEASE, HOME, UNMARKED = "shop-dummy", "cattle-project-p-people", "pets-dummy"
ALICE = user("alice")


def _binding(namespace: str = RELEASE, name: str = "r-new", role: Object | None = None, **fields: Any) -> Object:
    reference = {"apiGroup": RBAC, "kind": "Role", "name": name, **(role or {})}
    of = {"tenantry.dev/project-helm-chart": f"{HOME}/shop", "tenantry.dev/level-taken-from": "admin=admin"}
    return obj(ROLE_BINDING, name, namespace, MARKS, of, **{"roleRef": reference, "subjects": [ALICE], **fields})


def _with(**metadata: Any) -> Object:
    return _binding(metadata=metadata)


THEFT = Theft(
    "rbac-aggregation",
    "a-41",
    scene=[
        (NAMESPACE, obj(NAMESPACE, RELEASE, labels={OPERATED: "true", PROJECT_ID: "p-fence"})),
        (NAMESPACE, obj(NAMESPACE, HOME, labels={OPERATED: "true", PROJECT_ID: "p-people"})),
        (NAMESPACE, obj(NAMESPACE, UNMARKED)),
        (ROLE_BINDING, _binding(name="r-ours")),
        (ROLE_BINDING, varied(_binding(name="r-theirs"), ("metadata", {"name": "r-theirs", "namespace": RELEASE}))),
        (ROLE_BINDING, _binding("kube-system", "r-marked")),
    ],
    needs=[
        create(ROLE_BINDING, _binding()),
        create(ROLE_BINDING, _binding(subjects=[ALICE, group("system:authenticated")])),
        apply(ROLE_BINDING, _binding(name="r-ours", subjects=[user("bob")])),
        delete(ROLE_BINDING, "r-ours", RELEASE),
    ],
    attacks=[
        *in_system_namespaces("a binding in", "nothing in system namespaces", lambda name: create(ROLE_BINDING, _binding(name))),
        Attack(
            "the end of a binding in kube-system", delete(ROLE_BINDING, "r-marked", "kube-system"), "nothing in system namespaces"
        ),
        Attack(
            "a namespace that is nobody's release", create(ROLE_BINDING, _binding(UNMARKED)), "only in namespaces with the label"
        ),
        Attack("a registration namespace", create(ROLE_BINDING, _binding(HOME)), "called like those of releases"),
        Attack(
            "another's binding",
            apply(ROLE_BINDING, _binding(name="r-theirs", subjects=[user("eve")])),
            "only RoleBindings that it made",
        ),
        Attack("the end of another's binding", delete(ROLE_BINDING, "r-theirs", RELEASE), "only RoleBindings that it made"),
        Attack(
            "a ClusterRole that it does not have itself",
            create(ROLE_BINDING, _binding(name="view", role={"kind": "ClusterRole"})),
            "attempting to grant",
        ),
        Attack(
            "a ClusterRole that it has, as everybody does",
            create(ROLE_BINDING, _binding(name="system:discovery", role={"kind": "ClusterRole"})),
            "binds Roles, never ClusterRoles",
        ),
        Attack("a Role of another name", create(ROLE_BINDING, _binding(role={"name": "r-other"})), "has the name of its Role"),
        Attack(
            "an account",
            create(ROLE_BINDING, _binding(subjects=[account("robot", RELEASE)])),
            "binds people, never ServiceAccounts",
        ),
        *(
            Attack(
                f"{who['kind']} {who['name']}",
                create(ROLE_BINDING, _binding(subjects=[who])),
                "binds no account of a system namespace",
            )
            for who in (
                group("system:masters"),
                group("system:serviceaccounts:kube-system"),
                user("system:serviceaccount:kube-system:default"),
                user("system:serviceaccount:tenantry-system:rbac-aggregation"),
                user("system:serviceaccount:cattle-helm-system:helm-shop-dummy"),
            )
        ),
        Attack("further labels", create(ROLE_BINDING, _with(labels={**MARKS, "team": "x"})), "may not write the labels team"),
        Attack(
            "further annotations", create(ROLE_BINDING, _with(annotations={"note": "x"})), "may not write the annotations note"
        ),
        Attack("a finalizer", create(ROLE_BINDING, _with(finalizers=["example.com/held"])), "writes no finalizers"),
        Attack(
            "an owner",
            create(
                ROLE_BINDING,
                _with(ownerReferences=[{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "u"}]),
            ),
            "writes no owner references",
        ),
        Attack(
            "a binding of the whole cluster",
            create(CLUSTER_ROLE_BINDING, obj(CLUSTER_ROLE_BINDING, "mine", roleRef=cluster_role("view"), subjects=[ALICE])),
            "cannot",
        ),
        Attack("a Role", create(ROLE, obj(ROLE, "mine", RELEASE, rules=[])), "cannot"),
        Attack(
            "the label of a release namespace",
            patch(NAMESPACE, UNMARKED, "", ("add", "/metadata/labels/team", "x")),
            "cannot",
        ),
    ],
)
