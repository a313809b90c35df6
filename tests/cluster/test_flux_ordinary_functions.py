"""Our functions with all policies of Flux tenancy in force, under their own rights: they are refused nothing (f-94)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import pytest_asyncio
from flux_policing import APP1, TEAM2, Policing, kustomization
from fluxing import Fluxing
from people import registration
from releases import CONFIG, Owners
from times import LEFT_TO_MAKE_WHOLE, NAMESPACE_GONE_S

from tenantry.local.knative import Knative
from tenantry.model.kinds import NAMESPACE, PROJECT_HELM_CHART, labels_of

pytestmark = LEFT_TO_MAKE_WHOLE

FUNCTIONS = ("namespace-registration", "release-provisioning", "rbac-aggregation", "scope-binding", "lock-enforcement")


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def working(policing: Policing, flawlessly: Callable[..., Awaitable[Knative]]) -> Knative:
    """Profile multi-tenant with every policy, and all functions."""
    await policing.enforce(kubeConfig="Deny", pinToTenant=True)
    running = await flawlessly(CONFIG, functions=list(FUNCTIONS))
    await running.drain()
    return running


@pytest.mark.check("f-94")
async def test_functions_are_refused_nothing(policing: Policing) -> None:
    """Namespaces of projects and releases are made, labelled and deleted; grants reach the index, and count."""
    owners = Owners(policing.admin, NAMESPACE_GONE_S)
    project = await owners.project()
    name = f"demo-{project}"
    await owners.ask(name, project)
    await owners.provisioned(f"{name}-dummy")
    found = await policing.admin.get(NAMESPACE, registration(project))
    assert labels_of(found)
    await policing.admin.delete(PROJECT_HELM_CHART, name, registration(project))
    await owners.taken_away(f"{name}-dummy")
    await policing.admin.delete(NAMESPACE, f"a1-{project}")
    await owners.orphaned(project)

    flux = Fluxing(policing.admin)
    await flux.source("dev-team1")
    await policing.denied(kustomization("dev-team2", APP1), user=TEAM2)
    await flux.grant("dev-team1", {"team": "two"})
    await policing.until(lambda: policing.create(kustomization("dev-team2", APP1), user=TEAM2), 201)
