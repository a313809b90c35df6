"""What the thief of namespace-registration tries (a-40)."""

from __future__ import annotations

from people import pointer
from thieves import Attack, Theft, apply, create, delete, in_system_namespaces, patch, taking_over

from tenantry.model.flux.names import TENANT
from tenantry.model.flux.tenant import NAMESPACES_FINALIZER, marks_of
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, NETWORK_POLICY, RESOURCE_QUOTA, SERVICE_ACCOUNT, Object
from tenantry.model.paas.names import MANAGED_BY_PAAS, PAAS, PAAS_FINALIZER, PAAS_UID
from tenantry.testing.objects import obj

LABEL, OPERATED, PROJECT_ID = "field.cattle.io/projectId", "helm.cattle.io/helm-project-operated", "helm.cattle.io/projectId"
POD_SECURITY = "pod-security.kubernetes.io/enforce"
HOME, TEAM, FOREIGN = "cattle-project-p-fence", "team-fence", "foreign-fence"
CHART = "dummy.cattle.io.v1alpha1"
OTHER_CONDITION = {"type": "Other", "status": "True", "reason": "A", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}


def _home(**labels: str) -> Object:
    marks = {LABEL: "p-fence", OPERATED: "true", PROJECT_ID: "p-fence", **labels}
    return obj(NAMESPACE, HOME, labels=marks, annotations={LABEL: "p-fence"})


def _condition(name: str, type_: str, **metadata: Object) -> Object:
    told = {**OTHER_CONDITION, "type": type_}
    return obj(NAMESPACE, name, metadata=metadata, status={"conditions": [told]})


def _policy(namespace: str) -> Object:
    return obj(NETWORK_POLICY, "hpo-generated-default", namespace, {OPERATED: "true"}, spec={"podSelector": {}})


def _config_map(namespace: str, **metadata: object) -> Object:
    return obj(CONFIG_MAP, CHART, namespace, {OPERATED: "true"}, metadata=metadata, data={"values.yaml": ""})


def _of_paas(name: str, paas: str = "fence", **labels: str) -> Object:
    """A namespace with the marks of a Paas."""
    return obj(NAMESPACE, name, labels={MANAGED_BY_PAAS: paas, **labels}, annotations={PAAS_UID: "u"})


def _quota(name: str, namespace: str, **parts: Object) -> Object:
    return obj(RESOURCE_QUOTA, name, namespace, spec={"hard": {"pods": "1"}}, **parts)


_MARKS: dict[str, Object] = {"labels": {MANAGED_BY_PAAS: "fence"}, "annotations": {PAAS_UID: "u"}}


def _account(namespace: str) -> Object:
    return obj(SERVICE_ACCOUNT, "default", namespace, automountServiceAccountToken=True)


TENANTS = "fence-team"
MANAGER, THEIRS = "tenantry-namespace-registration", {LABEL: "p-fence", "team": "x"}
OWNER = {"apiVersion": "v1", "kind": "Namespace", "name": FOREIGN, "uid": "00000000-0000-0000-0000-000000000000"}

