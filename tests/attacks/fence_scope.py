"""What the thieves of scope-binding's identities try, one for each duty (a-43)."""

from __future__ import annotations

from typing import Any

import fence_injection
from rights import RBAC, account, cluster_role, group, user
from thieves import Attack, Theft, apply, create, delete, in_system_namespaces, varied, with_team

from tenantry.model.kinds import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    DEPLOYMENT,
    NAMESPACE,
    NAMESPACE_SCOPE,
    POD,
    ROLE,
    ROLE_BINDING,
    SCOPE_INSTANCE,
    SCOPE_TEMPLATE,
    Object,
)
from tenantry.testing.objects import obj

OPS, MEMBER = "ops-fence", "member-fence"
UID = "11111111-1111-1111-1111-111111111111"
TEMPLATE, INSTANCE = "operators.coreos.io/scopeTemplateUID", "operators.coreos.io/scopeInstanceUID"
FROM, GENERATED = "scope-binding/from-namespace", "scope-binding/generated"
EVE = user("eve")
GIVEN = f"namespacescope-managed-role-from-{OPS}"
THEIRS = f"{GIVEN}-theirs"
TAKES_ALONG = {"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": UID}
MARKED_ANNOTATION = "nss.ibm.com/namespaceList"


# -- scopes ----------------------------------------------------------------------------------------------------------


def _owner(kind: str = "ScopeTemplate", uid: str = UID) -> Object:
    return {"apiVersion": "operators.coreos.com/v1alpha1", "kind": kind, "name": "x", "uid": uid}


def _role(name: str = "fence-role", **metadata: Any) -> Object:
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    return obj(CLUSTER_ROLE, name, "", {TEMPLATE: UID}, rules=rules, metadata={"ownerReferences": [_owner()], **metadata})


def _bound(name: str = "fence-bound", *subjects: Object, role: str = "fence-role") -> Object:
    owned, bound = {"ownerReferences": [_owner("ScopeInstance")]}, list(subjects) or [EVE]
    made = obj(CLUSTER_ROLE_BINDING, name, "", {INSTANCE: UID}, metadata=owned)
    return {**made, "roleRef": cluster_role(role), "subjects": bound}


def _role_named(name: str) -> Object:
    return {"apiGroup": RBAC, "kind": "Role", "name": name}


SCOPES = [
    Attack(
        "a binding to a Role",
        create(ROLE_BINDING, obj(ROLE_BINDING, THEIRS, MEMBER, roleRef=_role_named(THEIRS), subjects=[account("op", OPS)])),
        "binds ClusterRoles only",
    ),
    Attack("a ClusterRole without mark", create(CLUSTER_ROLE, _role(labels={})), "carries the mark of a Scope"),
    Attack("another's ClusterRole", apply(CLUSTER_ROLE, _role("theirs-of-fence")), "only ClusterRoles and bindings of Scope"),
    Attack("the end of cluster-admin", delete(CLUSTER_ROLE, "cluster-admin"), "only ClusterRoles and bindings of Scope"),
    Attack("the end of another's binding", delete(CLUSTER_ROLE_BINDING, "theirs-of-fence"), "only ClusterRoles and bindings of"),
    Attack(
        "a ClusterRole of no template",
        create(CLUSTER_ROLE, _role(ownerReferences=[_owner(uid="22222222-2222-2222-2222-222222222222")])),
        "and is owned by it",
    ),
    *(
        Attack(
            f"everything, by {name}", create(CLUSTER_ROLE_BINDING, _bound(role=name)), "neither writes nor binds the ClusterRoles"
        )
        for name in ("cluster-admin", "admin", "edit", "view", "system:node", "tenantry-lock-enforcement")
    ),
    Attack("its own rights", create(CLUSTER_ROLE, _role("tenantry-mine")), "neither writes nor binds the ClusterRoles"),
    *(
        Attack(
            f"rights for {subject['name']}",
            create(CLUSTER_ROLE_BINDING, _bound("fence-mine", subject)),
            "nothing to the accounts of Tenantry",
        )
        for subject in (
            account("scope-binding", "tenantry-system"),
            user("system:serviceaccount:tenantry-system:scope-binding"),
            group("system:masters"),
            group("system:serviceaccounts:tenantry-system"),
        )
    ),
    Attack("a Role", create(ROLE, obj(ROLE, f"{GIVEN}-new", MEMBER, {FROM: OPS}, rules=[])), "cannot"),
    Attack("a list of members", create(CONFIG_MAP, obj(CONFIG_MAP, "another-list", OPS, data={"namespaces": "a"})), "cannot"),
    Attack("the end of a pod", delete(POD, "of-olm", OPS), "cannot"),
    Attack("further labels", create(CLUSTER_ROLE, _role(labels={TEMPLATE: UID, "team": "x"})), "may not write the labels team"),
    Attack(
        "a label that aggregates into admin",
        create(CLUSTER_ROLE, _role(labels={TEMPLATE: UID, f"{RBAC}/aggregate-to-admin": "true"})),
        "may not write the labels",
    ),
    Attack(
        "further annotations",
        create(CLUSTER_ROLE, _role(annotations={"note": "x"})),
        "may not write the annotations note",
    ),
    Attack(
        "a finalizer that holds a ClusterRole",
        create(CLUSTER_ROLE, _role(finalizers=["example.com/held"])),
        "may not write the finalizers example.com/held",
    ),
    Attack(
        "an owner that takes a ClusterRole along",
        create(CLUSTER_ROLE, _role(ownerReferences=[_owner(), TAKES_ALONG])),
        "the property of others than",
    ),
]


