"""People clear dead letters and replay them by command: the broker takes them again, and the work is done."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from letters import FUNCTION, Sender, empty, kept, refused, stored, tenantry
from local_subscriber import Subscriber, subscriber
from people import C1, LABEL, People, token
from times import LEFT_TO_MAKE_WHOLE, PROJECTS_S, SERVED_S

from tenantry.api import Api
from tenantry.local.control_plane import ControlPlane
from tenantry.local.followed import stand_in
from tenantry.local.install import until_served
from tenantry.local.invocation import reference_event
from tenantry.local.knative import Knative
from tenantry.local.replay import BROKER_KIND
from tenantry.model.event import Event
from tenantry.model.kinds import CUSTOM_RESOURCE_DEFINITION, NAMESPACE, POD, SERVICE_ACCOUNT, Kind, labels_of
from tenantry.model.names import SYSTEM_NAMESPACE
from tenantry.serving.cloudevents import parse_event
from tenantry.testing import eventually
from tenantry.testing.objects import obj

pytestmark = LEFT_TO_MAKE_WHOLE

SERVICE = Kind("v1", "Service", "services")
ENDPOINTS = Kind("v1", "Endpoints", "endpoints")
ENDPOINT_SLICE = Kind("discovery.k8s.io/v1", "EndpointSlice", "endpointslices")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def deaf(knative: Callable[..., Awaitable[Knative]]) -> Knative:
    """A function that hears of nothing but what is sent to the broker by hand."""
    running = await knative(C1, functions=[FUNCTION], watch=False)
    await running.drain()
    return running


async def test_letters_are_cleared_by_key_by_function_and_all(
    url: str, sender: Sender, admin: Api, control_plane: ControlPlane
) -> None:
    """`clear` forgets what it is told to and nothing else; a key that is not there is said so."""
    for name, function in (("x", FUNCTION), ("x", "scope-binding"), ("y", FUNCTION), ("z", FUNCTION)):
        assert await sender.send(url + function, refused(name)) == 204

    async def names() -> list[tuple[str, str]]:
        return [letter.name for letter in await kept(admin)]

    async def clear(*arguments: str) -> tuple[int, str, str]:
        return await tenantry(control_plane.kubeconfig, "clear", *arguments)

    assert (await clear("Namespace/x", "--function", FUNCTION))[0] == 0
    assert (FUNCTION, "Namespace/x") not in await names()
    assert len(await names()) == 3
    code, output, _ = await clear("Namespace/y", "-o", "json")
    assert (code, json.loads(output)) == (0, [{"function": FUNCTION, "key": "Namespace/y", "result": "cleared"}])
    code, _, errors = await clear("Namespace/y")
    assert code == 1
    assert "there is no dead letter Namespace/y" in errors
    assert (await clear())[0] == (await clear("x", "--all"))[0] == 2
    assert (await clear("--all"))[0] == 0
    assert await names() == []
    code, output, _ = await tenantry(control_plane.kubeconfig)
    assert (code, output) == (0, "no dead letters\n")


async def test_without_a_broker_the_way_out_is_named(url: str, sender: Sender, admin: Api, control_plane: ControlPlane) -> None:
    """Where nothing serves the cluster `replay` says so, with what to do, and keeps the letters."""
    assert await sender.send(url + FUNCTION, refused("x")) == 204
    code, output, errors = await tenantry(control_plane.kubeconfig, "replay", "--all")
    assert (code, output) == (1, "")
    assert "there is no Broker with an address" in errors
    assert "--broker" in errors
    code, _, errors = await tenantry(control_plane.kubeconfig, "replay", "--all", "--broker", "http://127.0.0.1:1/")
    assert code == 1
    assert "the broker cannot be reached" in errors
    assert len(await kept(admin)) == 1


@pytest_asyncio.fixture(loop_scope="session")
async def inside(admin: Api, tmp_path: Path) -> AsyncIterator[Subscriber]:
    """The ingress of a broker inside of the cluster: a Broker with its address, a Service, and a pod that listens."""
    address = _own_address()
    del tmp_path
    async with subscriber(address) as pod:
        port = int(pod.url.rstrip("/").rpartition(":")[2])
        namespace = f"eventing-{token()}"
        await admin.create(NAMESPACE, obj(NAMESPACE, namespace))
        await eventually(lambda: admin.get(SERVICE_ACCOUNT, "default", namespace), within=30)
        where = ("broker-ingress", namespace)
        made = await admin.create(POD, obj(POD, *where, spec={"containers": [{"name": "c", "image": "i"}]}))
        status = {"podIP": address, "podIPs": [{"ip": address}], "phase": "Running"}
        await admin.request("PUT", POD.path(namespace, "broker-ingress") + "/status", None, {**made, "status": status})
        await admin.create(SERVICE, obj(SERVICE, *where, spec={"ports": [{"name": "http", "port": 80, "targetPort": port}]}))
        target = {"kind": "Pod", "name": "broker-ingress", "namespace": namespace}
        slices = obj(
            ENDPOINT_SLICE,
            *where,
            labels={"kubernetes.io/service-name": "broker-ingress"},
            addressType="IPv4",
            endpoints=[{"addresses": [address], "conditions": {"ready": True}, "targetRef": target}],
            ports=[{"name": "http", "port": port, "protocol": "TCP"}],
        )
        await admin.create(ENDPOINT_SLICE, slices)
        old = {"addresses": [{"ip": address, "targetRef": target}], "ports": [{"name": "http", "port": port}]}
        await admin.create(ENDPOINTS, obj(ENDPOINTS, *where, subsets=[old]))
        crd = stand_in(BROKER_KIND)
        await admin.create(CUSTOM_RESOURCE_DEFINITION, crd)
        await until_served(admin, crd)
        reached = f"http://broker-ingress.{namespace}.svc.cluster.local/{SYSTEM_NAMESPACE}/tenantry"
        await admin.create(BROKER_KIND, obj(BROKER_KIND, "tenantry", SYSTEM_NAMESPACE, status={"address": {"url": reached}}))
        yield pod
        await admin.delete(BROKER_KIND, "tenantry", SYSTEM_NAMESPACE)
        await admin.delete(CUSTOM_RESOURCE_DEFINITION, crd["metadata"]["name"])
        await admin.delete(NAMESPACE, namespace)
        await eventually(
            lambda: admin.served(BROKER_KIND.api_version, BROKER_KIND.kind, again=True),
            lambda served: served is None,
            within=SERVED_S,
        )


def _own_address() -> str:
    """An address of this machine that is not loopback: the API server passes nothing on to that."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no address but loopback")
        return str(probe.getsockname()[0])


