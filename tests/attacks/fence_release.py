"""What the thieves of release-provisioning's identities try, one for each duty (a-42)."""

from __future__ import annotations

from typing import Any

from rights import account, cluster_role, user
from thieves import Attack, Theft, apply, create, delete, in_system_namespaces, patch, taking_over, varied, with_team

from tenantry.model.kinds import (
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    HELM_CHART,
    HELM_RELEASE,
    JOB,
    NAMESPACE,
    NETWORK_POLICY,
    PROJECT_HELM_CHART,
    ROLE_BINDING,
    SECRET,
    SERVICE_ACCOUNT,
    Object,
)
from tenantry.testing.objects import obj

SYSTEM, HOME, RELEASE, FOREIGN, TAKEN = "cattle-helm-system", "cattle-project-p-jobs", "jobs-dummy", "nobodys", "taken-dummy"
POD_SECURITY = "pod-security.kubernetes.io/enforce"
IMAGE = "image.invalid/tenantry/helm-job:0.1.0"
OPERATED, PROJECT_ID, LABEL = "helm.cattle.io/helm-project-operated", "helm.cattle.io/projectId", "field.cattle.io/projectId"
FOR, CHART = "tenantry.dev/project-helm-chart", "helmcharts.helm.cattle.io/chart"
MANAGED_BY, FINALIZER = "helmcharts.cattle.io/managed-by", "tenantry.dev/helm-chart"
MARKS = {OPERATED: "true", PROJECT_ID: "p-jobs"}
OURS = {CHART: RELEASE}
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "00000000-0000-0000-0000-000000000000"}


def _namespace(name: str, **labels: str) -> Object:
    return obj(NAMESPACE, name, labels={**MARKS, LABEL: "p-system", **labels}, annotations={FOR: f"{HOME}/jobs"})


def _chart(name: str = "new-dummy", namespace: str = SYSTEM, /, **spec: Any) -> Object:
    wanted = {"targetNamespace": name, "valuesContent": "a: 1", "chart": name, "chartContent": "H4sIAAAA", **spec}
    annotations = {FOR: f"{HOME}/jobs", MANAGED_BY: "helm-project-operator"}
    return obj(HELM_CHART, name, namespace, MARKS, annotations, spec=wanted)


def _chart_for(place: str) -> Object:
    return varied(_chart(targetNamespace=place), ("metadata.annotations", lambda found: {**found, FOR: f"{place}/x"}))


def _release(name: str = "new-dummy", **spec: Any) -> Object:
    return obj(
        HELM_RELEASE, name, SYSTEM, MARKS, {FOR: f"{HOME}/jobs"}, spec={"release": {"name": name, "namespace": name}, **spec}
    )


def _role_binding(role: str = "cluster-admin", *subjects: Object, name: str = f"helm-{SYSTEM}-{RELEASE}") -> Object:
    bound = list(subjects) or [account(f"helm-{RELEASE}", SYSTEM)]
    return obj(CLUSTER_ROLE_BINDING, name, "", OURS, roleRef=cluster_role(role), subjects=bound)


def _in_release(role: str = "tenantry-helm-job", place: str = RELEASE, *subjects: Object) -> Object:
    return varied(_role_binding(role, *subjects), ("kind", ROLE_BINDING.kind), ("metadata.namespace", place))


CONTAINER: Object = {
    "name": "helm",
    "image": IMAGE,
    "args": ["install"],
    "env": [{"name": "NAME", "value": RELEASE}],
    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
}
POD = "spec.template.spec"
JOB_OF_OURS: Object = obj(
    JOB,
    f"helm-install-{RELEASE}",
    SYSTEM,
    OURS,
    spec={
        "template": {
            "metadata": {"labels": OURS},
            "spec": {
                "restartPolicy": "Never",
                "serviceAccountName": f"helm-{RELEASE}",
                "securityContext": {"runAsNonRoot": True},
                "containers": [CONTAINER],
                "volumes": [
                    {"name": "tmp", "emptyDir": {}},
                    {"name": "values", "projected": {"sources": [{"secret": {"name": f"chart-values-{RELEASE}"}}]}},
                ],
            },
        }
    },
)


