"""What a pod without any right sends: forged events to a function's HTTP entry, and what they cost.

Whoever reaches a function may send it anything.  These are the senders, the shapes, and the measures of their effect.
"""

from __future__ import annotations

import asyncio
import io
import json
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import aiohttp

from tenantry.model import kinds
from tenantry.model.event import APISERVER_TYPE_PREFIX, PING_TYPE, RECONCILE_REQUESTED_TYPE
from tenantry.model.kinds import Key, Kind
from tenantry.testing.memory import forget_peak, limit_mib, peak_mib  # noqa: F401 (what it costs is measured with these)

JSON = "application/json"
Sent = tuple[dict[str, str], bytes]
"""Headers and body."""


class Wire:
    """Sends to functions without waiting for one another, as many as are asked for at once."""

    def __init__(self) -> None:
        self.statuses: Counter[int] = Counter()

    async def __aenter__(self) -> Wire:
        timeout = aiohttp.ClientTimeout(total=100)
        self._session = aiohttp.ClientSession(trust_env=False, connector=aiohttp.TCPConnector(limit=0), timeout=timeout)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> int:
        """The status of the answer; 0 when the connection was ended."""
        try:
            async with self._session.post(url, headers=headers, data=io.BytesIO(body)) as response:
                await response.read()
                status = response.status
        except aiohttp.ClientError:
            status = 0
        self.statuses[status] += 1
        return status

    async def at_once(self, url: str, events: Iterable[Sent]) -> Counter[int]:
        """Send all together; how often each status came."""
        return Counter(await asyncio.gather(*(self.send(url, *event) for event in events)))


# -- single events ---------------------------------------------------------------------------------------------------


def header(type_: str, **attributes: str) -> dict[str, str]:
    """The attributes of an event in binary mode, each with an id of its own."""
    core = {"specversion": "1.0", "id": str(uuid4()), "source": "/evil", "type": type_}
    return {f"ce-{name}": value for name, value in (core | attributes).items()}


def look_at(kind: Kind, name: str, namespace: str = "", *, verb: str = "ref.update") -> dict[str, str]:
    """Attributes that say: look at this object."""
    named = {"apiversion": kind.api_version, "kind": kind.kind, "name": name, "namespace": namespace}
    return header(f"{APISERVER_TYPE_PREFIX}{verb}", **named)


def sweep(function: str) -> Sent:
    """A forged tick of the schedule."""
    return header(PING_TYPE, resync=function), b""


def requested(function: str, unit: str, owner: str) -> Sent:
    """A forged request for one owner."""
    attributes = {"function": function, "unit": unit, "owner": encoded(owner), "partitionkey": "x"}
    return header(RECONCILE_REQUESTED_TYPE, **attributes), b""


def encoded(text: str) -> str:
    """A text as the value of a header (HTTP binding of CloudEvents, 3.1.3.1)."""
    plain = (chr(each) if 0x21 <= each <= 0x7E and each not in b'"%' else f"%{each:02X}" for each in text.encode())
    return "".join(plain)


# -- what is large ---------------------------------------------------------------------------------------------------


def filled(size: int, head: bytes, each: Callable[[int], bytes], tail: bytes) -> bytes:
    """A text of at most ``size`` bytes: head, as many parts as fit, tail."""
    parts, length, number = [head], len(head) + len(tail), 0
    while length + len(part := each(number)) <= size:
        parts.append(part)
        length, number = length + len(part), number + 1
    return b"".join([*parts, tail])


def large_bodies(size: int) -> dict[str, bytes]:
    """JSON of nearly this size by what makes it expensive."""
    half = (size - 20) // 2
    return {
        "lists": filled(size, b"[[]", lambda _: b",[]", b"]"),
        "lists-in-an-object": filled(size, b'{"x":[[]', lambda _: b",[]", b"]}"),
        "deep": b"[" * half + b"]" * half,
        "deep-in-an-object": b'{"x":' + b"[" * half + b"]" * half + b"}",
        "keys": filled(size, b'{"x":0', lambda number: b',"%x":0' % number, b"}"),
        "labels": filled(size, b'{"metadata":{"labels":{"x":""', lambda number: b',"%x":""' % number, b"}}}"),
        "digits": b'{"x":' + b"9" * (size - 6) + b"}",
    }


# -- any kind and shape ----------------------------------------------------------------------------------------------

ALL_KINDS = tuple(sorted({each for each in vars(kinds).values() if isinstance(each, Kind)}, key=str))
_STRANGE: tuple[Any, ...] = (
    None,
    0,
    -1,
    1.5,
    True,
    "",
    "x",
    "../x",
    "a/b",
    "%2e%2e",
    "\u2028",
    [],
    [[]],
    {},
    {"x": {}},
    "x" * 300,
)
_NAMES = ("nobody", "default", "kube-system", "tenantry-system", "*", "..", "../x", "a/b", "a%2fb", "X", "x" * 300, "a b", "ä")
_UNITS = ("projects", "jobs", "scopes", "olm", "namespace-scopes", "releases", "sources", "x", "../x")
_OWNERS = ("project/{}", "namespace/{}", "release/{}", "release/{}/{}", "chart/cattle-helm-system/{}", "csv/{}/{}", "{}")