async def test_in_a_cluster_a_replay_goes_through_the_api_server(
    url: str, inside: Subscriber, sender: Sender, admin: Api, control_plane: ControlPlane
) -> None:
    """The Broker's address is reached from outside of the cluster; what the broker takes is the key, and leaves the list."""
    from aiohttp import web

    inside.answer = lambda _: web.Response(status=202)
    assert await sender.send(url + FUNCTION, refused("team-a", data={"a": "s3cret"})) == 204
    code, output, errors = await tenantry(control_plane.kubeconfig, "replay", "Namespace/team-a")
    assert code == 0, errors + output
    (call,) = inside.calls
    event = parse_event(call.headers, call.body)

    assert event.data == {"apiVersion": "v1", "kind": "Namespace", "name": "team-a"}
    assert event.extensions["watch"] == FUNCTION
    assert await kept(admin) is not None
    assert len(await kept(admin)) == 0


async def test_a_broker_that_refuses_keeps_the_letter(
    url: str, inside: Subscriber, sender: Sender, admin: Api, control_plane: ControlPlane
) -> None:
    """What the broker does not take stays in the list, and the exit code says so."""
    from aiohttp import web

    inside.answer = lambda number: web.Response(status=202 if number == 0 else 500)
    for name in ("x", "y"):
        assert await sender.send(url + FUNCTION, refused(name)) == 204
    code, _, errors = await tenantry(control_plane.kubeconfig, "replay", "--all")

    assert code == 1
    assert "500" in errors
    assert [letter.key for letter in await kept(admin)] == ["Namespace/y"]


# -- with everything -------------------------------------------------------------------------------------------------


def broken(name: str) -> Event:
    """An event about a namespace that exists, with data that no function takes."""
    event = reference_event("v1", "Namespace", "", name)
    return Event(
        event.id, event.source, event.type, datacontenttype="application/json",
        extensions={**event.extensions, "watch": FUNCTION}, data=["s3cret"],
    )  # fmt: skip


