"""CRDs at a real API server: what applied before still applies, what helps nobody is refused.

A CRD is tried in an API group of the test's own; that of ProjectHelmChart first without its schema, so that objects exist
which the schema would not take.
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
from manifests import Body

from tenantry.api.client import Api
from tenantry.api.errors import ApiError, KindNotServed
from tenantry.model.kinds import CUSTOM_RESOURCE_DEFINITION, Kind

CHART = "dummy.cattle.io/v1alpha1"
WHAT_TO_WRITE = "write spec.helmApiVersion"


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


def in_group(group: str, plural: str = "projecthelmcharts") -> Body:
    (ours,) = [d.body for d in manifests.documents() if d.name == f"{plural}.helm.cattle.io"]
    definition = copy.deepcopy(ours)
    definition["metadata"]["name"] = f"{plural}.{group}"
    definition["spec"]["group"] = group
    return definition


async def served(admin: Api, kind: Kind) -> None:
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
        ({"spec": {"helmApiVersion": CHART, "values": []}}, r"spec\.values: expected map"),
        ({"spec": {"helmApiVersion": CHART, "values": "x"}}, r"spec\.values: expected map"),
    ],
)
async def test_bad_charts_are_refused_with_advice(admin: Api, checked: Kind, system: str, content: Body, reason: str) -> None:
    """A ProjectHelmChart that nothing would ever act on is refused, and the message says what to write."""
    with pytest.raises(ApiError, match=reason):
        await admin.apply(checked, chart(checked, system, **content), dry_run=True)


@pytest.mark.parametrize("values", [[], "x"])
async def test_values_that_are_no_map_cannot_be_created(admin: Api, checked: Kind, system: str, values: Any) -> None:
    """What `kubectl create` sends is refused by the schema, with the field and the type that it wants."""
    with pytest.raises(ApiError, match=r"spec\.values in body must be of type object"):
        await admin.create(checked, chart(checked, system, spec={"helmApiVersion": CHART, "values": values}), dry_run=True)


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
        "conditions": [{"type": "Ready", "status": "True", "reason": "Deployed", "message": "", "lastTransitionTime": when}],
    }
    stored = await admin.apply(checked, chart(checked, system, "status", status=status), subresource="status")

    assert stored["status"] == status


async def test_null_in_a_config_is_as_if_it_were_not_there(admin: Api, system: str) -> None:
    """A HelmChartConfig whose enumerated fields are null is taken, and says nothing about them."""
    group = f"{secrets.token_hex(4)}.example.com"
    definition = in_group(group, "helmchartconfigs")
    kind = Kind(f"{group}/v1", "HelmChartConfig", "helmchartconfigs")
    await admin.apply(CUSTOM_RESOURCE_DEFINITION, definition)
    await served(admin, kind)

    stored = await admin.create(
        kind, chart(kind, system, spec={"failurePolicy": None, "serverSide": None, "valuesContent": "a: b"})
    )

    assert stored["spec"] == {"valuesContent": "a: b"}
    await admin.delete(CUSTOM_RESOURCE_DEFINITION, definition["metadata"]["name"])