def _job(title: str, path: str, value: Any, words: str) -> Attack:
    return Attack(title, create(JOB, varied(JOB_OF_OURS, (path, value))), words)


def _container(title: str, words: str, **fields: Any) -> Attack:
    return _job(title, f"{POD}.containers", [{**CONTAINER, **fields}], words)


def _volume(title: str, words: str, **source: Any) -> Attack:
    return _job(title, f"{POD}.volumes", [{"name": "more", **source}], words)


SECRET_OF_OURS = obj(SECRET, f"chart-values-{RELEASE}", SYSTEM, OURS, type="Opaque", data={})
TOKEN = {"serviceAccountToken": {"path": "token"}}
NO_TARGET = "in the namespace of its name, or in that of its ProjectHelmChart"
ONLY_ITS_OWN = "only HelmCharts and HelmReleases that it made"
FOREIGN_CHART = obj(HELM_CHART, "theirs", SYSTEM, spec={"chart": "theirs", "targetNamespace": "kube-system"})

ONE_ACCOUNT = "for the account helm-<chart> of the system namespace only"
FREE, ITSELF = f"helm-{SYSTEM}-free", account("release-provisioning", "tenantry-system")
AS_IT_IS = "takes HelmCharts for its Jobs as they are"
SCENE = [
    (NAMESPACE, varied(_namespace(RELEASE, **{POD_SECURITY: "restricted"}), ("metadata.annotations", with_team))),
    (NAMESPACE, obj(NAMESPACE, HOME, labels=MARKS)),
    (NAMESPACE, obj(NAMESPACE, FOREIGN)),
    (NAMESPACE, obj(NAMESPACE, TAKEN)),
    (PROJECT_HELM_CHART, obj(PROJECT_HELM_CHART, "jobs", HOME, spec={"helmApiVersion": "dummy.cattle.io/v1alpha1"})),
    (HELM_CHART, _chart(RELEASE)),
    (HELM_CHART, FOREIGN_CHART),
    (HELM_RELEASE, _release(RELEASE)),
    (HELM_RELEASE, obj(HELM_RELEASE, "theirs", SYSTEM, spec={"release": {"name": "x", "namespace": "x"}})),
    (CLUSTER_ROLE_BINDING, _role_binding()),
    (CLUSTER_ROLE_BINDING, varied(_role_binding("cluster-admin", user("root")), ("metadata", {"name": "theirs"}))),
    (HELM_CHART, obj(HELM_CHART, "elsewhere", FOREIGN, spec={"chart": "theirs"})),
    (SECRET, varied(SECRET_OF_OURS, ("metadata.labels", with_team), ("metadata.annotations", {"team": "x"}))),
    (SECRET, obj(SECRET, "registry", SYSTEM, data={})),
]