THEFT = Theft(
    "namespace-registration",
    "a-40",
    scene=[
        (
            NAMESPACE,
            obj(NAMESPACE, HOME, labels={**_home()["metadata"]["labels"], POD_SECURITY: "restricted"}, annotations=THEIRS),
        ),
        (
            NAMESPACE,
            obj(NAMESPACE, TEAM, labels={LABEL: "p-fence", PROJECT_ID: "p-fence", "team": "x"}, annotations={"team": "x"}),
        ),
        (NAMESPACE, obj(NAMESPACE, FOREIGN)),
        (RESOURCE_QUOTA, _quota("team-quota", FOREIGN)),
        (NAMESPACE, _of_paas("fence-made")),
        (NAMESPACE, obj(NAMESPACE, "fence-handed", annotations={"tenantry.dev/adopt": "fence"})),
        (NAMESPACE, obj(NAMESPACE, "fence-foreign")),
        (PAAS, obj(PAAS, "fence", spec={"requestor": "x", "quota": {}})),
        (TENANT, obj(TENANT, TENANTS, spec={"namespaces": ["fence-tenants"]})),
    ],
    needs=[
        create(NAMESPACE, obj(NAMESPACE, "cattle-project-p-new", labels={LABEL: "p-new", OPERATED: "true", PROJECT_ID: "p-new"})),
        apply(NAMESPACE, _home(**{"helm.cattle.io/helm-project-operator-orphaned": "true"})),
        apply(NAMESPACE, obj(NAMESPACE, FOREIGN, labels={PROJECT_ID: "p-fence"})),
        patch(NAMESPACE, TEAM, "", ("remove", f"/metadata/labels/{pointer(PROJECT_ID)}", None)),
        apply(NAMESPACE, _condition(TEAM, "tenantry.dev/Registered"), "status"),
        apply(NAMESPACE, _condition("kube-system", "tenantry.dev/Registered"), "status"),
        apply(CONFIG_MAP, _config_map(HOME)),
        apply(NETWORK_POLICY, _policy(HOME)),
        apply(SERVICE_ACCOUNT, _account(HOME)),
        create(NAMESPACE, _of_paas("fence-new", team="x")),
        apply(NAMESPACE, _of_paas("fence-made", team="x")),
        apply(NAMESPACE, _of_paas("fence-handed")),
        delete(NAMESPACE, "fence-made"),
        apply(RESOURCE_QUOTA, _quota("paas-quota", "fence-made", **_MARKS)),
        apply(PAAS, obj(PAAS, "fence", metadata={"finalizers": [PAAS_FINALIZER]})),
        create(NAMESPACE, obj(NAMESPACE, "fence-tenants", labels={**marks_of(TENANTS), "team": "x"})),
        create(SERVICE_ACCOUNT, obj(SERVICE_ACCOUNT, "robot", FOREIGN, marks_of(TENANTS))),
        apply(TENANT, obj(TENANT, TENANTS, metadata={"finalizers": [NAMESPACES_FINALIZER]})),
    ],
    attacks=[
        Attack("another namespace", create(NAMESPACE, obj(NAMESPACE, "mine")), "cattle-project-<id>"),
        Attack(
            "pod security of a registration namespace",
            apply(NAMESPACE, _home(**{POD_SECURITY: "privileged"})),
            f"may not write the labels {POD_SECURITY}",
        ),
        *taking_over("namespace-registration", NAMESPACE, HOME, **{POD_SECURITY: "restricted"}),
        Attack(
            "the labels of a member, to take them off later",
            apply(NAMESPACE, obj(NAMESPACE, TEAM, labels={PROJECT_ID: "p-fence", "team": "x"}), by=MANAGER),
            "does not become the owner of labels",
        ),
        Attack(
            "a label of a member besides its memory",
            apply(NAMESPACE, obj(NAMESPACE, TEAM, labels={PROJECT_ID: "p-other", "new": "x"})),
            "may not write the labels new",
        ),
        Attack(
            "the end of a member's label",
            patch(NAMESPACE, TEAM, "", ("remove", "/metadata/labels/team", None)),
            "may not write the labels team",
        ),
        Attack(
            "an owner that takes a namespace along",
            apply(NAMESPACE, obj(NAMESPACE, TEAM, labels={PROJECT_ID: "p-fence"}, metadata={"ownerReferences": [OWNER]})),
            "writes no owner references",
        ),
        Attack(
            "the end of others' labels",
            patch(NAMESPACE, HOME, "", ("remove", f"/metadata/labels/{pointer(POD_SECURITY)}", None)),
            f"may not write the labels {POD_SECURITY}",
        ),
        Attack(
            "labels of a chart's ConfigMap",
            apply(CONFIG_MAP, obj(CONFIG_MAP, CHART, HOME, {"team": "x"})),
            "may not write the labels team",
        ),
        Attack(
            "the project of a namespace",
            apply(NAMESPACE, obj(NAMESPACE, TEAM, labels={LABEL: "p-other"})),
            f"outside of registration namespaces namespace-registration may not write the labels {LABEL}",
        ),
        Attack(
            "the project of a registration namespace",
            apply(NAMESPACE, _home(**{PROJECT_ID: "p-other"})),
            "is of the project that its name says",
        ),
        *in_system_namespaces(
            "the memory of",
            "nothing but its condition on system namespaces",
            lambda name: apply(NAMESPACE, obj(NAMESPACE, name, labels={PROJECT_ID: "p-fence"})),
        ),
        Attack(
            "the memory of kube-system, with its status",
            apply(NAMESPACE, _condition("kube-system", "tenantry.dev/Registered", labels={PROJECT_ID: "p"}), "status"),
            "no labels and annotations with a status",
        ),
        Attack(
            "annotations of a registration namespace",
            apply(NAMESPACE, obj(NAMESPACE, HOME, annotations={"scheduler.alpha.kubernetes.io/node-selector": "a=b"})),
            "may not write the annotations",
        ),
        Attack(
            "a namespace that is no Paas', for a Paas",
            apply(NAMESPACE, _of_paas("fence-foreign")),
            f"may not write the labels {MANAGED_BY_PAAS}",
        ),
        Attack("a namespace of a Paas by another name", create(NAMESPACE, _of_paas("mine")), "and those of a Paas"),
        Attack("the end of a namespace", delete(NAMESPACE, FOREIGN), "deletes only namespaces of a Paas"),
        Attack(
            "a quota in another namespace",
            apply(RESOURCE_QUOTA, _quota("paas-quota", FOREIGN, **_MARKS)),
            "writes only quotas of Paas",
        ),
        Attack(
            "a quota of another name",
            apply(RESOURCE_QUOTA, _quota("mine", "fence-made", **_MARKS)),
            "writes only quotas of Paas",
        ),
        Attack("more than a quota gives", apply(RESOURCE_QUOTA, _quota("team-quota", FOREIGN)), "writes only quotas of Paas"),
        Attack("the end of a quota", delete(RESOURCE_QUOTA, "team-quota", FOREIGN), "writes only quotas of Paas"),
        Attack(
            "what a Paas declares",
            apply(PAAS, obj(PAAS, "fence", spec={"requestor": "me", "quota": {}})),
            "a PaasConfig or a Tenant declares namespace-registration writes nothing",
        ),
        Attack(
            "a finalizer that holds a Paas",
            apply(PAAS, obj(PAAS, "fence", metadata={"finalizers": ["example.com/held"]})),
            "writes no finalizers",
        ),
        Attack(
            "annotations of another namespace",
            apply(NAMESPACE, obj(NAMESPACE, TEAM, annotations={LABEL: "p-other"})),
            "no annotations outside of registration namespaces",
        ),
        Attack(
            "the annotations of a member, to take them off later",
            apply(NAMESPACE, obj(NAMESPACE, TEAM, labels={PROJECT_ID: "p-fence"}, annotations={"team": "x"}), by=MANAGER),
            "does not become the owner of annotations",
        ),
        Attack(
            "the end of a member's annotation",
            patch(NAMESPACE, TEAM, "", ("remove", "/metadata/annotations/team", None)),
            "may not write the annotations team",
        ),
        Attack(
            "a finalizer that holds a namespace",
            apply(NAMESPACE, obj(NAMESPACE, TEAM, metadata={"finalizers": ["example.com/held"]})),
            "writes no finalizers",
        ),
        Attack(
            "an owner that takes objects along",
            apply(CONFIG_MAP, _config_map(HOME, ownerReferences=[OWNER])),
            "writes no owner references",
        ),
        Attack(
            "another's condition",
            apply(NAMESPACE, _condition(TEAM, "Other"), "status"),
            "no other condition than tenantry.dev/Registered",
        ),
        *(
            Attack(
                f"the {what} of a foreign namespace",
                apply(kind, body(FOREIGN)),
                "writes only into registration namespaces",
            )
            for what, kind, body in (
                ("ConfigMap", CONFIG_MAP, _config_map),
                ("default account", SERVICE_ACCOUNT, _account),
                ("policy", NETWORK_POLICY, _policy),
            )
        ),
        Attack("another account", apply(SERVICE_ACCOUNT, obj(SERVICE_ACCOUNT, "robot", HOME)), "writes the account default"),
        Attack("the end of the default account", delete(SERVICE_ACCOUNT, "default", HOME), "writes the account default"),
        Attack(
            "an account of a Tenant where the platform is",
            create(SERVICE_ACCOUNT, obj(SERVICE_ACCOUNT, "robot", "kube-system", marks_of("fence"))),
            "writes only into registration namespaces",
        ),
        Attack(
            "a project's label for a Tenant",
            create(NAMESPACE, obj(NAMESPACE, "fence-tenants", labels={**marks_of("fence"), LABEL: "p-fence"})),
            "only those of Tenants",
        ),
        Attack(
            "what a Tenant declares",
            patch(TENANT, TENANTS, "", ("add", "/spec/clusterRole", "x")),
            "namespace-registration writes nothing",
        ),
        Attack("another ConfigMap", apply(CONFIG_MAP, obj(CONFIG_MAP, "kube-root-ca.crt", HOME)), "cannot"),
    ],
)