# -- members ---------------------------------------------------------------------------------------------------------


def _given(namespace: str = MEMBER, name: str = f"{GIVEN}-new", source: str = OPS, **fields: Any) -> Object:
    rules = fields.pop("rules", [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}])
    return {**obj(ROLE, name, namespace, {FROM: source} if source else {"namespace-scope-configmap": "x"}), "rules": rules}


def _given_to(*subjects: Object, name: str = f"{GIVEN}-new", role: str = "", source: str = OPS, place: str = MEMBER) -> Object:
    return obj(ROLE_BINDING, name, place, {FROM: source}, roleRef=_role_named(role or name), subjects=list(subjects))


TO_CLUSTER_ROLE = varied(_given_to(account("op", OPS)), ("roleRef", cluster_role("theirs-of-fence")))
MEMBERS = [
    *in_system_namespaces(
        "a Role in", "no Roles and bindings to them in system namespaces", lambda name: create(ROLE, _given(name))
    ),
    Attack(
        "a consent", create(ROLE, _given(name=f"nss-managed-role-from-{OPS}")), "those with its own names, and never a consent"
    ),
    Attack("a Role without mark", create(ROLE, _given(source="")), "carry the label scope-binding/from-namespace"),
    Attack("another's Role", apply(ROLE, _given(name=f"{GIVEN}-theirs")), "that are of NamespaceScopes"),
    Attack("the end of another's Role", delete(ROLE, f"{GIVEN}-theirs", MEMBER), "that are of NamespaceScopes"),
    Attack(
        "another Role", create(ROLE_BINDING, _given_to(account("op", OPS), role="secrets-reader")), "has the name of its Role"
    ),
    Attack("a user", create(ROLE_BINDING, _given_to(EVE)), "accounts of the namespace that the label"),
    Attack(
        "an account from elsewhere", create(ROLE_BINDING, _given_to(account("op", "elsewhere"))), "accounts of the namespace that"
    ),
    *in_system_namespaces(
        "an account of",
        "gives accounts of system namespaces nothing",
        lambda name: create(ROLE_BINDING, _given_to(account("op", name), source=name)),
    ),
    Attack(
        "impersonation",
        create(ROLE, _given(rules=[{"apiGroups": [""], "resources": ["serviceaccounts"], "verbs": ["impersonate"]}])),
        "no verbs into Roles but those",
    ),
    Attack(
        "the verb bind on everything",
        create(ROLE, _given(rules=[{"apiGroups": [RBAC], "resources": ["clusterroles"], "verbs": ["bind"]}])),
        "bind and escalate on Roles only",
    ),
    Attack("a ClusterRole for an account", create(ROLE_BINDING, TO_CLUSTER_ROLE), "binds no ClusterRoles for NamespaceScopes"),
    Attack("a ClusterRole", create(CLUSTER_ROLE, _role()), "cannot"),
    Attack("the whole cluster", create(CLUSTER_ROLE_BINDING, _bound("fence-mine", account("op", OPS))), "cannot"),
    Attack("further labels", create(ROLE, varied(_given(), ("metadata.labels", with_team))), "may not write the labels team"),
    Attack(
        "further annotations",
        create(ROLE, varied(_given(), ("metadata.annotations", {"note": "x"}))),
        "may not write the annotations note",
    ),
]


# -- the list, and what reads it ---------------------------------------------------------------------------------------


def _list(namespace: str = OPS, name: str = "fence-list", **data: str) -> Object:
    return obj(CONFIG_MAP, name, namespace, {"managedby-namespace-scope": "true"}, data=data or {"namespaces": "a,b"})


