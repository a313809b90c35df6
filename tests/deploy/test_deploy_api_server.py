"""What only a real API server can say: our core objects are valid, our CRD refuses what it should, our rights suffice and end.

Nothing here is kept: objects are applied as a dry run, or live in a namespace and in an API group of the test's own.
"""

from __future__ import annotations

import asyncio
import copy
import secrets
from collections.abc import AsyncIterator
from typing import Any

import manifests
import pytest
import pytest_asyncio
from manifests import Body, Document, guessed_plural, pod_templates

from tenantry.api.client import Api
from tenantry.api.errors import ApiError, KindNotServed
from tenantry.model.kinds import CUSTOM_RESOURCE_DEFINITION, NAMESPACE, Kind

CLUSTER_SCOPED = {"Namespace", "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding"}
KNATIVE_ONLY = {"serviceAccountName", "containerConcurrency", "timeoutSeconds"}
CHART = "dummy.cattle.io/v1alpha1"
WHAT_TO_WRITE = "write spec.helmApiVersion"


def kind_of(body: Body) -> Kind:
    kind = body["kind"]
    return Kind(body["apiVersion"], kind, guessed_plural(kind), namespaced=kind not in CLUSTER_SCOPED)


def in_namespace(body: Body, namespace: str) -> Body:
    moved = copy.deepcopy(body)
    if "namespace" in moved["metadata"]:
        moved["metadata"]["namespace"] = namespace
    return moved


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(admin: Api) -> AsyncIterator[str]:
    """A namespace with the labels of ours, so that admission treats it alike."""
    (ours,) = [d.body for d in manifests.documents() if d.kind == "Namespace"]
    name = f"deploy-{secrets.token_hex(4)}"
    await admin.create(NAMESPACE, {**ours, "metadata": {**ours["metadata"], "name": name}})
    yield name
    await admin.delete(NAMESPACE, name)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def charts(admin: Api) -> AsyncIterator[Kind]:
    """Our CRD as it was before Tenantry, without any schema, in an API group of the test's own."""
    group = f"{secrets.token_hex(4)}.example.com"
    definition = in_group(group)
    version = definition["spec"]["versions"][0]
    version["schema"] = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    await admin.apply(CUSTOM_RESOURCE_DEFINITION, definition)
    kind = Kind(f"{group}/v1alpha1", "ProjectHelmChart", "projecthelmcharts")
    await served(admin, kind)
    yield kind
    await admin.delete(CUSTOM_RESOURCE_DEFINITION, definition["metadata"]["name"])


def in_group(group: str) -> Body:
    (ours,) = [d.body for d in manifests.documents() if d.kind == "CustomResourceDefinition"]
    definition = copy.deepcopy(ours)
    definition["metadata"]["name"] = f"projecthelmcharts.{group}"
    definition["spec"]["group"] = group
    return definition


async def served(admin: Api, kind: Kind) -> None:
    """Wait until the API server serves a kind."""
    async with asyncio.timeout(20):
        while True:
            try:
                await admin.list(kind, limit=1)
            except KindNotServed:
                await asyncio.sleep(0.1)
            else:
                return


def chart(kind: Kind, namespace: str, name: str = "a", **content: Any) -> Body:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **content}


def with_expressions(*expressions: Body) -> Body:
    return {"helmApiVersion": CHART, "projectNamespaceSelector": {"matchExpressions": list(expressions)}}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def checked(admin: Api, charts: Kind, system: str) -> AsyncIterator[Kind]:
    """Our CRD in force, after two objects were stored that it would not take."""
    finalizers = ["wrangler.cattle.io/on-project-helm-chart-remove"]
    for name, content in {"bare": {}, "null": {"spec": {"helmApiVersion": None}}}.items():
        body = chart(charts, system, name, **content)
        body["metadata"]["finalizers"] = finalizers
        await admin.create(charts, body)
    await admin.apply(CUSTOM_RESOURCE_DEFINITION, in_group(charts.group))
    async with asyncio.timeout(20):
        while True:
            try:
                await admin.apply(charts, chart(charts, system), dry_run=True)
            except ApiError:
                break
            await asyncio.sleep(0.1)
    yield charts
    for name in ("bare", "null"):
        await admin.json_patch(charts, name, system, [{"op": "remove", "path": "/metadata/finalizers"}])


