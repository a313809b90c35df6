"""What the thief of rbac-aggregation's duty for Paas tries (a-41).

Which ClusterRoles, namespaces and kinds of subjects the PaasConfig lets it bind: tests/cluster/test_paas_rights_told.py.
"""

from __future__ import annotations

from typing import Any

from paasing import CONFIG
from rights import RBAC, cluster_role, group
from thieves import Attack, Theft, apply, create, delete, patch

from tenantry.model.kinds import CLUSTER_ROLE_BINDING, CONFIG_MAP, NAMESPACE, ROLE_BINDING, SECRET, Object
from tenantry.model.paas.names import ARGO_CD, GROUP, MANAGED_BY_PAAS, PAAS, PAAS_CONFIG, PAAS_UID, RIGHTS_FINALIZER
from tenantry.testing.objects import obj

NAME, PLACE, ARGO = "fence-rights", "fence-rights-a", "fence-rights-argocd"
LABELS, MARK = {MANAGED_BY_PAAS: NAME}, {PAAS_UID: "u"}
CAPABILITIES = {"argocd": {"default_permissions": {"sa": ["fence-given", "fence-kept"]}}}
"""Of the one PaasConfig, for the thieves of other duties."""
NOT_MADE = "only RoleBindings and Groups with the mark"
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "u"}


def _binding(name: str = "paas-view", role: str = "view", **fields: Any) -> Object:
    reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": role}
    marks = {"labels": LABELS, "annotations": MARK}
    return obj(ROLE_BINDING, name, PLACE, **{**marks, "roleRef": reference, "subjects": [group(f"{NAME}-us")], **fields})


def _group(name: str, **fields: Any) -> Object:
    return obj(GROUP, name, **{"labels": LABELS, "annotations": MARK, "users": ["me"], **fields})


def _policy(namespace: str = ARGO, data: dict[str, str] | None = None, **fields: Any) -> Object:
    return obj(CONFIG_MAP, "argocd-rbac-cm", namespace, **{"labels": LABELS, "data": data or {"policy.csv": "x"}, **fields})


def _of_paas(name: str) -> Object:
    return obj(NAMESPACE, name, labels=LABELS, annotations=MARK)


THEFT = Theft(
    "rbac-aggregation-paas",
    "a-41",
    scene=[
        (PAAS_CONFIG, obj(PAAS_CONFIG, "fence", spec={"rolemappings": CONFIG["rolemappings"], "capabilities": CAPABILITIES})),
        (PAAS, obj(PAAS, NAME, spec={"requestor": "x", "quota": {}})),
        *((NAMESPACE, _of_paas(name)) for name in (PLACE, ARGO)),
        (ROLE_BINDING, _binding("paas-edit", "edit")),
        (ROLE_BINDING, _binding("paas-admin", "admin", labels={}, annotations={})),
        (GROUP, _group(f"{NAME}-us")),
        (GROUP, _group("cluster-admins", labels={}, annotations={})),
    ],
    needs=[
        create(ROLE_BINDING, _binding()),
        apply(ROLE_BINDING, _binding("paas-edit", "edit", subjects=[group("others"), group(f"{NAME}-us")])),
        delete(ROLE_BINDING, "paas-edit", PLACE),
        create(GROUP, _group(f"{NAME}-them")),
        apply(GROUP, _group(f"{NAME}-us", users=["me", "you"])),
        delete(GROUP, f"{NAME}-us"),
        create(CONFIG_MAP, _policy()),
        create(ARGO_CD, obj(ARGO_CD, "argo-service", ARGO, labels=LABELS, spec={"rbac": {"policy": "x"}})),
        apply(PAAS, obj(PAAS, NAME, metadata={"finalizers": [RIGHTS_FINALIZER]})),
    ],
    attacks=[
        Attack(
            "another's binding",
            apply(ROLE_BINDING, _binding("paas-admin", "admin")),
            "only RoleBindings and Groups with the mark",
        ),
        Attack(
            "the end of another's binding",
            delete(ROLE_BINDING, "paas-admin", PLACE),
            "only RoleBindings and Groups with the mark",
        ),
        Attack("another's Group", apply(GROUP, _group("cluster-admins")), NOT_MADE),
        Attack("the end of another's Group", delete(GROUP, "cluster-admins"), NOT_MADE),
        Attack("a binding without a mark", create(ROLE_BINDING, _binding(annotations={})), "carries the mark of a Paas"),
        Attack("a Group without a mark", create(GROUP, _group("mine", annotations={})), "carries the mark of a Paas"),
        Attack("a binding of another name", create(ROLE_BINDING, _binding("mine")), "is called paas-<ClusterRole>"),
        *(
            Attack(f"Group {name}", create(ROLE_BINDING, _binding(subjects=[group(name)])), "whose name begins with system:")
            for name in ("system:masters", "system:authenticated", "system:serviceaccounts")
        ),
        Attack("a policy elsewhere", create(CONFIG_MAP, _policy(PLACE)), "only in a Paas' namespace for it"),
        Attack("other contents", create(CONFIG_MAP, _policy(data={"kubeconfig": "x"})), "policy.csv, policy.default and scopes"),
        Attack(
            "another field of an ArgoCD",
            create(ARGO_CD, obj(ARGO_CD, "argo-service", ARGO, labels=LABELS, spec={"server": {"insecure": True}})),
            "writes spec.rbac of an ArgoCD",
        ),
        Attack("a label of a policy", create(CONFIG_MAP, _policy(labels={**LABELS, "team": "x"})), "writes one label"),
        Attack("what a Paas declares", apply(PAAS, obj(PAAS, NAME, spec={"requestor": "me", "quota": {}})), "its finalizer only"),
        Attack(
            "annotations", create(ROLE_BINDING, _binding(annotations={**MARK, "note": "x"})), "may not write the annotations note"
        ),
        Attack(
            "a finalizer that holds a Paas",
            apply(PAAS, obj(PAAS, NAME, metadata={"finalizers": ["example.com/held"]})),
            "may not write the finalizers example.com/held",
        ),
        Attack("an owner", create(ROLE_BINDING, _binding(metadata={"ownerReferences": [OWNER]})), "writes no owner references"),
        Attack(
            "a binding of the whole cluster",
            create(CLUSTER_ROLE_BINDING, obj(CLUSTER_ROLE_BINDING, "mine", roleRef=cluster_role("view"), subjects=[group("x")])),
            "cannot",
        ),
        Attack("a Secret", delete(SECRET, "any", PLACE), "cannot"),
        Attack("a namespace", patch(NAMESPACE, PLACE, "", ("add", "/metadata/labels/team", "x")), "cannot"),
    ],
)
