"""Tenantry on one machine makes itself known in the cluster, so that an uninstallation can have it end before its rights go.

In a cluster an uninstallation deletes what runs the functions and waits for their pods.  Here it finds a Lease for each
`Knative` that runs, on whatever machine: it writes the annotation `END` into it and waits until the Lease is gone.  Who holds
the Lease answers with a ``renewTime``, finishes what was accepted, ends sources and functions, and deletes it.  A Lease without
an answer is what a killed process left.  Nothing is renewed meanwhile: at rest nothing is written.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
from collections.abc import Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import NamedTuple, Self

from tenantry.api import Api
from tenantry.api.errors import ApiError
from tenantry.local.backlog import Verb
from tenantry.local.policies import PART_OF
from tenantry.local.reflector import Reflector
from tenantry.model.kinds import LEASE, Object, annotations_of
from tenantry.model.names import ONE_MACHINE, SYSTEM_NAMESPACE
from tenantry.model.pointer import pointer

PRESENCE = {**PART_OF, **ONE_MACHINE}
"""The labels of these Leases."""
END = "tenantry.dev/end"
"""Annotation ``true`` on such a Lease: its holder is asked to end."""
BROKER = "tenantry.dev/broker"
"""Annotation on such a Lease: the address of the broker, on the machine of its holder."""
LEDGER = "tenantry.dev/ledger"
"""Annotation on such a Lease: the file of decisions, on the same machine; empty where decisions are switched off."""
CONFIGURATION = "tenantry.dev/configuration"
"""Annotation on such a Lease: the file with the configuration, on the machine of its holder; empty for the defaults."""
_SELECTOR = ",".join(f"{key}={value}" for key, value in PRESENCE.items())
_GOODBYE_S = 5.0


class Present(NamedTuple):
    """A process that serves the cluster, as its Lease tells."""

    holder: str
    """Machine and process id, with a slash between them."""
    told: Mapping[str, str]
    """The annotations: `BROKER`, `LEDGER` and `CONFIGURATION`."""

    @property
    def machine(self) -> str:
        """The machine that it is on."""
        return self.holder.partition("/")[0]

    @property
    def is_here(self) -> bool:
        """Whether that is this one."""
        return self.machine == socket.gethostname()


async def present(api: Api) -> list[Present]:
    """Who serves the cluster that a client talks to from one machine, wherever that is.

    Raises:
        ApiError: the API server does not say.
    """
    leases = (await api.list(LEASE, SYSTEM_NAMESPACE, label_selector=_SELECTOR)).items
    return [Present(str((each.get("spec") or {}).get("holderIdentity", "")), annotations_of(each)) for each in leases]


class Presence:
    """A Lease between ``async with`` and its end; ``asked`` is set when an uninstallation wants its holder to end."""

    def __init__(self, api: Api) -> None:
        self.asked = asyncio.Event()
        self.name = f"tenantry-{secrets.token_hex(4)}"
        self._api = api
        self._reflector = Reflector(
            api,
            LEASE,
            SYSTEM_NAMESPACE,
            label_selector=_SELECTOR,
            keep_objects=True,
            on_change=self._changed,
            on_state=lambda *_: None,
        )
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        holder = f"{socket.gethostname()}/{os.getpid()}"
        await self._api.apply(LEASE, self._lease({"holderIdentity": holder, "acquireTime": _now()}))
        self._tasks = [asyncio.create_task(self._reflector.run()), asyncio.create_task(self._answer())]
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        with contextlib.suppress(ApiError, TimeoutError):  # the control plane may be gone before us
            await asyncio.wait_for(self._api.delete(LEASE, self.name, SYSTEM_NAMESPACE), _GOODBYE_S)

    async def tell(self, broker: str, configuration: str, ledger: str = "") -> None:
        """Say where the broker is, for who wants to send it something, by which configuration all is done, and the ledger."""
        found = {BROKER: broker, CONFIGURATION: configuration, LEDGER: ledger}
        patch = [{"op": "add", "path": pointer("metadata", "annotations", name), "value": text} for name, text in found.items()]
        await self._api.json_patch(LEASE, self.name, SYSTEM_NAMESPACE, patch)

    def _lease(self, spec: Object) -> Object:
        metadata = {
            "name": self.name,
            "namespace": SYSTEM_NAMESPACE,
            "labels": dict(PRESENCE),
            "annotations": {BROKER: "", CONFIGURATION: ""},
        }
        return {"apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": metadata, "spec": spec}

    def _changed(self, verb: Verb, namespace: str, name: str, obj: Object | None) -> None:
        del namespace
        if name == self.name and verb != "delete" and obj is not None and annotations_of(obj).get(END) == "true":
            self.asked.set()

    async def _answer(self) -> None:
        await self.asked.wait()
        patch = [{"op": "add", "path": "/spec/renewTime", "value": _now()}]
        with contextlib.suppress(ApiError):
            await self._api.json_patch(LEASE, self.name, SYSTEM_NAMESPACE, patch)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
