"""One event to one function, in this process but through its real HTTP entry."""

from __future__ import annotations

import asyncio
import os
import uuid
from pathlib import Path
from typing import Any

import aiohttp

from tenantry.local.processes import free_port
from tenantry.model import kinds
from tenantry.model.event import Event
from tenantry.serving import server
from tenantry.serving.cloudevents import encode_binary


class UnknownKind(LookupError):
    """The kind is not known here and no apiVersion was given."""


def api_version_of(kind: str) -> str:
    """The apiVersion of a kind that we know.

    Raises:
        UnknownKind: say which it is.
    """
    known = {found.kind: found.api_version for found in vars(kinds).values() if isinstance(found, kinds.Kind)}
    if kind not in known:
        raise UnknownKind(f"kind {kind!r} is not known here; give its --api-version (known: {', '.join(sorted(known))})")
    return known[kind]


def reference_event(api_version: str, kind: str, namespace: str, name: str) -> Event:
    """A reference event about an object, as an API source sends it."""
    reference = {"apiVersion": api_version, "kind": kind, "name": name}
    if namespace:
        reference["namespace"] = namespace
    return Event(
        id=str(uuid.uuid4()),
        source="/tenantry/invoke",
        type="dev.knative.apiserver.ref.update",
        datacontenttype="application/json",
        extensions={"apiversion": api_version, "kind": kind, "namespace": namespace, "name": name},
        data=reference,
    )


async def invoke_once(
    name: str, api_version: str, kind: str, namespace: str, object_name: str, kubeconfig: Path | None
) -> dict[str, Any]:
    """Send one event and collect the verdict: ``status``, ``reason`` and ``writes`` (a line each).

    Raises:
        UnknownFunction, UnknownKind, ConfigError, ConnectError: with the remedy.
    """
    if kubeconfig is not None:
        os.environ["KUBECONFIG"] = str(kubeconfig)
    event = reference_event(api_version or api_version_of(kind), kind, namespace, object_name)
    app, function = server.make_app(name)
    function.configure()
    writes: list[str] = []
    function.on_write = lambda change: writes.append(str(change))
    await function.start(kubeconfig)
    port = free_port()
    running = server.make_server(app, "127.0.0.1", port)
    task = asyncio.create_task(running.serve())
    try:
        while not running.started:  # noqa: ASYNC110 - uvicorn offers no event to wait for
            await asyncio.sleep(0.005)
        headers, body = encode_binary(event)
        async with (
            aiohttp.ClientSession(trust_env=False) as session,
            session.post(f"http://127.0.0.1:{port}/", data=body, headers=headers) as response,
        ):
            reason = (await response.text()) or ("done" if writes else "nothing to do")
            return {"status": response.status, "reason": reason, "writes": writes}
    finally:
        running.should_exit = True
        await task
        await function.stop()
