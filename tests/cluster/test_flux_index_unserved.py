"""Flux that is not there, comes, comes in an older version, and goes: the index has what discovery serves (1.1, 3.7).

The tests follow one another on a control plane of their own, which begins without a kind of Flux.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from flawless import flawless
from flux_crds import ACCESS_FROM, crd, current, flux_kind, install_flux, version_of
from fluxing import SOURCES, TWO, Fluxing, access_from, annotated, served
from people import CORE_EVENT
from times import FLUX_S, LEFT_TO_MAKE_WHOLE, SERVED_S

from tenantry.api import Api
from tenantry.local.control_plane import ControlPlane
from tenantry.local.knative import Knative
from tenantry.model.flux.names import ACCESS_INDEX, DEFAULT
from tenantry.model.kinds import CUSTOM_RESOURCE_DEFINITION, Kind
from tenantry.testing import eventually
from tenantry.testing.forks import Forks
from tenantry.testing.objects import obj

pytestmark = LEFT_TO_MAKE_WHOLE


@dataclass
class Cluster:
    """A control plane with the function, and the people on it."""

    admin: Api
    flux: Fluxing
    running: Knative


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def cluster(forks: Forks, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    """Nothing of Flux."""
    with ControlPlane(ephemeral=True) as plane:
        async with await Api.connect(field_manager="tests-admin", kubeconfig=plane.kubeconfig) as admin:
            folder: Path = tmp_path_factory.mktemp("flux")
            async with (
                Knative(plane.kubeconfig, folder, config={}, functions=[SOURCES], spawn=forks.spawn) as running,
                flawless(running),
            ):
                yield Cluster(admin, Fluxing(admin), running)


async def test_without_flux_nothing_happens_and_nothing_is_said(cluster: Cluster) -> None:
    """No index, no Event; a SourceGrant says that its kind is not served."""
    await cluster.running.drain()
    await cluster.running.sweep(SOURCES)
    assert await cluster.admin.get(ACCESS_INDEX, DEFAULT) is None
    await cluster.admin.create(ACCESS_INDEX, obj(ACCESS_INDEX, DEFAULT, spec={}))
    await cluster.running.drain()
    await cluster.running.sweep(SOURCES)
    shipped = await cluster.flux.get(ACCESS_INDEX, DEFAULT)
    assert shipped["metadata"]["generation"] == 1
    events = (await cluster.admin.list(CORE_EVENT)).items
    assert [each for each in events if "tenantry.dev/" in (each.get("reportingComponent") or "")] == []
    home = await cluster.flux.home()
    grant = await cluster.flux.grant(home, TWO)
    assert "serves no GitRepository" in await cluster.flux.valid(grant, "SourceKindNotServed")
    assert (await cluster.flux.get(ACCESS_INDEX, DEFAULT))["metadata"]["generation"] == 1


async def test_kinds_that_come_are_found(cluster: Cluster) -> None:
    """One kind alone, in the version v1beta1 that keeps the field (the RFC's); events come when it is served as v1."""
    old = Kind("source.toolkit.fluxcd.io/v1beta1", "GitRepository", "gitrepositories")
    kind = flux_kind("GitRepository")
    spec = {**kind.spec, "properties": {**kind.spec["properties"], "accessFrom": ACCESS_FROM}}
    await install_flux(cluster.admin, [crd(kind, version_of("v1beta1", spec))])
    home = await cluster.flux.home()
    await cluster.admin.create(old, obj(old, "app1", home, spec={"url": "x", "accessFrom": access_from(TWO)}))
    await cluster.flux.grant(home, {"a": "b"})
    await cluster.flux.grants(home, app1=("a=b|team=two", "team=two"))
    assert (await cluster.flux.index()).complete

    both = crd(kind, version_of("v1beta1", spec, storage=False), version_of("v1", copy.deepcopy(spec)))
    await install_flux(cluster.admin, [both])
    await cluster.flux.source(home, "app2", annotations=annotated(TWO))

    async def follows() -> bool:
        return "GitRepository/app2" in await cluster.flux.granted(home)

    await eventually(follows, within=SERVED_S, what="the source watches what is served now")
    await cluster.flux.source(home, "app3", annotations=annotated(TWO))
    await cluster.flux.grants(
        home, app1=("a=b|team=two", "team=two"), app2=("team=two", "team=two"), app3=("team=two", "team=two")
    )


async def test_kinds_that_go_take_their_grants_along(cluster: Cluster) -> None:
    """The others stay, and come to no harm."""
    await install_flux(cluster.admin, current("Bucket"))
    home = await cluster.flux.home()
    await cluster.flux.source(home, annotations=annotated(TWO))
    await cluster.flux.source(home, "b", "Bucket")
    await cluster.flux.grant(home, TWO, sourceRef={"kind": "Bucket", "name": "b"})
    both = ("team=two", "team=two")
    await cluster.flux.has(home, {"GitRepository/app1": both, "Bucket/b": ("team=two", "")})
    await cluster.admin.delete(CUSTOM_RESOURCE_DEFINITION, flux_kind("Bucket").crd_name)

    async def gone() -> bool:
        return await cluster.admin.served(served("Bucket").api_version, "Bucket", again=True) is None

    await eventually(gone, within=SERVED_S, what="no Buckets any more")
    await cluster.running.sweep(SOURCES)
    await eventually(lambda: cluster.flux.granted(home), lambda found: found == {"GitRepository/app1": both}, within=FLUX_S)