RELEASES = Theft(
    "release-provisioning",
    "a-42",
    scene=SCENE,
    needs=[
        create(NAMESPACE, _namespace("other-dummy")),
        apply(NAMESPACE, _namespace(RELEASE, **{"helm.cattle.io/helm-project-operator-orphaned": "true"})),
        apply(
            NETWORK_POLICY, obj(NETWORK_POLICY, "hpo-generated-default", RELEASE, {OPERATED: "true"}, spec={"podSelector": {}})
        ),
        apply(SERVICE_ACCOUNT, obj(SERVICE_ACCOUNT, "default", RELEASE, {OPERATED: "true"})),
        apply(PROJECT_HELM_CHART, obj(PROJECT_HELM_CHART, "jobs", HOME, metadata={"finalizers": ["tenantry.dev/release"]})),
        create(HELM_CHART, _chart()),
        create(HELM_CHART, _chart(targetNamespace=HOME)),
        apply(HELM_CHART, _chart(RELEASE, valuesContent="a: 2")),
        delete(HELM_CHART, RELEASE, SYSTEM),
        create(HELM_RELEASE, _release()),
    ],
    attacks=[
        Attack(
            "the default account of a foreign namespace",
            apply(SERVICE_ACCOUNT, obj(SERVICE_ACCOUNT, "default", FOREIGN, automountServiceAccountToken=True)),
            "in namespaces of releases only",
        ),
        Attack(
            "the policy of kube-system",
            apply(NETWORK_POLICY, obj(NETWORK_POLICY, "hpo-generated-default", "kube-system", spec={"podSelector": {}})),
            "in namespaces of releases only",
        ),
        Attack("a HelmChart elsewhere", create(HELM_CHART, _chart("new-dummy", FOREIGN)), "in the system namespace only"),
        Attack("another namespace", create(NAMESPACE, _namespace("mine")), "called like releases"),
        *in_system_namespaces(
            "marks for",
            "changes only namespaces of releases",
            lambda name: apply(NAMESPACE, obj(NAMESPACE, name, labels={LABEL: "p-jobs"})),
        ),
        Attack("marks for another's namespace", apply(NAMESPACE, _namespace(TAKEN)), "changes only namespaces of releases"),
        Attack(
            "what a project owner asked for",
            apply(PROJECT_HELM_CHART, obj(PROJECT_HELM_CHART, "jobs", HOME, spec={"values": {"a": 1}})),
            "does not change what ProjectHelmCharts ask for",
        ),
        Attack(
            "another's HelmChart", apply(HELM_CHART, obj(HELM_CHART, "theirs", SYSTEM, spec={"valuesContent": "a"})), ONLY_ITS_OWN
        ),
        Attack("the end of another's HelmChart", delete(HELM_CHART, "theirs", SYSTEM), ONLY_ITS_OWN),
        Attack("a mark for another's HelmChart", apply(HELM_CHART, obj(HELM_CHART, "theirs", SYSTEM, MARKS)), ONLY_ITS_OWN),
        Attack(
            "another's HelmChart under the name of our field manager",
            apply(HELM_CHART, FOREIGN_CHART, by="tenantry-release-provisioning"),
            ONLY_ITS_OWN,
        ),
        Attack("the end of another's HelmRelease", delete(HELM_RELEASE, "theirs", SYSTEM), ONLY_ITS_OWN),
        Attack(
            "a HelmChart on the host's network",
            create(HELM_CHART, _chart(bootstrap=True)),
            "may not write the fields bootstrap of HelmCharts",
        ),
        Attack(
            "a HelmRelease that may reach further",
            create(HELM_RELEASE, _release(allow={"namespaces": ["kube-system"]})),
            "nothing but the release into the spec of HelmReleases",
        ),
        Attack("a release in another namespace", create(HELM_CHART, _chart(targetNamespace=FOREIGN)), NO_TARGET),
        Attack(
            "a lock in another namespace",
            create(HELM_RELEASE, varied(_release(), ("spec.release.namespace", FOREIGN))),
            NO_TARGET,
        ),
        *in_system_namespaces(
            "a release in", "asks for no releases in system namespaces", lambda name: create(HELM_CHART, _chart_for(name))
        ),
        Attack(
            "a chart of its own", create(HELM_CHART, _chart(repo="https://example.com")), "repositories that the configuration"
        ),
        Attack("an image of its own", create(HELM_CHART, _chart(jobImage="example.com/evil")), "image of Jobs that the config"),
        *taking_over("release-provisioning", NAMESPACE, RELEASE, **{POD_SECURITY: "restricted"}),
        Attack(
            "pod security of a release namespace",
            apply(NAMESPACE, _namespace(RELEASE, **{POD_SECURITY: "privileged"})),
            f"may not write the labels {POD_SECURITY}",
        ),
        Attack(
            "annotations of a release namespace",
            apply(NAMESPACE, obj(NAMESPACE, RELEASE, annotations={"tenantry.dev/adopt": "true"})),
            "may not write the annotations tenantry.dev/adopt",
        ),
        Attack(
            "a finalizer that holds a HelmChart",
            apply(HELM_CHART, obj(HELM_CHART, RELEASE, SYSTEM, metadata={"finalizers": ["example.com/held"]})),
            "may not write the finalizers example.com/held",
        ),
        Attack(
            "the status of a namespace",
            patch(NAMESPACE, RELEASE, "", ("add", "/metadata/labels/team", "x"), subresource="status"),
            "cannot",
        ),
        Attack(
            "an owner that takes a HelmChart along",
            create(HELM_CHART, varied(_chart(), ("metadata.ownerReferences", [OWNER]))),
            "makes nothing the property of others",
        ),
        Attack("a Job", create(JOB, JOB_OF_OURS), "cannot"),
        Attack("the values of another chart", apply(SECRET, SECRET_OF_OURS), "cannot"),
        Attack("rights for Helm", create(ROLE_BINDING, _in_release()), "cannot"),
        Attack("rights for Helm in all namespaces", apply(CLUSTER_ROLE_BINDING, _role_binding()), "cannot"),
    ],
)
HELM_JOBS = Theft(
    "release-provisioning-helm-jobs",
    "a-42",
    scene=SCENE,
    needs=[
        apply(HELM_CHART, obj(HELM_CHART, "theirs", SYSTEM, annotations={MANAGED_BY: "x"}, metadata={"finalizers": [FINALIZER]})),
        apply(CLUSTER_ROLE_BINDING, _role_binding()),
        create(ROLE_BINDING, _in_release()),
        delete(CLUSTER_ROLE_BINDING, f"helm-{SYSTEM}-{RELEASE}"),
        apply(SECRET, SECRET_OF_OURS),
        apply(CONFIG_MAP, obj(CONFIG_MAP, f"chart-content-{RELEASE}", SYSTEM, OURS, data={})),
        apply(SERVICE_ACCOUNT, obj(SERVICE_ACCOUNT, f"helm-{RELEASE}", SYSTEM, OURS)),
        create(JOB, JOB_OF_OURS),
    ],
    attacks=[
        Attack("another Secret", apply(SECRET, obj(SECRET, "registry", SYSTEM, data={})), "release-provisioning writes Secrets"),
        Attack("the end of another Secret", delete(SECRET, "registry", SYSTEM), "release-provisioning writes Secrets"),
        Attack("another ConfigMap", create(CONFIG_MAP, obj(CONFIG_MAP, "mine", SYSTEM)), "release-provisioning writes Secrets"),
        Attack("another account", create(SERVICE_ACCOUNT, obj(SERVICE_ACCOUNT, "mine", SYSTEM)), "release-provisioning writes"),
        Attack("a role that nobody named", apply(CLUSTER_ROLE_BINDING, _role_binding("admin")), "attempting to grant"),
        Attack(
            "a role that everybody has",
            create(CLUSTER_ROLE_BINDING, _role_binding("system:discovery", account("helm-free", SYSTEM), name=FREE)),
            "only the ClusterRoles for Jobs in all namespaces",
        ),
        Attack(
            "a role that nobody named, for a new account",
            create(CLUSTER_ROLE_BINDING, _role_binding("admin", account("helm-free", SYSTEM), name=FREE)),
            "attempting to grant",
        ),
        Attack(
            "a role that everybody has, in the namespace of a release",
            create(ROLE_BINDING, _in_release("system:discovery")),
            "only the ClusterRoles for Jobs in namespaces of releases",
        ),
        Attack(
            "everything in the namespace of a release",
            create(ROLE_BINDING, _in_release("cluster-admin")),
            "only the ClusterRoles for Jobs in namespaces of releases",
        ),
        *in_system_namespaces(
            "rights in", "gives no rights in system namespaces", lambda name: create(ROLE_BINDING, _in_release(place=name))
        ),
        Attack(
            "rights in the namespace of a release for a user",
            create(ROLE_BINDING, _in_release("tenantry-helm-job", RELEASE, user("eve"))),
            ONE_ACCOUNT,
        ),
        Attack(
            "everything for a user",
            create(CLUSTER_ROLE_BINDING, _role_binding("cluster-admin", user("eve"), name=FREE)),
            ONE_ACCOUNT,
        ),
        Attack(
            "everything for itself",
            create(CLUSTER_ROLE_BINDING, _role_binding("cluster-admin", ITSELF, name=FREE)),
            ONE_ACCOUNT,
        ),
        Attack(
            "another's binding",
            apply(CLUSTER_ROLE_BINDING, varied(_role_binding(), ("metadata", {"name": "theirs"}))),
            ONE_ACCOUNT,
        ),
        Attack("the end of another's binding", delete(CLUSTER_ROLE_BINDING, "theirs"), "for the account helm-<chart>"),
        Attack(
            "a binding of nobody's",
            create(CLUSTER_ROLE_BINDING, varied(_role_binding(name=FREE), ("subjects", []))),
            "is for one account",
        ),
        Attack(
            "the token of an account",
            create(
                SECRET,
                obj(SECRET, "chart-values-free", SYSTEM, type="bootstrap.kubernetes.io/token", data={}),
            ),
            "of type Opaque, never tokens",
        ),
        Attack(
            "a Job of no HelmChart",
            create(JOB, varied(JOB_OF_OURS, ("metadata.name", "helm-install-other"))),
            "of the HelmChart that its label names",
        ),
        _job("another account", f"{POD}.serviceAccountName", "helm-other", "under the account of its HelmChart"),
        _job("a second container", f"{POD}.containers", [CONTAINER, {**CONTAINER, "name": "b"}], "has one container"),
        _job("a container before", f"{POD}.initContainers", [{**CONTAINER, "name": "b"}], "has one container"),
        _container(
            "another image", "is not one that helmProjectOperator.helmController.jobImage names", image="example.com/evil"
        ),
        _container("another program", "runs the program of its image", command=["sh"]),
        _container(
            "another API server, that gets the token",
            "the variables that the program knows",
            env=[{"name": "KUBERNETES_SERVICE_HOST", "value": "example.com"}],
        ),
        _container(
            "a Secret as a variable",
            "the variables that the program knows",
            env=[{"name": "NAME", "valueFrom": {"secretKeyRef": {"name": "registry", "key": "a"}}}],
        ),
        *(_job(name, f"{POD}.{name}", True, "has nothing of its node") for name in ("hostNetwork", "hostPID", "hostIPC")),
        _job("a node", f"{POD}.nodeName", "control-plane", "has nothing of its node"),
        _volume("a path of the host", "mounts Secrets, ConfigMaps and scratch space only", hostPath={"path": "/"}),
        _volume("a further token", "mounts no further tokens", projected={"sources": [TOKEN]}),
        _container("privileges", "has no privileges", securityContext={"privileged": True}),
        _container("capabilities", "has no privileges", securityContext={"capabilities": {"add": ["SYS_ADMIN"]}}),
        _job("the user root", f"{POD}.securityContext", {"runAsUser": 0}, "has no privileges"),
        Attack(
            "an owner",
            apply(SECRET, varied(SECRET_OF_OURS, ("metadata.ownerReferences", [OWNER]))),
            "the property of others than HelmCharts",
        ),
        Attack(
            "a HelmChart elsewhere",
            apply(HELM_CHART, obj(HELM_CHART, "elsewhere", FOREIGN, metadata={"finalizers": [FINALIZER]})),
            "what runs Helm in the system namespace only",
        ),
        Attack(
            "other values for a release",
            apply(HELM_CHART, obj(HELM_CHART, RELEASE, SYSTEM, spec={"valuesContent": "a: 2"})),
            AS_IT_IS,
        ),
        Attack("a mark for another's HelmChart", apply(HELM_CHART, obj(HELM_CHART, "theirs", SYSTEM, MARKS)), AS_IT_IS),
        Attack(
            "another's HelmChart under the name of our field manager",
            apply(HELM_CHART, FOREIGN_CHART, by="tenantry-release-provisioning"),
            AS_IT_IS,
        ),
        Attack("a HelmChart", create(HELM_CHART, _chart()), "cannot"),
        Attack("the end of a HelmChart", delete(HELM_CHART, RELEASE, SYSTEM), "cannot"),
        Attack("a namespace", create(NAMESPACE, _namespace("other-dummy")), "cannot"),
        *taking_over("release-provisioning", SECRET, f"chart-values-{RELEASE}", SYSTEM),
        Attack(
            "further labels",
            apply(SECRET, varied(SECRET_OF_OURS, ("metadata.labels", lambda found: {**found, "team": "y"}))),
            "may not write the labels team",
        ),
        Attack(
            "further annotations",
            apply(SECRET, varied(SECRET_OF_OURS, ("metadata.annotations", {"note": "x"}))),
            "may not write the annotations note",
        ),
        Attack(
            "a finalizer that holds a HelmChart",
            apply(HELM_CHART, obj(HELM_CHART, RELEASE, SYSTEM, metadata={"finalizers": ["example.com/held"]})),
            "may not write the finalizers example.com/held",
        ),
    ],
)
THEFTS = (RELEASES, HELM_JOBS)
