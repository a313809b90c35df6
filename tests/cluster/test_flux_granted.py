"""From what an owner says to what admission answers: scope-binding makes the index, and policies judge by it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any

import pytest
import pytest_asyncio
from admitting import Answer
from flux_policing import APP1, TEAM1, TEAM2, TEAM3, Policing, flux_object, kustomization
from fluxing import SOURCES, TWO, Fluxing, access_from, annotated
from paasing import together
from people import token
from times import FLUX_S, LEFT_TO_MAKE_WHOLE

from tenantry.api import Api
from tenantry.api.errors import AdmissionDenied, Invalid
from tenantry.local.knative import Knative
from tenantry.model.flux.names import ACCESS_FROM, ACCESS_INDEX, DEFAULT, SOURCE_GRANT
from tenantry.model.kinds import ADMISSION_POLICY, ADMISSION_POLICY_BINDING, Object, finalizers_of
from tenantry.testing import eventually

pytestmark = LEFT_TO_MAKE_WHOLE

Running = Callable[..., AbstractAsyncContextManager[Knative]]
HOME, OTHER = "dev-team1", "dev-team2"
GUARD = "tenantry-index-undeletable"


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def enforced(policing: Policing) -> None:
    """Profile multi-tenant, everything else default."""
    await policing.enforce()


@pytest.fixture(scope="module")
def flux(admin: Api) -> Fluxing:
    """Owners of sources, and the platform."""
    return Fluxing(admin)


@pytest_asyncio.fixture(loop_scope="session")
async def system(running: Running) -> AsyncIterator[Knative]:
    """scope-binding, for one test."""
    async with running({}, functions=[SOURCES]) as found:
        yield found
        await found.drain()


def automation(namespace: str, source: str, owner: str = HOME) -> Object:
    """An ImageUpdateAutomation that pushes to a GitRepository."""
    named = {"kind": "GitRepository", "name": source, "namespace": owner}
    return flux_object("ImageUpdateAutomation", namespace, spec={"interval": "1m", "sourceRef": named})


def uses(source: str, namespace: str = OTHER) -> Object:
    """A Kustomization of a GitRepository of dev-team1."""
    return kustomization(namespace, f"GitRepository/{HOME}/{source}")


async def answered(policing: Policing, body: Object, status: int, user: str = TEAM2) -> Answer:
    """Wait until a new object is answered so; whatever the index has, it is there within the time of the checks."""
    return await eventually(
        lambda: policing.create(body, user=user), lambda found: found.status == status, within=FLUX_S, what=f"answered {status}"
    )


@pytest.mark.check("f-12")
async def test_a_source_grant_opens_a_source(system: Knative, policing: Policing, flux: Fluxing) -> None:
    """By the name of the source and by its labels, for the namespaces that it selects, although Flux keeps no field for it."""
    source = f"app-{token()}"
    await flux.source(HOME, source, labels={"name": source})
    await policing.denied(uses(source), user=TEAM2)
    for selected in (
        {"sourceRef": {"kind": "GitRepository", "name": source}},
        {"sourceSelector": {"kind": "GitRepository", "matchLabels": {"name": source}}},
    ):
        grant = await flux.grant(HOME, TWO, **selected)
        await answered(policing, uses(source), 201)
        await policing.denied(uses(source, "dev-team3"), user=TEAM3)
        await flux.admin.delete(SOURCE_GRANT, grant["metadata"]["name"], HOME)
        await answered(policing, uses(source), 403)


@pytest.mark.check("f-15")
async def test_a_legal_selector_opens_beside_an_illegal_one(system: Knative, policing: Policing, flux: Fluxing) -> None:
    """Of an annotation; one Warning names the position of the illegal one, which a SourceGrant cannot have."""
    source = f"app-{token()}"
    await flux.source(HOME, source, annotations=annotated({"team": "a b"}, TWO))
    await answered(policing, uses(source), 201)
    (note,) = await eventually(lambda: flux.told(HOME, source), within=FLUX_S)
    assert "namespaceSelectors[0]" in note
    with pytest.raises(Invalid) as caught:
        await flux.grant(HOME, {"team": "a b"}, sourceRef={"kind": "GitRepository", "name": source})
    assert caught.value.status == 422


@pytest.mark.check("f-17")
async def test_image_automation_pushes_where_an_annotation_lets_it(system: Knative, policing: Policing, flux: Fluxing) -> None:
    """ImageUpdateAutomation dev-team1 on a GitRepository of the platform: denied without the annotation, and after it."""
    source = f"config-{token()}"
    body = automation(HOME, source, "flux-system")
    stored = await flux.source("flux-system", source)
    await policing.denied(body, f"GitRepository/flux-system/{source}", user=TEAM1)
    said = annotated({"kubernetes.io/metadata.name": HOME})
    await policing.merge(stored, {"metadata": {"annotations": said}}, dry=False)
    await answered(policing, body, 201, TEAM1)
    await policing.merge(stored, {"metadata": {"annotations": {ACCESS_FROM: None}}}, dry=False)
    await answered(policing, body, 403, TEAM1)


@pytest.mark.check("f-18")
async def test_an_image_repository_opens_by_its_field(system: Knative, policing: Policing, flux: Fluxing) -> None:
    """Without it, and with an annotation, an ImagePolicy elsewhere is denied; a SourceGrant cannot name the kind."""
    image = f"img-{token()}"
    body = flux_object("ImagePolicy", OTHER, spec={"imageRepositoryRef": {"name": image, "namespace": HOME}})
    stored = await flux.source(HOME, image, "ImageRepository", annotations=annotated(TWO))
    await eventually(lambda: flux.told(HOME, image), within=FLUX_S)
    await policing.denied(body, f"ImageRepository/{HOME}/{image}", user=TEAM2)
    await policing.merge(stored, {"spec": {"accessFrom": access_from(TWO)}}, dry=False)
    await answered(policing, body, 201)
    with pytest.raises(Invalid) as caught:
        await flux.grant(HOME, TWO, sourceRef={"kind": "ImageRepository", "name": image})
    assert caught.value.status == 422


@pytest.mark.check("f-61")
async def test_reading_and_writing_are_granted_apart(system: Knative, policing: Policing, flux: Fluxing) -> None:
    """Without access it is Read; Write does not imply it."""
    source = f"config-{token()}"
    await flux.source("flux-system", source)
    reads, writes = kustomization(HOME, f"GitRepository/flux-system/{source}"), automation(HOME, source, "flux-system")
    for access, may_read, may_write in (
        ({}, 201, 403),
        ({"access": ["Write"]}, 403, 201),
        ({"access": ["Read", "Write"]}, 201, 201),
    ):
        spec: dict[str, Any] = {"sourceRef": {"kind": "GitRepository", "name": source}, **access}
        grant = await flux.grant("flux-system", {"kubernetes.io/metadata.name": HOME}, **spec)
        await together(answered(policing, reads, may_read, TEAM1), answered(policing, writes, may_write, TEAM1))
        await flux.valid(grant)
        assert [(await policing.create(each, user=TEAM1)).status for each in (reads, writes)] == [may_read, may_write]
        await flux.admin.delete(SOURCE_GRANT, grant["metadata"]["name"], "flux-system")
        await together(answered(policing, reads, 403, TEAM1), answered(policing, writes, 403, TEAM1))


@pytest.mark.check("f-78")
async def test_a_reference_that_stays_granted_is_never_refused(system: Knative, policing: Policing, flux: Fluxing) -> None:
    """While 35 grants become 95 and 5 again, polled all the time: nor is one that is never granted ever admitted."""
    mark = token()
    names = [f"app-{mark}-{number:02}" for number in range(95)]
    await together(*(flux.source(HOME, name) for name in [*names, f"never-{mark}"]))

    async def share(name: str) -> Object:
        return await flux.grant(HOME, TWO, name=name, sourceRef={"kind": "GitRepository", "name": name})

    async def are(several: list[str]) -> None:
        async def exactly() -> bool:
            found = await flux.granted(HOME)
            return {name for name in found if mark in name} == {f"GitRepository/{name}" for name in several}

        await eventually(exactly, within=FLUX_S, what=f"{len(several)} grants")

    await together(*map(share, names[:35]))
    await are(names[:35])
    await answered(policing, uses(names[0]), 201)
    answers: list[tuple[int, int]] = []
    polling = True

    async def poll() -> None:
        while polling:
            both = await asyncio.gather(*(policing.create(uses(name), user=TEAM2) for name in (names[0], f"never-{mark}")))
            answers.append((both[0].status, both[1].status))

    polled = asyncio.create_task(poll())
    await together(*map(share, names[35:]))
    await are(names)
    await together(*(flux.admin.delete(SOURCE_GRANT, name, HOME) for name in names[5:]))
    await are(names[:5])
    await answered(policing, uses(names[94]), 403)
    polling = False
    await polled
    assert len(answers) > 20
    assert set(answers) == {(201, 403)}


@pytest.mark.check("f-26")
async def test_without_an_index_nobody_names_anything(running: Running, policing: Policing, flux: Fluxing) -> None:
    """New references, local ones too, are answered 422 until scope-binding has made it again with equal content; then all is as
    before, and nothing was locked."""
    source = f"app-{token()}"
    await flux.source(HOME, source)
    async with running({}, functions=[SOURCES]) as system:
        await flux.grant(HOME, TWO, sourceRef={"kind": "GitRepository", "name": source})
        await answered(policing, uses(source), 201)
        await system.drain()
    kept = await policing.made(uses(source), user=TEAM2)
    before = await flux.get(ACCESS_INDEX, DEFAULT)
    for kind in (ADMISSION_POLICY_BINDING, ADMISSION_POLICY):
        await flux.admin.delete(kind, GUARD)

    async def deleted() -> bool:
        with suppress(AdmissionDenied):
            await flux.admin.delete(ACCESS_INDEX, DEFAULT)
        return await flux.admin.get(ACCESS_INDEX, DEFAULT) is None

    await eventually(deleted, within=30, what="the policy that keeps the index is out of force")
    local = kustomization(HOME, APP1)
    for body, user in ((uses(source), TEAM2), (local, TEAM1)):
        await answered(policing, body, 422, user)
    async with running({}, functions=[SOURCES]):
        for body, user in ((uses(source), TEAM2), (local, TEAM1)):
            await answered(policing, body, 201, user)
        found = await flux.get(ACCESS_INDEX, DEFAULT)
        assert found["spec"] == before["spec"]
    await policing.denied(uses(source, "dev-team3"), user=TEAM3)
    path = policing.path(kept)
    now = (await policing.ask("GET", path)).body
    assert (now["spec"], finalizers_of(now)) == (kept["spec"], finalizers_of(kept))
    await policing.enforce()