class Forger:
    """Makes events at random, about objects that there are and others.  ``known`` says which there are now."""

    def __init__(self, function: str, known: Callable[[], Sequence[Key]], seed: int) -> None:
        self._function = function
        self._known = known
        self._chance = random.Random(seed)

    def event(self) -> Sent:
        """The next one."""
        pick = self._chance.random()
        if pick < 0.75:
            return self._about_an_object()
        if pick < 0.9:
            owner = self._chance.choice(_OWNERS).replace("{}", self._name(), 1).replace("{}", self._name(), 1)
            return requested(self._function, self._chance.choice(_UNITS), owner)
        if pick < 0.95:
            return header(self._chance.choice(["evil", "dev.knative.apiserver.", f"{APISERVER_TYPE_PREFIX}x"])), b"{}"
        return {"ce-id": "1", "ce-type": "x", **self._chance.choice([{}, {"ce-source": ""}, {"ce-specversion": "9"}])}, b"\x00"

    def _name(self) -> str:
        known = self._known()
        return self._chance.choice(known).name if known and self._chance.random() < 0.6 else self._chance.choice(_NAMES)

    def _key(self) -> Key:
        known = self._known()
        if known and self._chance.random() < 0.7:
            return self._chance.choice(known)
        kind = self._chance.choice(ALL_KINDS)
        return Key(kind.api_version, kind.kind, self._name() if kind.namespaced else "", self._name())

    def _about_an_object(self) -> Sent:
        key, choice = self._key(), self._chance.choice
        type_ = f"{APISERVER_TYPE_PREFIX}{choice(['ref', 'resource'])}.{choice(['add', 'update', 'delete'])}"
        named = {"apiversion": key.api_version, "kind": key.kind, "name": key.name, "namespace": key.namespace}
        given = {name: encoded(value) for name, value in named.items() if self._chance.random() < 0.7}
        return {**header(type_, **given), "Content-Type": JSON}, json.dumps(self._payload(key)).encode()

    def _payload(self, key: Key) -> Any:
        """A reference, or an object that says of itself what it is not; sometimes with something strange in it."""
        choice = self._chance.choice
        if self._chance.random() < 0.15:
            return choice(_STRANGE)
        lies = {"labels": self._labels(), "annotations": self._labels(), "uid": str(uuid4()), "resourceVersion": "1"}
        metadata: dict[str, Any] = {"name": key.name, "namespace": key.namespace, **lies}
        if self._chance.random() < 0.3:
            metadata |= {"deletionTimestamp": "2020-01-01T00:00:00Z", "finalizers": ["tenantry.dev/release"]}
        if self._chance.random() < 0.3:
            metadata["ownerReferences"] = [{"apiVersion": "v1", "kind": "Namespace", "name": self._name(), "uid": "x"}]
        body: dict[str, Any] = {
            "apiVersion": key.api_version,
            "kind": key.kind,
            "metadata": metadata,
            "spec": {"x": self._name()},
        }
        if self._chance.random() < 0.3:
            place = choice([body, metadata])
            place[choice(sorted(place))] = choice(_STRANGE)
        if self._chance.random() < 0.3:
            return {"apiVersion": key.api_version, "kind": key.kind, "name": key.name, "namespace": key.namespace}
        return body

    def _labels(self) -> dict[str, str]:
        """Labels of projects, releases and scopes with values that name others' objects."""
        wanted = [label for label in _LABELS if self._chance.random() < 0.4]
        return {
            label: self._chance.choice([self._name(), self._name().removeprefix("cattle-project-"), "true"]) for label in wanted
        }


_LABELS = (
    "field.cattle.io/projectId",
    "helm.cattle.io/projectId",
    "helm.cattle.io/helm-project-operated",
    "helm.cattle.io/project-helm-chart-role",
    "helm.cattle.io/project-helm-chart-role-aggregate-from",
    "helm.cattle.io/dashboard-values-configmap",
    "helmcharts.helm.cattle.io/chart",
    "operators.coreos.io/scopeInstanceUID",
    "operators.coreos.io/scopeTemplateUID",
    "owner",
    "name",
)


@asynccontextmanager
async def forging(urls: Sequence[str], forger: Forger, *, at_once: int = 8) -> AsyncIterator[Counter[int]]:
    """Forged events without end, so many at a time to each function; how each was answered."""
    async with Wire() as wire:

        async def send(url: str) -> None:
            while True:
                await wire.send(url, *forger.event())

        senders = [asyncio.create_task(send(url)) for url in urls for _ in range(at_once)]
        try:
            yield wire.statuses
        finally:
            for sender in senders:
                sender.cancel()
            ended = await asyncio.gather(*senders, return_exceptions=True)
    assert all(isinstance(each, asyncio.CancelledError) for each in ended), ended


# -- what it costs ---------------------------------------------------------------------------------------------------


@asynccontextmanager
async def meanwhile(ask: Callable[[], Awaitable[object]], pause_s: float) -> AsyncIterator[None]:
    """Ask again and again, with pauses so that this does not become the load itself; what fails there fails at the end."""
    ends = asyncio.Event()

    async def asks() -> None:
        while not ends.is_set():
            await ask()
            await asyncio.sleep(pause_s)

    asking = asyncio.create_task(asks())
    try:
        yield
    finally:
        ends.set()
        await asking


class Served:
    """How long others waited for each of their events."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def time(self, work: Awaitable[Any]) -> Any:
        """Do it, and note how long it took."""
        began = time.monotonic()
        result = await work
        self.seconds.append(time.monotonic() - began)
        return result
