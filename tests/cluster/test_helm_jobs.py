"""Helm for HelmCharts, with a real Helm: install, upgrade, uninstall, and what goes wrong (spec helm-project 1.3 to 1.5, 4.7)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio
from helm_people import FUNCTION, SYSTEM, HelmPeople
from people import People, token

from tenantry.local.control_plane import Lines, ensure_helm
from tenantry.local.knative import Knative
from tenantry.model.conditions import find_condition
from tenantry.model.kinds import (
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    HELM_CHART,
    JOB,
    ROLE,
    SECRET,
    SERVICE_ACCOUNT,
    annotations_of,
)
from tenantry.testing.settling import settle

CONFIG: dict[str, Any] = {
    "helmProjectOperator": {
        "systemNamespace": SYSTEM,
        "charts": [
            {"helmApiVersion": "dummy.cattle.io/v1alpha1", "releaseName": "dummy"},
            {"helmApiVersion": "narrow.cattle.io/v1alpha1", "releaseName": "narrow", "jobClusterRole": "admin"},
        ],
    },
}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(knative: Callable[..., Awaitable[Knative]]) -> AsyncIterator[Knative]:
    """The function and the local runner of its Jobs."""
    running = await knative(CONFIG, functions=[FUNCTION], helm=ensure_helm(Lines()))
    statuses: list[int] = []
    running.on_delivery.append(lambda _, __, status, *___: statuses.append(status))
    yield running
    await running.drain()
    assert 500 not in statuses
    assert not running.dead_letters.exists(), running.dead_letters.read_text()


@pytest.fixture
def helm(people: People, system: Knative) -> HelmPeople:
    """An administrator who works with HelmCharts."""
    del system
    return HelmPeople(people)


async def test_chart_is_installed_upgraded_and_uninstalled(helm: HelmPeople, system: Knative) -> None:
    """A HelmChart becomes a release; changed values and a HelmChartConfig upgrade it; its deletion uninstalls it."""
    name = f"story-{token()}"
    await helm.ask(name, valuesContent="greeting: hello")

    await helm.greets(name, "hello")
    await helm.says(name, "Complete")
    chart = await helm.people.get(HELM_CHART, name, SYSTEM)
    assert annotations_of(chart)["helmcharts.cattle.io/managed-by"] == "helm-project-operator"
    assert chart["metadata"]["finalizers"] == ["tenantry.dev/helm-chart"]
    assert chart["status"]["jobName"] == f"helm-install-{name}"
    assert find_condition(chart, "JobCreated")["status"] == "True"  # type: ignore[index]
    first = await helm.job(name)
    digest = annotations_of(first["spec"]["template"])["helmcharts.helm.cattle.io/configHash"]
    assert digest.startswith("SHA256=")
    binding = await helm.people.get(CLUSTER_ROLE_BINDING, f"helm-{SYSTEM}-{name}")
    assert binding["roleRef"]["name"] == "cluster-admin"
    assert [subject["name"] for subject in binding["subjects"]] == [f"helm-{name}"]

    await helm.change(name, valuesContent="greeting: servus")
    await helm.greets(name, "servus")
    await helm.says(name, "Complete")
    assert (await helm.job(name))["metadata"]["uid"] != first["metadata"]["uid"]
    assert await helm.releases(name) == [(1, "superseded"), (2, "deployed")]

    await helm.configure(name, valuesContent="greeting: from the administrator")
    await helm.greets(name, "from the administrator")
    await helm.says(name, "Complete")

    before = await helm.job(name)
    await settle(system, helm.admin)
    await system.sweep(FUNCTION)
    assert (await helm.job(name))["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]

    await helm.people.delete(HELM_CHART, name, SYSTEM)
    await helm.gone(HELM_CHART, name)
    assert await helm.admin.get(CONFIG_MAP, name, name) is None
    assert await helm.admin.get(ROLE, name, name) is None
    assert await helm.releases(name) == []
    assert await helm.admin.get(SERVICE_ACCOUNT, f"helm-{name}", SYSTEM) is None
    assert await helm.admin.get(CLUSTER_ROLE_BINDING, f"helm-{SYSTEM}-{name}") is None
    await helm.gone(SECRET, f"chart-values-{name}")
    await helm.gone(CONFIG_MAP, f"chart-content-{name}")
    await helm.gone(JOB, f"helm-install-{name}")
    await helm.gone(JOB, f"helm-delete-{name}")
    assert {"Claimed", "ApplyJob", "ReplaceJob", "JobComplete", "RemoveJob", "Removed"} <= await helm.reasons(name)
