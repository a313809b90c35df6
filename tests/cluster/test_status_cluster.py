"""``tenantry status`` of an installation in a cluster: Deployments are asked through the API server; what cannot be is said."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from commanding import Command
from one_function import ready, serving
from people import C1, FUNCTION, post
from times import LEFT_TO_MAKE_WHOLE, LOCAL_S

from tenantry.api import Api
from tenantry.model.config import Config
from tenantry.model.event import PING_TYPE, Event
from tenantry.model.kinds import DEPLOYMENT, POD, Kind
from tenantry.model.names import SYSTEM_NAMESPACE
from tenantry.serving.cloudevents import encode_binary
from tenantry.testing import eventually
from tenantry.testing.objects import obj

pytestmark = LEFT_TO_MAKE_WHOLE
SERVICE = Kind("v1", "Service", "services")
ENDPOINTS = Kind("v1", "Endpoints", "endpoints")
"""What the proxy of an API server goes by: of addresses only those that a pod says it has."""
RESTRICTED = {
    "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    "containers": [
        {
            "name": "function",
            "image": "image.invalid/x",
            "resources": {"requests": {"cpu": "20m", "memory": "96Mi"}, "limits": {"memory": "192Mi"}},
            "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        }
    ],
}
"""A pod that the namespace of the functions takes.  Nothing runs it."""
LABELS = {"app.kubernetes.io/part-of": "tenantry", "app.kubernetes.io/name": FUNCTION}


def address() -> str:
    """An address of this machine that is not loopback: an API server lets no endpoint have one that is."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            pytest.skip("needs an address beside loopback")
        return str(probe.getsockname()[0])


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def function(identity: Callable[..., Awaitable[Path]], tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    """namespace-registration, installed and served, with nothing that plays a Deployment yet."""
    kubeconfig = await identity(FUNCTION, Config.model_validate(C1))
    command = (sys.executable, "-m", "tenantry.cli", "serve", FUNCTION, "--host", "0.0.0.0")
    async with serving(kubeconfig, C1, tmp_path_factory.mktemp("served"), command=command) as (process, url):
        await ready(process, url)
        yield url


async def of_service(command: Command) -> dict[str, Any]:
    _, text, errors = await command("status", "-o", "json")
    assert errors == ""
    return next(each for each in json.loads(text)["services"] if each["name"] == FUNCTION)


async def test_where_nothing_runs_every_service_is_down(function: str, as_admin: Command) -> None:
    """CRDs alone are no running installation: each Service says so, with what to do, and the backlog is not known."""
    code, text, _ = await as_admin("status")
    assert code == 3
    assert "nothing runs it: `tenantry up`, or apply knative/ again" in text
    assert "backlog: unknown (the broker of a cluster tells nobody" in text


async def test_a_deployment_is_asked_for_its_last_sweep(function: str, as_admin: Command, admin: Api) -> None:
    """Through the API server: not reachable, reachable and not swept yet, and swept."""
    spec = {"replicas": 1, "selector": {"matchLabels": LABELS}, "template": {"metadata": {"labels": LABELS}, "spec": {}}}
    spec["template"]["spec"] = {"containers": [{"name": "function", "image": "image.invalid/x"}]}
    await admin.apply(DEPLOYMENT, obj(DEPLOYMENT, FUNCTION, SYSTEM_NAMESPACE, labels=LABELS, spec=spec))
    found = await of_service(as_admin)
    assert (found["up"], found["state"], found["ageSeconds"]) == (False, "0 of 1 available", None)
    assert found["note"].startswith("the API server does not reach it")

    port = int(function.rstrip("/").rpartition(":")[2])
    await admin.apply(
        SERVICE, obj(SERVICE, FUNCTION, SYSTEM_NAMESPACE, spec={"ports": [{"name": "http", "port": 80, "targetPort": port}]})
    )
    await admin.apply(POD, obj(POD, FUNCTION, SYSTEM_NAMESPACE, spec=RESTRICTED))
    ip = address()
    edits = [{"op": "add", "path": "/status/podIP", "value": ip}, {"op": "add", "path": "/status/podIPs", "value": [{"ip": ip}]}]
    await admin.json_patch(POD, FUNCTION, SYSTEM_NAMESPACE, edits, subresource="status")
    target = {"kind": "Pod", "namespace": SYSTEM_NAMESPACE, "name": FUNCTION}
    subset = {"addresses": [{"ip": ip, "targetRef": target}], "ports": [{"name": "http", "port": port}]}
    await admin.apply(ENDPOINTS, obj(ENDPOINTS, FUNCTION, SYSTEM_NAMESPACE, subsets=[subset]))

    async def told() -> dict[str, Any]:
        return await of_service(as_admin)

    found = await eventually(told, lambda each: each["note"] == "has not swept since it started", within=LOCAL_S)
    headers, body = encode_binary(Event("1", "/test", PING_TYPE, extensions={"resync": FUNCTION}))
    assert (await post(function, headers, body))[0] == 204
    found = await of_service(as_admin)
    assert found["lastSweep"].endswith("Z")
    assert 0 <= found["ageSeconds"] < LOCAL_S


async def test_what_a_function_says_of_itself_is_its_sweep_alone(function: str) -> None:
    """Anybody who reaches the port learns a name and a time; other methods are answered as ever."""
    import aiohttp

    async with aiohttp.ClientSession(trust_env=False) as session:
        async with session.get(function + "health/sweep") as answer:
            assert answer.status == 200
            assert set(await answer.json()) == {"function", "duty", "swept"}
        async with session.get(function + "health/other") as answer:
            assert answer.status == 405