def _workload(name: str = "op", **annotations: str) -> Object:
    labels = {"app": "op"}
    metadata = {"labels": labels, "annotations": {"a": "b", **annotations}}
    template = {"metadata": metadata, "spec": {"containers": [{"name": "c", "image": "example.com/c"}]}}
    return obj(DEPLOYMENT, name, OPS, spec={"replicas": 0, "selector": {"matchLabels": labels}, "template": template})


def _restart(**template: Any) -> Object:
    return obj(DEPLOYMENT, "op", OPS, spec={"template": template})


WORKLOADS = [
    *in_system_namespaces("a ConfigMap in", "no ConfigMaps in system namespaces", lambda name: create(CONFIG_MAP, _list(name))),
    Attack(
        "another's ConfigMap",
        apply(CONFIG_MAP, obj(CONFIG_MAP, "theirs", OPS, data={"namespaces": "x"})),
        "only ConfigMaps with the label",
    ),
    Attack("the end of another's ConfigMap", delete(CONFIG_MAP, "theirs", OPS), "only ConfigMaps with the label"),
    Attack("another key", apply(CONFIG_MAP, _list(a="evil")), "the key namespaces of ConfigMaps and no other"),
    Attack("a label for another's data", delete(CONFIG_MAP, "fence-full", OPS), "nothing but the key namespaces"),
    Attack("the end of a pod", delete(POD, "theirs", OPS), "deletes only pods that OLM runs"),
    Attack("more pods", apply(DEPLOYMENT, obj(DEPLOYMENT, "op", OPS, spec={"replicas": 9})), "nothing of a workload but its pod"),
    Attack(
        "another image",
        apply(DEPLOYMENT, _restart(spec={"containers": [{"name": "c", "image": "example.com/evil"}]})),
        "nothing of a pod template but annotations",
    ),
    Attack(
        "another account",
        apply(DEPLOYMENT, _restart(spec={"serviceAccountName": "admin"})),
        "nothing of a pod template but annotations",
    ),
    Attack("labels of pods", apply(DEPLOYMENT, _restart(metadata={"labels": {"a": "b"}})), "nothing of a pod template but"),
    Attack(
        "another annotation of pods",
        apply(DEPLOYMENT, _restart(metadata={"annotations": {"inject": "evil"}})),
        "no other annotation of a pod template",
    ),
    Attack(
        "labels of a workload",
        apply(DEPLOYMENT, obj(DEPLOYMENT, "op", OPS, {FROM: "x"})),
        "no labels on what others made",
    ),
    Attack(
        "annotations of a workload",
        apply(DEPLOYMENT, obj(DEPLOYMENT, "op", OPS, annotations={"scope-binding/original": "x"})),
        "no annotations on workloads",
    ),
]


# -- declarations ----------------------------------------------------------------------------------------------------


def _template(namespace: str = OPS, place: str = OPS, subject: Object | None = None, **labels: str) -> Object:
    role = {"generateName": "fence-made", "rules": [], "subjects": [subject or account("op", place)]}
    marks = {GENERATED: "true", "olm.owner": "op.v1", "olm.owner.kind": "ClusterServiceVersion", "olm.owner.namespace": place}
    return obj(SCOPE_TEMPLATE, f"ns.{namespace}.op.v1", "", {**marks, **labels}, spec={"clusterRoles": [role]})


def _instance() -> Object:
    marks = {GENERATED: "true", "olm.owner": "op.v1", "olm.owner.kind": "ClusterServiceVersion", "olm.owner.namespace": OPS}
    return obj(SCOPE_INSTANCE, f"ns.{OPS}.op.v1", "", marks, spec={"scopeTemplateName": f"ns.{OPS}.op.v1"})


UNMARKED = varied(_template(), ("metadata.labels", lambda found: {key: found[key] for key in found if key != GENERATED}))

SAID = [
    Attack(
        "what a NamespaceScope says",
        apply(NAMESPACE_SCOPE, obj(NAMESPACE_SCOPE, "fenced", OPS, spec={"namespaceMembers": ["kube-system"]})),
        "does not change what NamespaceScopes say",
    ),
    Attack(
        "a finalizer that holds a NamespaceScope",
        apply(NAMESPACE_SCOPE, obj(NAMESPACE_SCOPE, "fenced", OPS, metadata={"finalizers": ["example.com/held"]})),
        "may not write the finalizers example.com/held",
    ),
    Attack(
        "an owner that takes the list along",
        apply(CONFIG_MAP, varied(_list(), ("metadata.ownerReferences", [TAKES_ALONG]))),
        "the property of others than",
    ),
]