async def test_a_replay_leads_to_the_work_being_done(
    deaf: Knative, people: People, admin: Api, control_plane: ControlPlane
) -> None:
    """An event that the function refused is listed with its reason; its replay is handled, and leaves the list."""
    await empty(admin)
    project = f"p-{token()}"
    name = f"a1-{project}"
    await people.namespace(name, project)
    await deaf.broker.accept(broken(name))
    await deaf.drain()
    (letter,) = await kept(admin)
    assert (letter.function, letter.key, letter.status) == (FUNCTION, f"Namespace/{name}", 400)
    assert letter.reason == "data is not an object"
    assert "s3cret" not in json.dumps(await stored(admin))
    assert await admin.get(NAMESPACE, f"cattle-project-{project}") is None

    code, output, errors = await tenantry(control_plane.kubeconfig, "replay", f"Namespace/{name}")
    assert code == 0, errors + output
    await people.registered(project, within=PROJECTS_S)
    assert list(await kept(admin)) == []


async def test_what_fails_again_comes_back(deaf: Knative, admin: Api, people: People, control_plane: ControlPlane) -> None:
    """A replayed owner whose run fails again is in the list again; an owner's own request and a sweep are replayed alike."""
    await empty(admin)
    project = f"p-{token()}"
    await people.namespace(f"a1-{project}", project)
    box = deaf.dead_letters.url
    requested = {"function": FUNCTION, "unit": "projects", "owner": f"project/{project}"}
    event = Event("1", "/tenantry/x", "dev.tenantry.reconcile.requested", extensions={**requested, "knativeerrorcode": "503"})
    unnamed = Event("2", "/tenantry/x", "dev.tenantry.reconcile.requested", extensions={"function": FUNCTION})
    async with Sender() as sender:
        assert await sender.send(box + FUNCTION, event) == 204
        await deaf.broker.accept(unnamed)
        await deaf.drain()
    assert {letter.key for letter in await kept(admin)} == {
        f"projects:project/{project}",
        "dev.tenantry.reconcile.requested",
    }

    code, output, _ = await tenantry(control_plane.kubeconfig, "replay", "--all", "-o", "json")
    assert code == 1
    results = {each["key"]: each["result"] for each in json.loads(output)}
    assert results[f"projects:project/{project}"] == "sent"
    assert results["dev.tenantry.reconcile.requested"].startswith("not sent")
    await people.registered(project, within=PROJECTS_S)
    assert {letter.key for letter in await kept(admin)} == {"dev.tenantry.reconcile.requested"}


async def test_a_sweep_is_replayed(deaf: Knative, admin: Api, people: People, control_plane: ControlPlane) -> None:
    """A schedule's event that was given up is replayed as a sweep, which finds what nobody told of."""
    await empty(admin)
    project = f"p-{token()}"
    await people.namespace(f"a1-{project}", project)
    ping = Event("1", "/x", "dev.knative.sources.ping", extensions={"resync": FUNCTION, "knativeerrorcode": "503"})
    async with Sender() as sender:
        assert await sender.send(deaf.dead_letters.url + FUNCTION, ping) == 204
    code, output, errors = await tenantry(control_plane.kubeconfig, "replay", "sweep")

    assert code == 0, errors + output
    await people.registered(project, within=PROJECTS_S)
    assert labels_of(await admin.get(NAMESPACE, f"a1-{project}"))[LABEL] == project


async def test_what_was_taken_while_the_api_server_was_away_is_stored_later(
    deaf: Knative, admin: Api, control_plane: ControlPlane
) -> None:
    """No letter is lost with the API server away: its sender hears so, and it is stored when the API server is back."""
    await empty(admin)
    name = f"a1-{token()}"
    await asyncio.to_thread(control_plane.stop_api_server, kill=True)
    try:
        async with Sender() as sender:
            assert await sender.send(deaf.dead_letters.url + FUNCTION, refused(name)) == 503
    finally:
        await asyncio.to_thread(control_plane.start_api_server)

    async def found() -> Any:
        return [letter.count for letter in await kept(admin) if letter.key == f"Namespace/{name}"]

    assert await eventually(found, within=PROJECTS_S) == [1]