async def test_core_objects_are_valid(admin: Api, system: str) -> None:
    """The API server takes every core object that we deploy, and knows every one of its fields."""
    core = [d for d in manifests.documents() if not d.group.endswith("knative.dev")]

    assert core
    for document in core:
        body = in_namespace(document.body, system)
        stored = await admin.apply(kind_of(body), body, dry_run=True)

        assert stored["metadata"]["name"] == document.name, str(document)


async def test_pods_fit_the_restricted_profile(admin: Api, system: str) -> None:
    """Every pod that we deploy is valid and passes the pod security standard that our namespace enforces."""
    pod = Kind("v1", "Pod", "pods")
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": system}}
    await admin.apply(kind_of(account), account)
    templates = pod_templates(manifests.documents())

    assert templates
    for number, (name, template) in enumerate(templates):
        spec = {key: value for key, value in template["spec"].items() if key not in KNATIVE_ONLY}
        body = {**chart(pod, system, f"pod-{number}"), "spec": spec}
        stored = await admin.apply(pod, body, dry_run=True)

        assert stored["spec"]["containers"], name


async def test_the_dead_letter_job_is_valid(admin: Api, system: str) -> None:
    """The API server takes the Job of a dead letter."""
    job = Kind("batch/v1", "Job", "jobs")
    (sink,) = [d for d in manifests.documents() if d.kind == "JobSink"]
    stored = await admin.apply(job, {**chart(job, system), "spec": sink.spec["job"]["spec"]}, dry_run=True)

    assert stored["spec"]["backoffLimit"] == sink.spec["job"]["spec"]["backoffLimit"]


@pytest.mark.parametrize(
    "spec",
    [
        {"helmApiVersion": CHART},
        {"helmApiVersion": CHART, "values": None, "projectNamespaceSelector": None},
        {"helmApiVersion": CHART, "values": {"a": {"b": [1, None, "c"]}}, "projectNamespaceSelector": {}},
        {"helmApiVersion": CHART, "projectNamespaceSelector": {"matchLabels": None, "matchExpressions": None}},
        {"helmApiVersion": CHART, "projectNamespaceSelector": {"matchLabels": {"a": "b"}}},
        with_expressions({"key": "a", "operator": "In", "values": ["b"]}),
        with_expressions({"key": "a", "operator": "Exists"}, {"key": "b", "operator": "DoesNotExist", "values": None}),
    ],
)
async def test_manifests_of_helm_project_operator_apply(admin: Api, checked: Kind, system: str, spec: Body) -> None:
    """Manifests that Helm Project Operator takes apply unchanged, null values included."""
    stored = await admin.apply(checked, chart(checked, system, spec=spec), dry_run=True)

    assert stored["spec"].get("values") == spec.get("values")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({}, WHAT_TO_WRITE),
        ({"spec": {}}, WHAT_TO_WRITE),
        ({"spec": {"helmApiVersion": None}}, WHAT_TO_WRITE),
        ({"spec": {"helmApiVersion": ""}}, "at least 1 chars"),
        ({"spec": with_expressions({"key": "a", "operator": "In"})}, "needs at least one entry in values"),
        ({"spec": with_expressions({"key": "a", "operator": "NotIn", "values": []})}, "needs at least one entry"),
        ({"spec": with_expressions({"key": "a", "operator": "Exists", "values": ["b"]})}, "takes no values"),
        ({"spec": with_expressions({"key": "a", "operator": "Equals", "values": ["b"]})}, "supported values"),
        ({"spec": with_expressions({"key": "a"})}, "operator: Required value"),
        ({"spec": {"helmApiVersion": CHART, "valeus": {}}}, "field not declared in schema"),
    ],
)
async def test_bad_charts_are_refused_with_advice(
    admin: Api, checked: Kind, system: str, content: Body, reason: str
) -> None:
    """A ProjectHelmChart that nothing would ever act on is refused, and the message says what to write."""
    with pytest.raises(ApiError, match=reason):
        await admin.apply(checked, chart(checked, system, **content), dry_run=True)


@pytest.mark.parametrize("name", ["bare", "null"])
async def test_stored_charts_can_be_let_go(admin: Api, checked: Kind, system: str, name: str) -> None:
    """An object from before the check can still be labelled and lose its finalizer."""
    label = {"op": "add", "path": "/metadata/labels", "value": {"a": secrets.token_hex(4)}}
    stored = await admin.json_patch(checked, name, system, [label])

    assert stored["metadata"]["labels"] == label["value"]


