"""The manifests of RFC-0002 where Flux does not keep ``spec.accessFrom`` any more: nobody gains access by them (section 0, 2)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import pytest_asyncio
from admitting import Admitting
from flawless import Calm
from flux_crds import current, install_flux
from flux_policing import APP1 as NAME_OF_APP1
from flux_policing import BITNAMI as NAME_OF_BITNAMI
from flux_policing import TEAM2, TEAM3, Policing, helm_release, kustomization
from flux_rfc import APP1, BITNAMI, in_version, kind_of, mixed
from fluxing import SOURCES, Fluxing
from times import LEFT_TO_MAKE_WHOLE

from tenantry.local.knative import Knative

pytestmark = [LEFT_TO_MAKE_WHOLE, pytest.mark.no_policies]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(flawlessly: Callable[..., Awaitable[Knative]]) -> Knative:
    """scope-binding, until the module ends."""
    return await flawlessly({}, functions=[SOURCES])


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def policing(admitting: Admitting, system: Knative) -> Policing:
    """Tenants, where Flux' kinds are as 2.7 serves them."""
    found = Policing(admitting.admin, admitting)
    await found.furnish(mixed())
    await found.enforce()
    return found


@pytest.mark.check("f-67")
async def test_a_field_that_is_not_kept_grants_nothing(policing: Policing, system: Knative, calm: Calm) -> None:
    """Of a GitRepository, by v1beta2 beside v1 and by v1, which refuses it where it is strict; of a HelmRepository it is one."""
    flux = Fluxing(policing.admin)
    for version, crds in (("v1beta2", mixed()), ("v1", current())):
        await install_flux(policing.admin, crds)
        await policing.enforce()
        app1, bitnami = in_version(APP1, version), in_version(BITNAMI, version)
        strict = await policing.create(in_version(APP1, "v1"), fieldValidation="Strict")
        assert strict.status == 400, strict
        assert "accessFrom" in strict.message
        stored = await policing.made(app1)
        await policing.made(bitnami)
        for each in ("v1", version):
            found = await flux.get(kind_of(in_version(APP1, each)), "app1", "dev-team1")
            assert "accessFrom" not in found["spec"]
        assert stored["spec"]["url"] == APP1["spec"]["url"]
        await flux.has("flux-system", {"HelmRepository/bitnami": ("*", "*")})
        await calm(system)
        assert await flux.granted("dev-team1") == {}
        for namespace, user in (("dev-team2", TEAM2), ("dev-team3", TEAM3)):
            await policing.denied(kustomization(namespace, NAME_OF_APP1), NAME_OF_APP1, user=user)
            release = helm_release(namespace, chart=NAME_OF_BITNAMI, name="redis")
            await policing.until(lambda release=release, user=user: policing.create(release, user=user), 201)  # type: ignore[misc]
        for each in (app1, bitnami):
            await policing.delete(each, dry=False)
        await flux.has("flux-system", {})
