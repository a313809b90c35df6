"""What the thief of lock-enforcement tries (a-44), where administrators let it write the usual kinds."""

from __future__ import annotations

from typing import Any

from people import pointer
from rights import cluster_role, user
from thieves import Attack, Theft, apply, create, delete, in_system_namespaces, patch

from tenantry.model.kinds import (
    API_SERVER_SOURCE,
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    HELM_RELEASE,
    NAMESPACE,
    ROLE_BINDING,
    SECRET,
    Kind,
    Object,
)
from tenantry.testing.objects import obj

SYSTEM, PLACE = "cattle-helm-system", "locked-fence"
MANAGED = "app.kubernetes.io/managed-by"
HELM_LABELS = {MANAGED: "Helm"}
HELM_MARKS = {"meta.helm.sh/release-name": "shop", "meta.helm.sh/release-namespace": PLACE}
BROKER = {"apiVersion": "eventing.knative.dev/v1", "kind": "Broker", "name": "tenantry", "namespace": "tenantry-system"}
MANAGED_BY = "helmreleases.cattle.io/managed-by"


def _marked(kind: Kind, name: str, namespace: str = "", **fields: Any) -> Object:
    return obj(kind, name, namespace, HELM_LABELS, HELM_MARKS, **fields)


def _of_helm(namespace: str = PLACE, name: str = "made", **fields: Any) -> Object:
    return _marked(CONFIG_MAP, name, namespace, **{"data": {"a": "1"}, **fields})


def _release(name: str = "fenced", **rest: Any) -> Object:
    return obj(HELM_RELEASE, name, SYSTEM, **rest)


def _source(namespace: str = "tenantry-system", **changes: Any) -> Object:
    spec = {
        "serviceAccountName": "tenantry-lock-source",
        "mode": "Reference",
        "resources": [{"apiVersion": "v1", "kind": "ConfigMap"}],
        "sink": {"ref": BROKER},
        **changes,
    }
    return obj(API_SERVER_SOURCE, "lock-enforcement-locked", namespace, spec=spec)


SYSTEMS = "nothing in system namespaces"

THEFT = Theft(
    "lock-enforcement",
    "a-44",
    scene=[
        (NAMESPACE, obj(NAMESPACE, PLACE)),
        (CONFIG_MAP, _of_helm(name="theirs-of-helm")),
        (CONFIG_MAP, _of_helm("kube-system", "of-helm")),
        (CONFIG_MAP, obj(CONFIG_MAP, "theirs", PLACE, data={"a": "1"})),
        (HELM_RELEASE, _release(spec={"release": {"name": "shop", "namespace": PLACE}})),
    ],
    needs=[
        apply(HELM_RELEASE, _release(annotations={MANAGED_BY: "x"}, metadata={"finalizers": ["tenantry.dev/lock"]})),
        apply(API_SERVER_SOURCE, _source()),
        create(CONFIG_MAP, _of_helm()),
        apply(CONFIG_MAP, _of_helm(name="theirs-of-helm", data={"a": "2"})),
        delete(CONFIG_MAP, "theirs-of-helm", PLACE),
        create(CLUSTER_ROLE, _marked(CLUSTER_ROLE, "shop-viewer", rules=[])),
    ],
    attacks=[
        Attack("a HelmRelease of its own", create(HELM_RELEASE, _release("mine", spec={})), "cannot"),
        Attack(
            "the end of a HelmRelease",
            delete(HELM_RELEASE, "fenced", SYSTEM),
            "cannot",
        ),
        Attack(
            "further namespaces for a lock",
            apply(HELM_RELEASE, _release(spec={"allow": {"namespaces": ["kube-system"]}})),
            "does not change the spec of HelmReleases",
        ),
        Attack("labels of a HelmRelease", apply(HELM_RELEASE, _release(labels={"team": "x"})), "no labels of HelmReleases"),
        Attack(
            "annotations of a HelmRelease",
            apply(HELM_RELEASE, _release(annotations={"tenantry.dev/lock": "paused"})),
            "may not write the annotations tenantry.dev/lock",
        ),
        Attack(
            "a finalizer that holds a HelmRelease",
            apply(HELM_RELEASE, _release(metadata={"finalizers": ["example.com/held"]})),
            "may not write the finalizers example.com/held",
        ),
        Attack("a source elsewhere", apply(API_SERVER_SOURCE, _source(PLACE)), "writes sources in tenantry-system only"),
        Attack(
            "a source of another identity",
            apply(API_SERVER_SOURCE, _source(serviceAccountName="release-provisioning")),
            "watch as tenantry-lock-source",
        ),
        Attack("a source that sends Secrets", apply(API_SERVER_SOURCE, _source(mode="Resource")), "send kind and name"),
        Attack(
            "a source that sends elsewhere",
            apply(API_SERVER_SOURCE, _source(sink={"uri": "http://example.com"})),
            "send to the broker of Tenantry",
        ),
        *in_system_namespaces("an object in", SYSTEMS, lambda name: create(CONFIG_MAP, _of_helm(name))),
        Attack("the end of an object in kube-system", delete(CONFIG_MAP, "of-helm", "kube-system"), SYSTEMS),
        Attack(
            "the end of Helm's marks",
            patch(CONFIG_MAP, "theirs-of-helm", PLACE, ("remove", f"/metadata/labels/{pointer(MANAGED)}", None)),
            "makes and changes only objects with Helm's marks",
        ),
        Attack(
            "marks for another's object",
            apply(CONFIG_MAP, _of_helm(name="theirs", data={"a": "evil"})),
            "changes and deletes only objects that have Helm's marks already",
        ),
        Attack(
            "the end of another's object",
            delete(CONFIG_MAP, "theirs", PLACE),
            "changes and deletes only objects that have Helm's marks already",
        ),
        Attack(
            "a ClusterRole of Kubernetes",
            create(CLUSTER_ROLE, _marked(CLUSTER_ROLE, "system:mine", rules=[])),
            "like those of Kubernetes",
        ),
        Attack(
            "a ClusterRole of Tenantry",
            create(CLUSTER_ROLE, _marked(CLUSTER_ROLE, "tenantry-mine", rules=[])),
            "like those of Kubernetes",
        ),
        Attack(
            "the token of an account",
            create(
                SECRET,
                obj(
                    SECRET,
                    "token",
                    PLACE,
                    HELM_LABELS,
                    {**HELM_MARKS, "kubernetes.io/service-account.name": "default"},
                    type="kubernetes.io/service-account-token",
                ),
            ),
            "no Secrets that would hold tokens",
        ),
        Attack(
            "rights that it does not have itself",
            create(
                CLUSTER_ROLE_BINDING,
                _marked(CLUSTER_ROLE_BINDING, "shop-admin", roleRef=cluster_role("cluster-admin"), subjects=[user("eve")]),
            ),
            "attempting to grant",
        ),
        Attack(
            "rights in a namespace that it does not have itself",
            create(
                ROLE_BINDING,
                _marked(ROLE_BINDING, "shop-admin", PLACE, roleRef=cluster_role("admin"), subjects=[user("eve")]),
            ),
            "attempting to grant",
        ),
        Attack("a namespace", patch(NAMESPACE, PLACE, "", ("add", "/metadata/labels/team", "x")), "cannot"),
    ],
)
