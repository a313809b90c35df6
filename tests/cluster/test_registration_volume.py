"""Many projects at once, and rest afterwards, on a control plane of its own (hpo-19, hpo-20)."""

from __future__ import annotations

import asyncio
import re
import ssl
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio
from people import C1, FUNCTION, LABEL, OPERATED, People
from times import LEFT_TO_MAKE_WHOLE

from tenantry.api import Api
from tenantry.local.control_plane import ControlPlane
from tenantry.local.knative import Knative
from tenantry.model.event import Event
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, NETWORK_POLICY, SERVICE_ACCOUNT
from tenantry.testing import eventually
from tenantry.testing.settling import settle, snapshot

PROJECTS = 200
KINDS = (NAMESPACE, CONFIG_MAP, SERVICE_ACCOUNT, NETWORK_POLICY)
WRITES = ("POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION")

pytestmark = [pytest.mark.timeout(300), LEFT_TO_MAKE_WHOLE]  # every project of the test run is written anew


@dataclass
class Cluster:
    """A cluster with many projects, what it took to serve them, and every event that was delivered."""

    plane: ControlPlane
    admin: Api
    knative: Knative
    events: list[Event]
    seconds: float


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def cluster(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    """Many projects, created at once on an empty cluster and served."""
    del control_plane  # the programs are there, and their building is not on this test's time
    folder = tmp_path_factory.mktemp("many")
    plane = ControlPlane(ephemeral=True)
    await asyncio.to_thread(plane.start)
    try:
        async with (
            await Api.connect(field_manager="tests-admin", kubeconfig=plane.kubeconfig, concurrency=100) as admin,
            Knative(plane.kubeconfig, folder, config=C1, functions=[FUNCTION]) as knative,
        ):
            events: list[Event] = []
            knative.on_delivery.append(lambda _, event, __, *___: events.append(event))
            yield Cluster(plane, admin, knative, events, await _serve_many(admin))
    finally:
        await asyncio.to_thread(plane.stop)


async def _serve_many(admin: Api) -> float:
    people = People(admin)
    began = time.monotonic()
    await asyncio.gather(*(people.namespace(f"n{number}", f"p-{number}") for number in range(PROJECTS)))
    await eventually(
        lambda: admin.list(NAMESPACE, label_selector=OPERATED),
        lambda found: len(found.items) == PROJECTS,
        within=30,
        what=f"{PROJECTS} registration namespaces",
    )
    return time.monotonic() - began


async def _write_requests(plane: ControlPlane) -> dict[str, float]:
    """Write requests by resource, as the API server counts them, for the kinds that the function writes."""
    context = ssl.create_default_context(cafile=str(Path(plane.ca_file)))
    headers = {"Authorization": f"Bearer {plane.admin_token}"}
    async with (
        aiohttp.ClientSession(trust_env=False) as session,
        session.get(f"{plane.server_url}/metrics", ssl=context, headers=headers) as response,
    ):
        text = await response.text()
    counts: dict[str, float] = {}
    for labels, value in re.findall(r"^apiserver_request_total\{(.*)\} (\S+)$", text, re.MULTILINE):
        fields = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        if fields["verb"] in WRITES and fields["resource"] in {kind.plural for kind in KINDS} | {"events"}:
            counts[fields["resource"]] = counts.get(fields["resource"], 0) + float(value)
    return counts


@pytest.mark.check("hpo-19")
async def test_many_projects_at_once(
    cluster: Cluster, record_property: Callable[[str, object], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """Namespaces in as many projects, created at once, are all registered.

    The check asks for thirty seconds on a machine of its own; the time is printed, and `make bench` measures it.
    """
    record_property("seconds", round(cluster.seconds, 2))
    with capsys.disabled():
        print(f"\n{PROJECTS} projects registered in {cluster.seconds:.1f} s ({PROJECTS / cluster.seconds:.0f} per second)")
    await settle(cluster.knative, cluster.admin)

    for kind in (CONFIG_MAP, SERVICE_ACCOUNT, NETWORK_POLICY):
        listing = await cluster.admin.list(kind, label_selector=OPERATED)
        assert sum(item["metadata"]["namespace"].startswith("cattle-project-p-") for item in listing.items) == PROJECTS
    members = await cluster.admin.list(NAMESPACE, label_selector=f"{LABEL},!{OPERATED}")
    assert all(item["metadata"]["labels"]["helm.cattle.io/projectId"] for item in members.items)
    assert cluster.knative.broker.counters.dead_lettered == cluster.knative.broker.counters.lost == 0


@pytest.mark.check("hpo-20")
async def test_no_write_requests_at_rest(cluster: Cluster) -> None:
    """At rest nobody writes: two more sweeps and every event again are not a single write request, changing or not."""
    await settle(cluster.knative, cluster.admin)
    objects = await snapshot(cluster.admin, KINDS)
    requests = await _write_requests(cluster.plane)
    assert requests["namespaces"] > PROJECTS

    for _ in range(2):
        await cluster.knative.sweep(FUNCTION)
    delivered = len(cluster.events)
    for event in cluster.events[:delivered]:
        assert await cluster.knative.broker.accept(event) == 202
    await cluster.knative.drain()

    assert requests == await _write_requests(cluster.plane)
    assert objects == await snapshot(cluster.admin, KINDS)
