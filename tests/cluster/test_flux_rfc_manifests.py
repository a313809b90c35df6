"""The stories of RFC-0002 by its own manifests, on the versions that it was written for (CRD set RFC)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import pytest_asyncio
from admitting import Admitting
from flux_policing import APP1 as NAME_OF_APP1
from flux_policing import BITNAMI as NAME_OF_BITNAMI
from flux_policing import TEAM1, TEAM2, TEAM3, Policing, admitted, denied, helm_release, kustomization
from flux_rfc import APP1, AUTOMATION, BITNAMI, CLUSTER_CONFIG, kind_of, rfc
from fluxing import SOURCES, Fluxing
from times import LEFT_TO_MAKE_WHOLE

from tenantry.local.knative import Knative
from tenantry.model.kinds import Object

pytestmark = [LEFT_TO_MAKE_WHOLE, pytest.mark.no_policies]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def policing(admitting: Admitting, flawlessly: Callable[..., Awaitable[Knative]]) -> Policing:
    """The three stories' sources, and one without the field, stored as they are written; policies judge by the index of them.

    Sources of v1 alone have events: of older ones scope-binding hears by its sweep.
    """
    found = Policing(admitting.admin, admitting)
    running = await flawlessly({}, functions=[SOURCES])
    await found.furnish(rfc())
    await found.enforce()
    for each in (BITNAMI, APP1, CLUSTER_CONFIG, unshared()):
        stored = await found.admin.create(kind_of(each), each)
        assert stored["apiVersion"].endswith("/v1beta1")
        assert stored["spec"] == each["spec"]
    await running.sweep(SOURCES)
    return found


def unshared() -> Object:
    """A HelmRepository without the field."""
    spec = {part: value for part, value in BITNAMI["spec"].items() if part != "accessFrom"}
    return {**BITNAMI, "metadata": {"name": "internal", "namespace": "flux-system"}, "spec": spec}


@pytest.mark.check("f-64")
async def test_story_1_charts_for_all_tenants(policing: Policing) -> None:
    """A HelmRepository with one empty selector is for a namespace without labels, too; one without the field for nobody."""
    stored = await policing.admin.get(kind_of(BITNAMI), "bitnami", "flux-system")
    assert stored is not None
    assert stored["spec"]["accessFrom"] == {"namespaceSelectors": [{"matchLabels": {}}]}
    assert await Fluxing(policing.admin).granted("flux-system") == {
        "HelmRepository/bitnami": ("*", "*"),
        "GitRepository/cluster-config": ("kubernetes.io/metadata.name=dev-team1",) * 2,
    }
    release = helm_release("dev-team3", chart=NAME_OF_BITNAMI, name="redis")
    await policing.until(lambda: policing.create(release, user=TEAM3), 201)
    internal = "HelmRepository/flux-system/internal"
    await policing.denied(helm_release("dev-team3", chart=internal, name="redis"), internal, user=TEAM3)


@pytest.mark.check("f-65")
async def test_story_2_a_repository_for_another_tenant(policing: Policing) -> None:
    """That one may use it, a third may not."""
    await policing.until(lambda: policing.create(kustomization("dev-team2", NAME_OF_APP1), user=TEAM2), 201)
    await policing.denied(kustomization("dev-team3", NAME_OF_APP1), NAME_OF_APP1, user=TEAM3)


@pytest.mark.check("f-66")
async def test_story_3_image_automation_on_a_repository_of_the_platform(policing: Policing) -> None:
    """By the tenant's manifest as it is written; the same object in another namespace is refused."""
    await policing.until(lambda: policing.create(AUTOMATION, user=TEAM1), 201)
    stored = await policing.made(AUTOMATION, user=TEAM1)
    assert stored["spec"] == AUTOMATION["spec"]
    admitted(await policing.ask("GET", policing.path(AUTOMATION), user=TEAM1))
    elsewhere = {**AUTOMATION, "metadata": {**AUTOMATION["metadata"], "namespace": "dev-team2"}}
    denied(await policing.create(elsewhere, user=TEAM2), "spec.sourceRef: GitRepository/flux-system/cluster-config")