DECLARATIONS = [
    Attack("a template of its own", create(SCOPE_TEMPLATE, UNMARKED), "only ScopeTemplates and ScopeInstances that it made"),
    Attack(
        "the end of people's template",
        delete(SCOPE_TEMPLATE, "people-of-fence"),
        "only ScopeTemplates and ScopeInstances that it made",
    ),
    Attack(
        "a template named after nothing",
        create(SCOPE_TEMPLATE, varied(_template(), ("metadata.name", "mine"))),
        "named after the namespace of its operator",
    ),
    *in_system_namespaces(
        "a template for an operator in",
        "no scopes for operators in system namespaces",
        lambda name: create(SCOPE_TEMPLATE, _template(name, name)),
    ),
    Attack(
        "a template for a user",
        create(SCOPE_TEMPLATE, _template(subject=EVE)),
        "for accounts of the namespace of its operator",
    ),
    Attack("further labels", create(SCOPE_TEMPLATE, _template(team="x")), "may not write the labels team"),
    Attack(
        "further annotations",
        create(SCOPE_TEMPLATE, varied(_template(), ("metadata.annotations", {"note": "x"}))),
        "may not write the annotations note",
    ),
    Attack(
        "a finalizer that holds a template",
        create(SCOPE_TEMPLATE, varied(_template(), ("metadata.finalizers", ["example.com/held"]))),
        "may not write the finalizers example.com/held",
    ),
    Attack(
        "an owner that takes a template along",
        create(SCOPE_TEMPLATE, varied(_template(), ("metadata.ownerReferences", [TAKES_ALONG]))),
        "the property of anything",
    ),
    Attack("rights", create(CLUSTER_ROLE, _role()), "cannot"),
]

PODS = {"containers": [{"name": "c", "image": "example.com/c"}]}

SCENE = [
    (NAMESPACE, obj(NAMESPACE, OPS)),
    (NAMESPACE, obj(NAMESPACE, MEMBER)),
    (CLUSTER_ROLE, obj(CLUSTER_ROLE, "theirs-of-fence", rules=[])),
    (CLUSTER_ROLE_BINDING, varied(_bound(), ("metadata", {"name": "theirs-of-fence"}))),
    (ROLE, obj(ROLE, f"{GIVEN}-theirs", MEMBER, rules=[])),
    (CONFIG_MAP, _list()),
    (CONFIG_MAP, _list(name="fence-full", namespaces="a", a="theirs")),
    (CONFIG_MAP, obj(CONFIG_MAP, "theirs", OPS, data={"namespaces": "a"})),
    (DEPLOYMENT, _workload()),
    (POD, obj(POD, "theirs", OPS, spec=PODS)),
    (POD, obj(POD, "of-olm", OPS, annotations={"olm.operatorGroup": "x"}, spec=PODS)),
    *fence_injection.SCENE,
    (NAMESPACE_SCOPE, obj(NAMESPACE_SCOPE, "fenced", OPS, spec={"namespaceMembers": [MEMBER]})),
    (SCOPE_TEMPLATE, obj(SCOPE_TEMPLATE, "people-of-fence", spec={"clusterRoles": []})),
]

ROLES_OF_TEMPLATES = Theft(
    "scope-binding",
    "a-43",
    scene=SCENE,
    needs=[
        create(CLUSTER_ROLE, _role()),
        create(CLUSTER_ROLE_BINDING, _bound("fence-new", account("op", OPS))),
    ],
    attacks=SCOPES,
)
NAMESPACE_SCOPES = Theft(
    "scope-binding-namespace-scopes",
    "a-43",
    scene=SCENE,
    needs=[
        create(ROLE, _given()),
        create(ROLE, _given(rules=[{"apiGroups": [RBAC], "resources": ["roles"], "verbs": ["bind", "escalate"]}])),
        create(ROLE_BINDING, _given_to(account("op", OPS))),
        create(CONFIG_MAP, _list(name="another-list")),
        apply(CONFIG_MAP, _list(namespaces="a")),
        apply(DEPLOYMENT, _restart(metadata={"annotations": {MARKED_ANNOTATION: "x"}})),
        *fence_injection.NEEDS,
        delete(POD, "of-olm", OPS),
        apply(
            NAMESPACE_SCOPE,
            obj(NAMESPACE_SCOPE, "fenced", OPS, metadata={"finalizers": ["finalizer.nss.operator.ibm.com"]}),
        ),
    ],
    attacks=[*MEMBERS, *WORKLOADS, *fence_injection.ATTACKS, *SAID],
)
OLM = Theft(
    "scope-binding-olm",
    "a-43",
    scene=SCENE,
    needs=[create(SCOPE_TEMPLATE, _template()), create(SCOPE_INSTANCE, _instance())],
    attacks=DECLARATIONS,
)
THEFTS = (ROLES_OF_TEMPLATES, NAMESPACE_SCOPES, OLM)
