"""What only a real API server can say: our core objects are valid, our pods are admitted, our rights suffice and end.

Nothing here is kept, and nothing that others use is touched: objects are applied as a dry run, or live in a
namespace and under names of the test's own.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

import manifests
import pytest
import pytest_asyncio
from manifests import guessed_plural, kind_of, pod_templates, within

from tenantry.api.client import Api
from tenantry.model.kinds import CUSTOM_RESOURCE_DEFINITION, POD, SERVICE_ACCOUNT
from tenantry.testing import eventually
from tenantry.testing.objects import obj

KNATIVE_ONLY = {"serviceAccountName", "containerConcurrency", "timeoutSeconds"}


async def test_core_objects_are_valid(admin: Api, system: str) -> None:
    """The API server takes every core object that we deploy, and knows every one of its fields."""
    core = [d for d in manifests.documents() if not d.group.endswith("knative.dev")]

    assert core
    for document in core:
        body = within(document.body, system)
        stored = await admin.apply(kind_of(body), body, dry_run=True)

        assert stored["metadata"]["name"] == document.name, str(document)


async def test_pods_fit_the_restricted_profile(admin: Api, system: str) -> None:
    """Every pod that we deploy is valid and passes the pod security standard that our namespace enforces."""
    await admin.apply(SERVICE_ACCOUNT, obj(SERVICE_ACCOUNT, "default", system))
    templates = pod_templates(manifests.documents())

    assert templates
    for number, (name, template) in enumerate(templates):
        spec = {key: value for key, value in template["spec"].items() if key not in KNATIVE_ONLY}
        stored = await admin.apply(POD, obj(POD, f"pod-{number}", system, spec=spec), dry_run=True)

        assert stored["spec"]["containers"], name


FUNCTION = "namespace-registration"
SOURCE = "tenantry-source-namespace-registration"
SINK, LETTERS = "dead-letters", "tenantry-dead-letters"
CHART_MAP = "dummy.cattle.io.v1alpha1"
RIGHTS = [
    # service account, verb, group, resource, name, allowed
    (FUNCTION, "list", "", "namespaces", "", True),
    (FUNCTION, "create", "", "namespaces", "cattle-project-p-a", True),
    (FUNCTION, "patch", "", "namespaces/status", "a", True),
    (FUNCTION, "delete", "", "namespaces", "cattle-project-p-a", True),  # those of a Paas, which its fence says
    (FUNCTION, "create", "", "configmaps", CHART_MAP, True),
    (FUNCTION, "list", "", "configmaps", CHART_MAP, True),
    (FUNCTION, "delete", "", "configmaps", CHART_MAP, True),
    (FUNCTION, "patch", "", "configmaps", "kube-root-ca.crt", False),
    (FUNCTION, "list", "", "configmaps", "", False),
    (FUNCTION, "patch", "", "serviceaccounts", "default", True),
    (FUNCTION, "patch", "", "serviceaccounts", "flux", True),  # those of Tenants, which its fence says
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
    (SINK, "get", "", "configmaps", LETTERS, True),
    (SINK, "create", "", "configmaps", LETTERS, True),
    (SINK, "patch", "", "configmaps", LETTERS, True),
    (SINK, "delete", "", "configmaps", LETTERS, False),
    (SINK, "get", "", "configmaps", "tenantry-config", False),
    (SINK, "create", "", "configmaps", "", False),
    (SINK, "list", "", "configmaps", "", False),
    (SINK, "get", "", "secrets", LETTERS, False),
    (SINK, "create", "batch", "jobs", "", False),
]


async def allowed_to(admin: Api, namespace: str, right: tuple[str, str, str, str, str]) -> bool:
    """Whether the API server would let a service account of the namespace do it."""
    account, verb, group, resource, name = right
    resource, _, subresource = resource.partition("/")
    inside = {"namespace": namespace} if account == SINK else {}
    attributes = {**inside, "verb": verb, "group": group, "resource": resource, "subresource": subresource, "name": name}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": f"system:serviceaccount:{namespace}:{account}", "resourceAttributes": attributes},
    }
    answer = await admin.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", None, review)
    return bool(answer["status"]["allowed"])


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def authorised(admin: Api, system: str) -> AsyncIterator[str]:
    """Copies of our roles and bindings in force for the service accounts of the test's namespace, which it returns."""
    copies = []
    for document in (d for d in manifests.documents() if d.group == "rbac.authorization.k8s.io"):
        body = within(document.body, system)
        body["metadata"]["name"] += f"-{system}"
        if "roleRef" in body:
            body["roleRef"]["name"] += f"-{system}"
            for subject in body["subjects"]:
                subject["namespace"] = system
        copies.append(body)
    for body in copies:
        await admin.apply(kind_of(body), body)
    for account in (FUNCTION, SOURCE):  # new rights reach the authorizer through a watch
        right = (account, "list", "", "namespaces", "")
        await eventually(partial(allowed_to, admin, system, right), within=20, what=f"the rights of {account}")
    yield system
    for body in copies:
        await admin.delete(kind_of(body), body["metadata"]["name"], body["metadata"].get("namespace", ""))


@pytest.mark.parametrize(("account", "verb", "group", "resource", "name", "allowed"), RIGHTS)
async def test_rights_suffice_and_end(
    admin: Api, authorised: str, account: str, verb: str, group: str, resource: str, name: str, allowed: bool
) -> None:
    """Each identity may do what its work needs, on the names that its work needs, and nothing beyond."""
    assert await allowed_to(admin, authorised, (account, verb, group, resource, name)) is allowed


async def test_kinds_of_default_sources_are_served(admin: Api) -> None:
    """The API server itself serves each kind that a default source watches, but for those of our CRDs and of Knative."""
    crds = [d.spec for d in manifests.resolve(manifests.ROOT / "knative" / "crds")]
    brought = {crd["group"] for crd in crds} | {"sources.knative.dev"}
    wanted = {
        (watched.api_version, watched.kind)
        for _, spec in manifests.sources(manifests.resolve(manifests.ROOT / "knative"))
        for watched in spec.resources
    }
    built_in = {each for each in wanted if each[0].rpartition("/")[0] not in brought}
    added = {each["spec"]["group"] for each in (await admin.list(CUSTOM_RESOURCE_DEFINITION)).items}

    assert built_in
    for api_version, kind in sorted(built_in):
        found = await admin.request("GET", f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}")
        assert api_version.rpartition("/")[0] not in added
        assert guessed_plural(kind) in {each["name"] for each in found["resources"] if each["kind"] == kind}
