"""ProjectHelmCharts that real Helm deploys, with all functions at work: from the request to the release, and back."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import pytest_asyncio
from flawless import flawless
from people import changed, registration, token
from releases import CONFIG, FUNCTIONS, SYSTEM, Owners, conditions_of
from rights import AGGREGATION, cluster_role, named, user

from tenantry.api import Api
from tenantry.local.control_plane import Lines, ensure_helm
from tenantry.local.deployment import documents
from tenantry.local.knative import Knative
from tenantry.model.conditions import find_condition
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    HELM_CHART,
    HELM_RELEASE,
    JOB,
    NAMESPACE,
    NETWORK_POLICY,
    POD,
    PROJECT_HELM_CHART,
    ROLE,
    ROLE_BINDING,
    SECRET,
    SERVICE_ACCOUNT,
    Object,
    labels_of,
)
from tenantry.testing import eventually
from tenantry.testing.settling import settle, snapshot

ROOT = Path(__file__).parents[2]
FULL_SIZE = "TENANTRY_FULL_SIZE"
ALL = (*FUNCTIONS, AGGREGATION, "lock-enforcement", "scope-binding")
MONITORED = "apps.example.com/v1alpha1"
WRITTEN = (
    NAMESPACE,
    PROJECT_HELM_CHART,
    HELM_CHART,
    HELM_RELEASE,
    CONFIG_MAP,
    SECRET,
    SERVICE_ACCOUNT,
    NETWORK_POLICY,
    ROLE,
    ROLE_BINDING,
    CLUSTER_ROLE_BINDING,
    JOB,
    POD,
)
"""What the functions, Helm and charts write."""


@pytest.fixture
def owners(admin: Api) -> Owners:
    return Owners(admin)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def deploying(knative: Callable[..., Awaitable[Knative]], admin: Api) -> AsyncIterator[Knative]:
    """All functions, the local runner of Jobs with a real Helm, and a chart whose objects may be locked."""
    charts = [
        *CONFIG["helmProjectOperator"]["charts"],
        {"helmApiVersion": MONITORED, "releaseName": "monitored", "chart": str(ROOT / "docs/examples/monitored-app")},
    ]
    config = changed(CONFIG, operator={"charts": charts, "helmController": {"enabled": True}})
    for role in documents(ROOT / "knative" / "lockable-kinds"):
        await admin.apply(CLUSTER_ROLE, role)
    running = await knative(config, functions=ALL, helm=ensure_helm(Lines()))
    async with flawless(running):
        yield running


def is_ready(chart: Object) -> bool:
    """Whether Helm has deployed what a ProjectHelmChart asks for."""
    ready = conditions_of(chart)["Ready"] == ("True", "Deployed")
    return ready and (find_condition(chart, "Ready") or {}).get("observedGeneration") == chart["metadata"]["generation"]


async def records(owners: Owners, release: str) -> dict[str, str]:
    """Helm's records of a release: revision to uid."""
    found = (await owners.admin.list(SECRET, release, label_selector=f"owner=helm,name={release}")).items
    return {labels_of(each)["version"]: each["metadata"]["uid"] for each in found}


async def bind(owners: Owners, project: str, who: str, level: str) -> None:
    """Give a person a level in a project."""
    metadata = {"name": who, "namespace": registration(project)}
    body = {"apiVersion": ROLE_BINDING.api_version, "kind": ROLE_BINDING.kind, "metadata": metadata}
    await owners.admin.create(ROLE_BINDING, {**body, "roleRef": cluster_role(level), "subjects": [user(who)]})


async def deployed(owners: Owners, name: str, project: str, who: str) -> None:
    """Wait until a monitored release is deployed and locked, and its admin is bound to the chart's Role."""
    release = f"{name}-monitored"
    await owners.told(name, project, "Deployed", holds=is_ready)
    await owners.until(
        ROLE_BINDING, f"{release}-admin", release, lambda found: named(found) == [f"User {who}"], what=f"{who} in {release}"
    )
    await owners.until(
        HELM_RELEASE,
        release,
        SYSTEM,
        lambda found: (find_condition(found, "Complete") or {}).get("status") == "True",
        what=f"lock of {release}",
    )


@pytest.fixture
def project() -> str:
    return f"p-{token()}"


@pytest.mark.check("hpo-51")
@pytest.mark.timeout(1200)
async def test_restarts_change_nothing(owners: Owners, deploying: Knative, project: str) -> None:
    """Restarts and sweeps of all functions over deployed releases write nothing; `make volume`: 20 restarts, 50 releases."""
    charts, restarts = (50, 20) if os.environ.get(FULL_SIZE) else (4, 2)
    names = [f"demo{number}-{project}" for number in range(charts)]
    await owners.project(name=project)
    await bind(owners, project, "alice", "admin")
    await asyncio.gather(*(owners.ask(name, project, version=MONITORED) for name in names))

    async def all_deployed() -> bool:
        found = {each["metadata"]["name"]: each for each in (await owners.admin.list(PROJECT_HELM_CHART)).items}
        return all(found[name].get("status") and is_ready(found[name]) for name in names)

    await eventually(all_deployed, within=600, what="all releases deployed")
    for name in names:
        await deployed(owners, name, project, "alice")
    await settle(deploying, owners.admin)

    async def seen() -> dict[str, dict[str, str]]:
        return {kind.kind: await snapshot(owners.admin, [kind], containing=project) for kind in WRITTEN}

    before = await seen()
    for name in names:
        assert list(await records(owners, f"{name}-monitored")) == ["1"]
    assert len(before["RoleBinding"]) >= charts + 1, "each release has that of its admin, and the project has one"
    assert len(before["Role"]) == 3 * charts
    assert len(before["Job"]) == len(before["Pod"]) == charts

    for _ in range(restarts):
        await asyncio.gather(*(function.stop() for function in deploying.functions.values()))
        await asyncio.gather(*(function.start() for function in deploying.functions.values()))
        for function in deploying.functions:
            await deploying.sweep(function)
        assert await seen() == before
    await settle(deploying, owners.admin)
    assert await seen() == before
