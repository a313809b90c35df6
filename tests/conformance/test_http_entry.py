"""The conformance table on the HTTP entry of a real function, with a real API server behind it."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from rows import ACCEPTED, CANARY, REFUSED, Row, binary_headers
from samples import SAMPLES, Sample
from wire import Entry, Headers, Response, exchange, exchange_chunked

from tenantry.api import Api
from tenantry.model.kinds import CONFIG_MAP, EVENT, NAMESPACE, NETWORK_POLICY, SERVICE_ACCOUNT
from tenantry.testing import eventually

KIB = 1024
MIB = 1024 * KIB


def _assert_done(response: Response) -> None:
    """Assert what a broker needs of a success: 204, no body, and nothing that looks like a reply event."""
    assert (response.status, response.body) == (204, b"")
    assert not [name for name in response.headers if name.startswith("ce-")]


def _assert_refused(response: Response, status: int) -> None:
    """Assert that a refusal is short plain text that carries nothing of what was sent."""
    assert response.status == status
    assert response.headers["content-type"].startswith("text/plain")
    assert 0 < len(response.body) < 200
    assert not [name for name in response.headers if name.startswith("ce-")]
    assert CANARY.encode() not in response.body.lower()
    assert CANARY not in str(response.headers).lower()


@pytest.mark.parametrize("row", ACCEPTED)
def test_accepts(entry: Entry, row: Row) -> None:
    """Every valid event is answered as the table says: an empty 204, unless its data are wrong for its type."""
    response = exchange(entry.url, row.headers, row.body, path=row.path)

    if row.answer == 204:
        _assert_done(response)
    else:
        _assert_refused(response, row.answer)


@pytest.mark.parametrize("row", REFUSED)
def test_refuses(entry: Entry, row: Row) -> None:
    """Every invalid request is refused with the status of the table, in a few words that echo nothing."""
    _assert_refused(exchange(entry.url, row.headers, row.body, path=row.path), row.answer)


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_accepts_samples(entry: Entry, sample: Sample) -> None:
    """Each minimal event, of a type that no function handles, is an empty 204 in both modes."""
    _assert_done(exchange(entry.url, *sample.binary()))
    _assert_done(exchange(entry.url, *sample.structured()))


@pytest.mark.parametrize("path", ["/health/liveness", "/health/readiness"])
def test_health(entry: Entry, path: str) -> None:
    """Both health routes answer 200 while the function serves."""
    assert exchange(entry.url, method="GET", path=path).status == 200


@pytest.mark.check("R13")
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
@pytest.mark.parametrize("path", ["/", "/sub/path", "/with/slash/"])
def test_other_methods(entry: Entry, method: str, path: str) -> None:
    """An event sent with another method than POST is refused with the methods that are allowed."""
    response = exchange(entry.url, binary_headers(), CANARY.encode(), method=method, path=path)

    _assert_refused(response, 405)
    assert response.headers["allow"] == "POST, OPTIONS"


@pytest.mark.check("R13")
@pytest.mark.parametrize("path", ["/", "/sub/path"])
def test_options(entry: Entry, path: str) -> None:
    """OPTIONS answers 200 with the methods that are allowed."""
    response = exchange(entry.url, method="OPTIONS", path=path)

    assert (response.status, response.headers["allow"]) == (200, "POST, OPTIONS")


@pytest.mark.check("R14")
def test_declared_above_the_limit(entry: Entry) -> None:
    """A body that is declared above the limit is refused before it is sent."""
    response = exchange(entry.url, binary_headers(), declared_length=64 * MIB)

    _assert_refused(response, 413)


@pytest.mark.check("R14")
def test_streamed_above_the_limit(entry: Entry) -> None:
    """A body of undeclared length is refused as soon as it passes the limit."""

    def endless() -> Iterator[bytes]:
        piece = CANARY.encode() * 8 * KIB
        for _ in range(64 * MIB // len(piece)):
            yield piece

    _assert_refused(exchange_chunked(entry.url, binary_headers(), endless()), 413)


@pytest.mark.check("R14")
def test_serves_on_after_refusals(entry: Entry) -> None:
    """A refusal leaves nothing behind: the next valid event is handled."""
    exchange(entry.url, binary_headers(), declared_length=64 * MIB)
    exchange(entry.url, [(b"Content-Type", b"application/cloudevents-batch+json")], b"[]")

    _assert_done(exchange(entry.url, binary_headers(), json.dumps({"kind": "Namespace"}).encode()))


@pytest.fixture
async def namespace(admin: Api) -> dict[str, Any]:
    tag = uuid.uuid4().hex[:8]
    labels = {"field.cattle.io/projectId": f"p-{tag}"}
    return await admin.create(NAMESPACE, {"metadata": {"name": f"conformance-{tag}", "labels": labels}})


async def _versions(admin: Api, *namespaces: str) -> dict[str, str]:
    """The resource version of these namespaces and of everything in them that the function may write, by uid.

    Events of cluster-scoped objects are in the namespace ``default``, which other tests write to as well.
    """
    found = [item for item in (await admin.list(NAMESPACE)).items if item["metadata"]["name"] in namespaces]
    for kind in (CONFIG_MAP, SERVICE_ACCOUNT, NETWORK_POLICY):
        for namespace in namespaces:
            found += (await admin.list(kind, namespace)).items
    found += [item for item in (await admin.list(EVENT)).items if item["regarding"]["name"] in namespaces]
    metadata = [item["metadata"] for item in found]
    return {each["uid"]: each["resourceVersion"] for each in metadata if not each["name"].startswith("kube-root")}


def _event_of(namespace: dict[str, Any], event_id: str, payload: dict[str, Any]) -> tuple[Headers, bytes]:
    name = namespace["metadata"]["name"]
    headers = binary_headers(
        type="dev.knative.apiserver.resource.update",
        id=event_id,
        name=name,
        subject=f"/apis/v1/namespaces//namespaces/{name}",
    )
    return headers, json.dumps(payload).encode()


@pytest.mark.check("A10")
@pytest.mark.parametrize("size", [64 * KIB, 2 * MIB], ids=["64KiB", "2MiB"])
async def test_large_payload(entry: Entry, namespace: dict[str, Any], size: int) -> None:
    """A Namespace event is handled with a payload of 64 KiB, and of 2 MiB, declared or chunked."""
    padded = {**namespace, "apiVersion": "v1", "kind": "Namespace", "padding": "x" * size}
    headers, body = _event_of(namespace, str(uuid.uuid4()), padded)

    _assert_done(await asyncio.to_thread(exchange, entry.url, headers, body))
    chunks = [body[start : start + 16 * KIB] for start in range(0, len(body), 16 * KIB)]
    _assert_done(await asyncio.to_thread(exchange_chunked, entry.url, headers, chunks))


@pytest.mark.check("A12")
async def test_duplicates(entry: Entry, admin: Api, namespace: dict[str, Any]) -> None:
    """The same event twice, and the same state under another id, succeed and write nothing after the first."""
    payload = {**namespace, "apiVersion": "v1", "kind": "Namespace"}
    project = namespace["metadata"]["labels"]["field.cattle.io/projectId"]
    first, other = str(uuid.uuid4()), str(uuid.uuid4())

    _assert_done(await asyncio.to_thread(exchange, entry.url, *_event_of(namespace, first, payload)))
    spaces = (namespace["metadata"]["name"], f"cattle-project-{project}")

    async def furnished() -> bool:
        """The cluster makes each new namespace a ServiceAccount in its own time."""
        return all([await admin.get(SERVICE_ACCOUNT, "default", space) for space in spaces])

    await eventually(furnished)
    settled = await _versions(admin, *spaces)
    for event_id in (first, other):
        _assert_done(await asyncio.to_thread(exchange, entry.url, *_event_of(namespace, event_id, payload)))
    registration = await admin.get(NAMESPACE, f"cattle-project-{project}")

    assert registration is not None
    assert await _versions(admin, *spaces) == settled
