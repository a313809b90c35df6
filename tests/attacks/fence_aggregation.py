"""What the thief of rbac-aggregation tries (a-41)."""

from __future__ import annotations

from typing import Any

from thieves import Attack, Theft, apply, create, delete, patch

from tenantry.model.kinds import CLUSTER_ROLE_BINDING, NAMESPACE, ROLE, ROLE_BINDING, Object
from tenantry.testing.objects import obj

RBAC = "rbac.authorization.k8s.io"
OPERATED, PROJECT_ID = "helm.cattle.io/helm-project-operated", "helm.cattle.io/projectId"
MARKS = {OPERATED: "true", PROJECT_ID: "p-fence", "helm.cattle.io/project-helm-chart-role-binding": "shop-dummy"}
RELEASE, HOME, UNMARKED = "shop-dummy", "cattle-project-p-people", "pets-dummy"
ALICE = {"kind": "User", "name": "alice", "apiGroup": RBAC}


def _subject(name: str, kind: str = "User") -> Object:
    return {"kind": kind, "name": name, "apiGroup": RBAC}


def _binding(namespace: str = RELEASE, name: str = "r-new", role: Object | None = None, **fields: Any) -> Object:
    reference = {"apiGroup": RBAC, "kind": "Role", "name": name, **(role or {})}
    made = obj(ROLE_BINDING, name, namespace, MARKS, {"tenantry.dev/project-helm-chart": f"{HOME}/shop"})
    return {**made, "roleRef": reference, "subjects": [ALICE], **fields}


def _theirs(name: str, namespace: str = RELEASE) -> Object:
    made = obj(ROLE_BINDING, name, namespace)
    return {**made, "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": name}, "subjects": [ALICE]}


def _with(**metadata: Any) -> Object:
    made = _binding()
    return {**made, "metadata": {**made["metadata"], **metadata}}


MASTERS = "binds no account of a system namespace"

THEFT = Theft(
    "rbac-aggregation",
    "a-41",
    scene=[
        (NAMESPACE, obj(NAMESPACE, RELEASE, labels={OPERATED: "true", PROJECT_ID: "p-fence"})),
        (NAMESPACE, obj(NAMESPACE, HOME, labels={OPERATED: "true", PROJECT_ID: "p-people"})),
        (NAMESPACE, obj(NAMESPACE, UNMARKED)),
        (ROLE_BINDING, _binding(name="r-ours")),
        (ROLE_BINDING, _theirs("r-theirs")),
        (ROLE_BINDING, _binding("kube-system", "r-marked")),
    ],
    needs=[
        create(ROLE_BINDING, _binding()),
        create(ROLE_BINDING, _binding(subjects=[ALICE, _subject("system:authenticated", "Group")])),
        apply(ROLE_BINDING, _binding(name="r-ours", subjects=[_subject("bob")])),
        delete(ROLE_BINDING, "r-ours", RELEASE),
    ],
    attacks=[
        *(
            Attack(f"a binding in {name}", create(ROLE_BINDING, _binding(name)), "nothing in system namespaces")
            for name in ("kube-system", "tenantry-system", "cattle-helm-system")
        ),
        Attack(
            "the end of a binding in kube-system", delete(ROLE_BINDING, "r-marked", "kube-system"), "nothing in system namespaces"
        ),
        Attack(
            "a namespace that is nobody's release", create(ROLE_BINDING, _binding(UNMARKED)), "only in namespaces with the label"
        ),
        Attack("a registration namespace", create(ROLE_BINDING, _binding(HOME)), "called like those of releases"),
        Attack(
            "another's binding",
            apply(ROLE_BINDING, _binding(name="r-theirs", subjects=[_subject("eve")])),
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
            create(ROLE_BINDING, _binding(subjects=[{"kind": "ServiceAccount", "name": "robot", "namespace": RELEASE}])),
            "binds people, never ServiceAccounts",
        ),
        *(
            Attack(
                f"{kind} {name}",
                create(ROLE_BINDING, _binding(subjects=[_subject(name, kind)])),
                MASTERS,
            )
            for kind, name in (
                ("Group", "system:masters"),
                ("Group", "system:serviceaccounts:kube-system"),
                ("User", "system:serviceaccount:kube-system:default"),
                ("User", "system:serviceaccount:tenantry-system:rbac-aggregation"),
                ("User", "system:serviceaccount:cattle-helm-system:helm-shop-dummy"),
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
            create(
                CLUSTER_ROLE_BINDING,
                {
                    **obj(CLUSTER_ROLE_BINDING, "mine"),
                    "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"},
                    "subjects": [ALICE],
                },
            ),
            "cannot",
        ),
        Attack("a Role", create(ROLE, {**obj(ROLE, "mine", RELEASE), "rules": []}), "cannot"),
        Attack(
            "the label of a release namespace",
            patch(NAMESPACE, UNMARKED, "", ("add", "/metadata/labels/team", "x")),
            "cannot",
        ),
    ],
)
