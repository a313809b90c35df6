"""Requests and the answers that the conformance table asks for (A1 to A14, R1 to R12), as data.

Each row is used twice: on the parser alone, and on the HTTP entry of a real function.  ``answer`` is the entry's
status; ``parsed`` is the parser's, which knows no kinds and no types.  Every refused row that has room for it carries
`CANARY` in what the sender wrote, so that one search shows whether an answer echoes it.

The events that are accepted speak of a namespace that does not exist, of an unknown kind or of an unknown type, so
they ask for no work.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pytest
from wire import Headers

CANARY = "zq7canary"
PRESENT = object()


@dataclass(frozen=True)
class Row:
    """One request and the status that answers it; ``parsed`` 204 means that the parser returns an event."""

    check: str
    name: str
    headers: Headers
    body: bytes
    answer: int
    parsed: int
    path: str = "/"

    def __str__(self) -> str:
        return f"{self.check}-{self.name}".replace(" ", "-")


ATTRIBUTES: Mapping[str, str] = {
    "specversion": "1.0",
    "id": "7c1f3ab2-6a0f-4a53-9b55-0d1fbb0f6f01",
    "source": "https://10.96.0.1:443",
    "type": "dev.knative.apiserver.ref.update",
    "subject": "/apis/v1/namespaces//namespaces/conformance-absent",
    "time": "2026-03-04T05:06:07.123456789Z",
    "kind": "Namespace",
    "apiversion": "v1",
    "name": "conformance-absent",
    "namespace": "",
}
REFERENCE = {"apiVersion": "v1", "kind": "Namespace", "name": "conformance-absent"}
JSON = b"application/json"
STRUCTURED = b"application/cloudevents+json"


def attributes(**changes: str | None) -> dict[str, str]:
    """Return the valid attributes with some set, or with None removed."""
    return {name: value for name, value in {**ATTRIBUTES, **changes}.items() if value is not None}


def binary_headers(content_type: bytes | None = JSON, /, **changes: str | None) -> list[tuple[bytes, bytes]]:
    """Return the headers of a valid binary event, with changes."""
    headers = [(b"Ce-" + name.encode(), value.encode()) for name, value in attributes(**changes).items()]
    return headers if content_type is None else [*headers, (b"Content-Type", content_type)]


def envelope(**changes: object) -> bytes:
    """Return the body of a valid structured event with members set, or with None removed (`PRESENT` for null)."""
    members: dict[str, object] = {**ATTRIBUTES, "datacontenttype": "application/json", "data": REFERENCE, **changes}
    present = {name: None if value is PRESENT else value for name, value in members.items() if value is not None}
    return json.dumps(present).encode()


def _accepted(check: str, name: str, headers: Headers, body: bytes = b"", *, path: str = "/", answer: int = 204) -> Row:
    return Row(check, name, headers, body, answer, 204, path)


def _refused(check: str, name: str, headers: Headers, body: bytes, *, status: int = 400) -> Row:
    return Row(check, name, headers, body, status, status)


def _binary(check: str, name: str, content_type: bytes | None = JSON, body: bytes | None = None, /, **changes: str | None) -> Row:
    data = json.dumps(REFERENCE).encode() if body is None else body
    return _accepted(check, name, binary_headers(content_type, **changes), data)


def _structured(check: str, name: str, body: bytes, content_type: bytes = STRUCTURED) -> Row:
    return _accepted(check, name, [(b"Content-Type", content_type)], body)


def _bad_binary(check: str, name: str, body: bytes | None = None, /, *extra: tuple[bytes, bytes], **changes: str | None) -> Row:
    data = json.dumps({**REFERENCE, "note": CANARY}).encode() if body is None else body
    return _refused(check, name, [*binary_headers(**{"canary": CANARY, **changes}), *extra], data)


def _bad_structured(check: str, name: str, body: bytes | None = None, /, **changes: object) -> Row:
    return _refused(
        check,
        name,
        [(b"Content-Type", STRUCTURED)],
        envelope(**{"canary": CANARY, **changes}) if body is None else body,
    )


def _accepted_rows() -> Iterator[Row]:
    reference = json.dumps(REFERENCE).encode()
    yield _binary("A1", "binary JSON")
    yield _binary("A2", "charset", b"application/json; charset=utf-8")
    yield _binary("A2", "quoted charset", b'application/json;charset="UTF-8"')
    yield _binary("A2", "upper case", b"APPLICATION/JSON")
    yield _binary("A2", "suffix", b"application/vnd.kubernetes+json")
    ping = {"type": "dev.knative.sources.ping", "kind": None, "apiversion": None, "name": None, "namespace": None}
    yield _binary("A3", "ping without data", None, b"", **ping)
    yield _binary("A3", "ping with a type but no data", JSON, b"", **ping)
    yield _binary("A3", "no content type, JSON body", None)
    unknown = {"type": "com.example.unknown", "kind": None, "apiversion": None, "name": None, "namespace": None}
    yield _binary("A4", "text", b"text/plain", b"{not json", **unknown)
    yield _binary("A4", "xml", b"application/xml", b"<much wow='xml'/>", **unknown)
    yield _binary("A4", "octets", b"application/octet-stream", bytes(range(256)), **unknown)
    yield _binary("A4", "octets without a content type", None, b"\xff\xfe\x00", **unknown)
    no_key = {"kind": None, "apiversion": None, "name": None, "namespace": None}
    yield _accepted("A4", "known type, wrong data", binary_headers(b"text/plain", **no_key), CANARY.encode(), answer=400)
    yield _structured("A5", "structured", envelope())
    yield _structured("A5", "charset", envelope(), b"application/cloudevents+json; charset=utf-8")
    yield _structured("A5", "upper case", envelope(), b"Application/CloudEvents+JSON;Charset=UTF-8")
    against = [(b"ce-id", b""), (b"ce-specversion", b"0.3"), (b"ce-bad_name", b"x"), (b"Content-Type", STRUCTURED)]
    yield _accepted("A5", "body wins over headers", against, envelope())
    yield _structured("A6", "base64", envelope(data=None, data_base64=b64encode(reference).decode()))
    yield _structured("A6", "no datacontenttype", envelope(datacontenttype=None))
    yield _structured("A6", "null data", envelope(data=PRESENT))
    yield _structured("A6", "string data", envelope(type="com.example.unknown", data="I'm just a string"))
    yield _structured("A6", "text data", envelope(type="com.example.unknown", datacontenttype="text/plain", data="plain"))
    yield _structured("A6", "null optional attributes", envelope(subject=PRESENT, time=PRESENT, dataschema=PRESENT))
    shouting = [(name.upper(), value) for name, value in binary_headers()]
    yield _accepted("A7", "upper-case headers", shouting, reference)
    yield _accepted("A7", "lower-case headers", [(n.lower(), v) for n, v in binary_headers()], reference)
    company = [
        (b"ce-comexampleext1", b"value"),
        (b"ce-knativearrivaltime", b"2026-03-04T05:06:07Z"),
        (b"ce-traceparent", b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
        (b"traceparent", b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
        (b"Prefer", b"reply"),
        (b"Kn-Namespace", b"tenantry-system"),
        (b"X-Ce-Not-Ours", b"1"),
    ]
    yield _accepted("A7", "extensions and company", [*binary_headers(), *company], reference)
    yield _structured("A7", "extensions of other JSON types", envelope(number=5, flag=True, unset=PRESENT))
    yield _binary("A8", "percent-encoded", name="caf%C3%A9%20%E2%82%AC")
    yield _binary("A8", "double-quoted", subject='"a \\"quoted\\" subject"')
    yield _binary("A8", "needlessly encoded", specversion="%31.0", id="%61%62%63", kind="Namespac%65")
    yield _accepted("A8", "raw UTF-8", [*binary_headers(), (b"ce-display", "Grüße".encode())], reference)
    yield _binary("A9", "empty namespace", namespace="")
    yield _binary("A9", "missing namespace", namespace=None)
    yield _structured("A9", "empty namespace, structured", envelope(namespace=""))
    for name, time in (
        ("nanoseconds", "2026-03-04T05:06:07.123456789Z"),
        ("offset", "2026-03-04T05:06:07+05:30"),
        ("lower case", "2026-03-04t05:06:07.5z"),
        ("leap second", "2016-12-31T23:59:60Z"),
    ):
        yield _binary("A11", name, time=time)
    for path in ("/", "/sub/path", "/with/slash/", "//double", "/q?x=1"):
        yield _accepted("A13", f"path {path}", binary_headers(), reference, path=path)


def _refused_rows() -> Iterator[Row]:
    yield _bad_binary("A14", "specversion 0.3", specversion="0.3")
    yield _bad_structured("A14", "specversion 0.3, structured", specversion="0.3")
    for name in ("id", "source", "type", "specversion"):
        yield _bad_binary("R1", f"no {name}", **{name: None})
        yield _bad_structured("R1", f"no {name}, structured", **{name: None})
        yield _bad_structured("R1", f"null {name}, structured", **{name: PRESENT})
    for name in ("id", "source", "type", "specversion", "subject", "dataschema"):
        yield _bad_binary("R2", f"empty {name}", **{name: ""})
        yield _bad_binary("R2", f"quoted empty {name}", **{name: '""'})
        yield _bad_structured("R2", f"empty {name}, structured", **{name: ""})
    for version in ("19.0", "2.0", "1", "1.0.2", CANARY):
        yield _bad_binary("R3", f"specversion {version}", specversion=version)
        yield _bad_structured("R3", f"specversion {version}, structured", specversion=version)
    for name, body in (
        ("malformed", b'{"specversion": "1.0", "id": "zq7canary"'),
        ("array", b'["zq7canary"]'),
        ("string", b'"zq7canary"'),
        ("number", b"1"),
        ("null", b"null"),
        ("empty", b""),
        ("not UTF-8", envelope(canary=CANARY) + b"\xff"),
        ("not a number", envelope(canary=CANARY).replace(b'"data": {', b'"data": {"x": NaN, ')),
        ("deep", b'{"zq7canary":' + b"[" * 5000 + b"]" * 5000 + b"}"),
    ):
        yield _bad_structured("R4", name, body)
    for name, changes in (
        ("numeric id", {"id": 5}),
        ("boolean source", {"source": True}),
        ("object subject", {"subject": {"x": CANARY}}),
        ("numeric time", {"time": 1700000000}),
        ("numeric datacontenttype", {"datacontenttype": 1}),
        ("object extension", {"extra": {"x": CANARY}}),
        ("fractional extension", {"extra": 1.5}),
        ("both data members", {"data": CANARY, "data_base64": b64encode(b'"x"').decode()}),
        ("both data members, one null", {"data": CANARY, "data_base64": PRESENT}),
        ("bad base64", {"data": None, "data_base64": f"*{CANARY}*"}),
        ("numeric base64", {"data": None, "data_base64": 5}),
        ("base64 of no JSON", {"data": None, "data_base64": b64encode(CANARY.encode()).decode()}),
        ("object as text", {"datacontenttype": "text/plain", "data": {"x": CANARY}}),
        ("content type of no type", {"datacontenttype": CANARY}),
        ("empty content type", {"datacontenttype": ""}),
    ):
        yield _bad_structured("R4", name, **changes)
    batch = b"[" + envelope(canary=CANARY) + b"]"
    for content_type in (b"application/cloudevents-batch+json", b"Application/CloudEvents-Batch+JSON; charset=utf-8"):
        yield _refused("R5", f"batch {content_type[:6].decode()}", [(b"Content-Type", content_type)], batch, status=415)
    for name in ("avro", "xml", "protobuf", CANARY):
        content_type = f"application/cloudevents+{name}".encode()
        yield _refused("R6", name, [(b"Content-Type", content_type)], CANARY.encode(), status=415)
        headers = [*binary_headers(None), (b"Content-Type", content_type)]
        yield _refused("R6", f"{name} with event headers", headers, CANARY.encode(), status=415)
    for time in ("yesterday", "2026-03-04", "2026-03-04 05:06:07Z", "2026-03-04T05:06:07", "2026-02-30T00:00:00Z"):
        yield _bad_binary("R7", f"time {time}", time=time)
        yield _bad_structured("R7", f"time {time}, structured", time=time)
    for time in ("", "2026-03-04T24:00:00Z", "2026-03-04T05:06:07+25:00", "2026-03-04T05:06:07.Z", CANARY):
        yield _bad_binary("R7", f"time {time or 'empty'}", time=time)
    for schema in (CANARY, "/relative/schema", "https://example.com/a schema", "https://example.com/%zz"):
        yield _bad_structured("R7", f"dataschema {schema}", dataschema=schema)
    yield _bad_binary("R7", "relative dataschema", dataschema=f"/{CANARY}")
    for header in (b"ce-my-ext", b"ce-my_ext", b"Ce-Ext.1", b"ce-", b"ce-zq7canary_x"):
        yield _bad_binary("R8", f"header {header.decode()}", None, (header, CANARY.encode()))
    yield _bad_binary("R8", "header ce-data", None, (b"ce-data", CANARY.encode()))
    for member in ("my-ext", "my_ext", "myExt", "ext.1", "", "é", CANARY.upper()):
        yield _bad_structured("R8", f"member {member or 'empty'}", **{member: CANARY})
    for name, value in (("overlong", b"%C0%A0"), ("truncated", b"zq7canary%E2%82"), ("surrogate", b"%ED%A0%80")):
        yield _bad_binary("R9", f"encoded, {name}", None, (b"ce-extra", value))
    yield _bad_binary("R9", "raw bytes", None, (b"ce-extra", b"zq7canary\xff\xfe"))
    yield _bad_binary("R9", "encoded line break", None, (b"ce-extra", b"zq7canary%0D%0Ax"))
    yield _bad_binary("R10", "ce-datacontenttype", None, (b"ce-datacontenttype", JSON))
    yield _bad_binary("R10", "an attribute twice", None, (b"CE-ID", CANARY.encode()))
    yield _bad_binary("R10", "two content types", None, (b"content-type", JSON))
    for name, body in (("truncated", b'{"kind": "zq7canary"'), ("text", b"zq7canary"), ("not UTF-8", b'"\xff"')):
        yield _bad_binary("R11", name, body)
    no_headers: Headers = [(b"Content-Type", JSON), (b"X-Note", CANARY.encode())]
    yield _refused("R12", "JSON without event headers", no_headers, json.dumps({"note": CANARY}).encode())
    yield _refused("R12", "event in a plain JSON body", [(b"Content-Type", JSON)], envelope(canary=CANARY))
    yield _refused("R12", "nothing at all", [], b"")


ACCEPTED, REFUSED = (
    [pytest.param(row, id=str(row), marks=pytest.mark.check(row.check)) for row in rows]
    for rows in (_accepted_rows(), _refused_rows())
)
"""The rows as parameters of a test, which then shows the check of each."""
