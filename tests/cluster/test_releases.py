"""A ProjectHelmChart becomes a release: namespace, HelmChart, HelmRelease, values and status (hpo-27 to 38)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import pytest_asyncio
from people import C1, LABEL, OPERATED, PROJECT_ID, changed
from releases import (
    FINALIZER,
    FUNCTIONS,
    SYSTEM,
    Owners,
    cattle_of,
    conditions_of,
)

from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.model.kinds import (
    HELM_RELEASE,
    NAMESPACE,
    annotations_of,
    labels_of,
)

CONFIG = changed(
    C1,
    cattle={"url": "https://cattle.example"},
    operator={"valuesOverride": {"global": {"cattle": {"rkeVersion": "from-the-file"}}, "targets": ["file"]}},
)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(knative: Callable[..., Awaitable[Knative]]) -> AsyncIterator[Knative]:
    """Both functions under the reference configuration, until the module ends."""
    running = await knative(CONFIG, functions=FUNCTIONS)
    statuses: list[int] = []
    running.on_delivery.append(lambda _, __, status, *___: statuses.append(status))
    yield running
    await running.drain()
    assert 500 not in statuses
    assert not running.dead_letters.exists(), running.dead_letters.read_text()


@pytest.fixture
def owners(system: Knative, admin: Api) -> Owners:
    return Owners(admin)


@pytest.mark.check("hpo-27")
@pytest.mark.check("hpo-28")
@pytest.mark.check("hpo-29")
@pytest.mark.check("hpo-30")
@pytest.mark.check("hpo-34")
async def test_a_chart_that_is_asked_for_is_provisioned(owners: Owners) -> None:
    """Release namespace, HelmChart and HelmRelease appear with their marks and values, and the owner is told."""
    project = await owners.project()
    name, member = f"demo-{project}", f"a1-{project}"
    release = f"{name}-dummy"

    await owners.ask(name, project)
    chart = await owners.provisioned(release)
    namespace = await owners.get(NAMESPACE, release)
    lock = await owners.get(HELM_RELEASE, release, SYSTEM)

    assert chart["spec"]["targetNamespace"] == release
    assert lock["spec"]["release"] == {"name": release, "namespace": release}
    assert labels_of(namespace) == {
        OPERATED: "true",
        PROJECT_ID: project,
        LABEL: "p-system",
        "kubernetes.io/metadata.name": release,
    }
    assert annotations_of(namespace)[LABEL] == "c-test:p-system"
    for made in (chart, lock):
        assert labels_of(made) == {
            OPERATED: "true",
            PROJECT_ID: project,
            "helm.cattle.io/helm-api-version": "dummy.cattle.io",
        }
    assert annotations_of(chart)["helmcharts.cattle.io/managed-by"] == "helm-project-operator"
    assert annotations_of(lock)["helmreleases.cattle.io/managed-by"] == "helm-project-operator"
    assert cattle_of(chart) == {
        "clusterId": "c-test",
        "projectID": project,
        "projectNamespaces": [member, release],
        "projectNamespaceSelector": {"matchLabels": {PROJECT_ID: project}},
        "releaseProjectID": "p-system",
        "rkeVersion": "from-the-file",
        "systemDefaultRegistry": "",
        "url": "https://cattle.example",
    }

    asked = await owners.told(name, project, "WaitingForDashboardValues")

    assert asked["metadata"]["finalizers"] == [FINALIZER]
    status = asked["status"]
    assert (status["systemNamespace"], status["releaseNamespace"], status["releaseName"]) == (SYSTEM, release, release)
    assert status["targetNamespaces"] == [member, release]
    assert status["observedGeneration"] == 1
    assert "dashboardValues" not in status
    assert conditions_of(asked) == {
        "Ready": ("False", "WaitingForHelm"),
        "Reconciling": ("True", "WaitingForHelm"),
        "Stalled": ("False", "WaitingForHelm"),
    }
