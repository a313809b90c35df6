"""The other project of an attack on sizes: its events are answered in time, and what it asks for is made, whatever others do."""

from __future__ import annotations

import asyncio
import io
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import replace
from typing import Any

import pytest
from attackers import Attackers
from forgery import Served, limit_mib, meanwhile, peak_mib
from people import post, registration, swept_whole, token
from releases import DUMMY, Owners
from times import FULL, SERVED_MEANWHILE_S

from tenantry.api import Api
from tenantry.api.errors import TransientError
from tenantry.local.invocation import reference_event
from tenantry.local.knative import Knative
from tenantry.model.kinds import NAMESPACE, PROJECT_HELM_CHART, ROLE_BINDING, Kind, Object
from tenantry.serving.cloudevents import encode_binary
from tenantry.testing.objects import obj

at_full_size = pytest.mark.skipif(not FULL, reason="takes long: make volume")
"""What holds, and needs most of a minute each time to show it."""
BETWEEN_S = 0.1
"""Seconds between an answer and the victim's next event."""
SPARE = 0.75
"""The part of its memory that a function may use: a quarter is to spare."""


class Victim:
    """Another project, whose events are answered in time whatever the owner does."""

    def __init__(self, owners: Owners, system: Knative, project: str, *, spare: float = 1.0) -> None:
        self.project = project
        self._owners = owners
        self._system = system
        self._spare = spare
        self._served = Served()

    async def look(self) -> None:
        """Have all functions look at its namespace, as the source tells of it; or at its binding, who watches no namespaces."""
        name = f"a1-{self.project}"
        namespace = await self._owners.get(NAMESPACE, name)
        for function, running in self._system.functions.items():
            if function == "rbac-aggregation":
                event = reference_event(ROLE_BINDING.api_version, ROLE_BINDING.kind, registration(self.project), "owners")
            else:
                told = reference_event(NAMESPACE.api_version, NAMESPACE.kind, "", name)
                event = replace(told, type="dev.knative.apiserver.resource.update", data=namespace)
            status, text = await self._served.time(post(running.url, *encode_binary(event)))
            assert status == 204, text

    def watching(self) -> AbstractAsyncContextManager[None]:
        """Meanwhile it is looked at again and again."""
        return meanwhile(self.look, BETWEEN_S)

    async def served(self) -> None:
        """All was answered in time, in the memory of the pod; sweeps complete, and a release that is asked for now is made."""
        for name, function in self._system.functions.items():
            async with self.watching():
                status, text = await swept_whole(self._system, name)
            assert status == 204, f"the sweep of {name}: {status} {text}"
            peak = peak_mib(function.pid)
            assert peak < self._spare * limit_mib(name), f"{name} had {peak:.0f} MiB"
        await self._system.broker.drain()
        assert max(self._served.seconds) < SERVED_MEANWHILE_S, sorted(self._served.seconds)[-5:]
        late = f"late-{token()}"
        await self._owners.ask(late, self.project)
        await self._owners.provisioned(f"{late}-dummy")

    def figures(self) -> str:
        """How long its events waited at most, and the largest memory of each function."""
        peaks = (f"{name} {peak_mib(function.pid):.0f} MiB" for name, function in self._system.functions.items())
        return f"served in {max(self._served.seconds):.2f} s of {len(self._served.seconds)} events; {', '.join(peaks)}"


async def somebody(owners: Owners, attackers: Attackers) -> tuple[str, str, Api]:
    """A project, its registration namespace, and its owner, who acts there with rights of his own."""
    project = await owners.project()
    home = registration(project)
    return project, home, await attackers.someone("owner", home)


def asked(name: str, namespace: str, values: Any = None, **spec: Any) -> Object:
    """A ProjectHelmChart as its author writes it."""
    spec = {"helmApiVersion": DUMMY, **({"values": values} if values is not None else {}), **spec}
    return obj(PROJECT_HELM_CHART, name, namespace, spec=spec)


async def as_written(api: Api, method: str, path: str, body: bytes, content_type: str = "application/json") -> None:
    """Send a body that no encoder of ours would write, such as one of 5,000 levels."""
    headers = {**api._headers, "Content-Type": content_type}
    content: Any = io.BytesIO(body)  # which aiohttp reads in parts: it warns of large bytes
    response = await api._send(method, path, None, content, headers, api._timeout)
    answer = await response.text()
    assert response.status < 300, (response.status, answer[:300])


async def create_all(api: Api, kind: Kind, objects: list[Object], at_once: int = 32) -> None:
    """Make many objects, so many at a time."""
    gate = asyncio.Semaphore(at_once)

    async def one(each: Object) -> None:
        async with gate:
            await api.create(kind, each)

    await asyncio.gather(*(one(each) for each in objects))


async def delete_all(api: Api, kind: Kind, namespace: str, label_selector: str = "") -> None:
    """Delete the objects of a kind in a namespace; of large ones not all are gone within the time of one request."""
    asked = {"labelSelector": label_selector} if label_selector else None
    for _ in range(5):
        with suppress(TransientError):
            await api.request("DELETE", kind.path(namespace), asked)
            return
    raise AssertionError(f"{kind.resource} in {namespace} are still there")