async def test_status_keeps_what_it_had_and_what_is_new(admin: Api, checked: Kind, system: str) -> None:
    """The status takes the six known fields and, beside them, conditions and the observed generation."""
    await admin.apply(checked, chart(checked, system, "status", spec={"helmApiVersion": CHART}))
    when = "2026-01-01T00:00:00Z"
    status = {
        "status": "Deployed",
        "statusMessage": "Release was deployed.",
        "systemNamespace": "cattle-helm-system",
        "releaseNamespace": "cattle-project-p-a-dummy",
        "releaseName": "cattle-project-p-a-dummy",
        "targetNamespaces": ["a", "b"],
        "dashboardValues": {"grafana": {"url": "x"}},
        "observedGeneration": 1,
        "conditions": [
            {"type": "Ready", "status": "True", "reason": "Deployed", "message": "", "lastTransitionTime": when}
        ],
    }
    stored = await admin.apply(checked, chart(checked, system, "status", status=status), subresource="status")

    assert stored["status"] == status


FUNCTION = "system:serviceaccount:tenantry-system:namespace-registration"
SOURCE = "system:serviceaccount:tenantry-system:tenantry-source"
CHART_MAP = "dummy.cattle.io.v1alpha1"
RIGHTS = [
    # user, verb, group, resource, name, allowed
    (FUNCTION, "list", "", "namespaces", "", True),
    (FUNCTION, "create", "", "namespaces", "cattle-project-p-a", True),
    (FUNCTION, "patch", "", "namespaces/status", "a", True),
    (FUNCTION, "delete", "", "namespaces", "cattle-project-p-a", False),
    (FUNCTION, "create", "", "configmaps", CHART_MAP, True),
    (FUNCTION, "list", "", "configmaps", CHART_MAP, True),
    (FUNCTION, "delete", "", "configmaps", CHART_MAP, True),
    (FUNCTION, "patch", "", "configmaps", "kube-root-ca.crt", False),
    (FUNCTION, "list", "", "configmaps", "", False),
    (FUNCTION, "patch", "", "serviceaccounts", "default", True),
    (FUNCTION, "patch", "", "serviceaccounts", "namespace-registration", False),
    (FUNCTION, "create", "", "serviceaccounts/token", "default", False),
    (FUNCTION, "patch", "networking.k8s.io", "networkpolicies", "hpo-generated-default", True),
    (FUNCTION, "patch", "networking.k8s.io", "networkpolicies", "somebody-elses", False),
    (FUNCTION, "create", "events.k8s.io", "events", "", True),
    (FUNCTION, "get", "", "secrets", "a", False),
    (FUNCTION, "patch", "rbac.authorization.k8s.io", "clusterroles", "a", False),
    (SOURCE, "watch", "", "namespaces", "", True),
    (SOURCE, "watch", "networking.k8s.io", "networkpolicies", "", True),
    (SOURCE, "patch", "", "namespaces", "a", False),
    (SOURCE, "list", "", "secrets", "", False),
]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def authorised(admin: Api) -> AsyncIterator[None]:
    """Our roles and bindings in force."""
    rights = [d for d in manifests.documents() if d.group == "rbac.authorization.k8s.io"]
    for document in rights:
        await admin.apply(kind_of(document.body), document.body)
    yield
    for document in rights:
        await admin.delete(kind_of(document.body), document.name)


@pytest.mark.parametrize(("user", "verb", "group", "resource", "name", "allowed"), RIGHTS)
@pytest.mark.usefixtures("authorised")
async def test_rights_suffice_and_end(
    admin: Api, user: str, verb: str, group: str, resource: str, name: str, allowed: bool
) -> None:
    """Each identity may do what its work needs, on the names that its work needs, and nothing beyond."""
    resource, _, subresource = resource.partition("/")
    attributes = {"verb": verb, "group": group, "resource": resource, "subresource": subresource, "name": name}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": user, "resourceAttributes": attributes},
    }
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    async with asyncio.timeout(20):
        while True:
            answer = await admin.request("POST", path, None, review)
            # New rights reach the authorizer through a watch; a right that is missing for good ends in the timeout.
            if answer["status"]["allowed"] == allowed:
                break
            await asyncio.sleep(0.1)

    assert answer["status"]["allowed"] is allowed


def test_every_core_kind_has_a_plural(installed: list[Document]) -> None:
    """The guess of plurals holds for the core kinds that these tests apply."""
    kinds = {d.kind for d in installed if not d.group.endswith("knative.dev")}

    assert {guessed_plural(kind) for kind in kinds} <= {
        "namespaces", "serviceaccounts", "clusterroles", "clusterrolebindings", "configmaps",
        "customresourcedefinitions", "services", "deployments",
    }  # fmt: skip
