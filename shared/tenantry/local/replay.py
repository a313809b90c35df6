"""Asking functions again for what they gave up: events to the broker of the cluster that a client talks to.

Where `tenantry up` serves the cluster its broker is on that machine, and the Lease of `tenantry up` says where.  In a cluster
the address is one of a Service, which nobody outside can reach: then the API server passes the event on, for who may ask it to.
"""

from __future__ import annotations

import json
import re
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from tenantry.api import Api
from tenantry.api.errors import ApiError, KindNotServed, NotFound
from tenantry.local.presence import BROKER, present
from tenantry.model.event import Event
from tenantry.model.kinds import Kind
from tenantry.model.names import SYSTEM_NAMESPACE
from tenantry.serving.cloudevents import encode_structured
from tenantry.serving.emit import Emitter

BROKER_KIND = Kind("eventing.knative.dev/v1", "Broker", "brokers")
BROKER_NAME = "tenantry"
_SERVICE = re.compile(r"([a-z0-9-]+)\.([a-z0-9-]+)\.svc(\..+)?")


class Sender:
    """Sends events to a broker.  Runs between ``async with`` and its end."""

    def __init__(self, api: Api, address: str) -> None:
        self._api = api
        self._path = through_api_server(address)
        self._emitter = None if self._path else Emitter(address)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._emitter is not None:
            await self._emitter.close()

    async def send(self, event: Event) -> None:
        """Send one event.

        Raises:
            ApiError: the broker did not take it.
        """
        if self._emitter is not None:
            await self._emitter.emit(event)
        else:
            headers, body = encode_structured(event)
            await _post(self._api, self._path, headers, body)


async def _post(api: Api, path: str, headers: dict[str, str], body: bytes) -> None:
    """A POST that is no JSON of the API server's own."""
    content_type = next(value for name, value in headers.items() if name.lower() == "content-type")
    try:
        await api.request("POST", path, None, json.loads(body), content_type)
    except ApiError as error:
        message = f"the broker cannot be reached through the API server: {error.message}"
        raise ApiError(message, status=error.status) from error


async def broker_of(api: Api) -> str:
    """The address of the broker.

    Raises:
        NotFound: there is none, or it is on another machine; the message says what to do.
    """
    for each in await present(api):
        if address := each.told.get(BROKER):
            if not each.is_here:
                there = each.machine
                raise NotFound(f"`tenantry up` serves this cluster on {there}: replay there, or name the broker with --broker")
            return address
    try:
        broker = await api.get(BROKER_KIND, BROKER_NAME, SYSTEM_NAMESPACE)
    except KindNotServed:
        broker = None
    address = str((((broker or {}).get("status") or {}).get("address") or {}).get("url") or "")
    if not address:
        raise NotFound("nothing serves this cluster: there is no Broker with an address, and no `tenantry up`; see --broker")
    return address


def through_api_server(address: str) -> str:
    """The path on the API server that leads to an address inside of the cluster; empty for any other address."""
    url = urlsplit(address)
    found = _SERVICE.fullmatch(url.hostname or "")
    if found is None:
        return ""
    name, namespace, _ = found.groups()
    port = url.port or (443 if url.scheme == "https" else 80)
    return f"/api/v1/namespaces/{namespace}/services/{url.scheme}:{name}:{port}/proxy{url.path}"
