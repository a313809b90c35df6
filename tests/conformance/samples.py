"""Six minimal events, one per kind of data: us-ascii text, UTF-8 text, a JSON string, object and array, and XML.

They have the required attributes, a content type and data, and no more: the shapes that the CloudEvents conformance
tool sends.  Both modes of each are written out here, not made by our encoder.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from wire import Headers

_REQUIRED = {"specversion": "1.0", "type": "com.example.conformance", "source": "/tests/conformance"}


@dataclass(frozen=True)
class Sample:
    """One event in both modes, and the data that a receiver must see."""

    name: str
    content_type: str
    body: bytes
    member: object
    data: object

    def __str__(self) -> str:
        return self.name

    def binary(self) -> tuple[Headers, bytes]:
        attributes = {**_REQUIRED, "id": f"sample-{self.name}"}
        headers = [(b"ce-" + name.encode(), value.encode()) for name, value in attributes.items()]
        return [*headers, (b"Content-Type", self.content_type.encode())], self.body

    def structured(self) -> tuple[Headers, bytes]:
        event = {
            **_REQUIRED,
            "id": f"sample-{self.name}",
            "datacontenttype": self.content_type,
            "data": self.member,
        }
        headers = [(b"Content-Type", b"application/cloudevents+json; charset=utf-8")]
        return headers, json.dumps(event, ensure_ascii=False).encode()


def _text(name: str, content_type: str, text: str) -> Sample:
    return Sample(name, content_type, text.encode(), text, text.encode())


def _json(name: str, value: object) -> Sample:
    return Sample(name, "application/json", json.dumps(value).encode(), value, value)


SAMPLES: tuple[Sample, ...] = (
    _text("text-ascii", "text/plain; charset=us-ascii", "A line of plain text."),
    _text("text-utf8", "text/plain; charset=utf-8", "Grüße aus dem Norden 🐧"),
    _json("json-string", "only a string"),
    _json("json-object", {"project": "p-abcde", "namespaces": 3, "locked": False}),
    _json("json-array", ["one", 2, None, {"three": 3}]),
    _text("xml", "application/xml", "<project id='p-abcde'/>"),
)
